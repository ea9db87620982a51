"""What AWS would charge: a dated table of prices, and the bill for counted work.

Belongs here: prices, their date and source, and which counts they apply to. Nothing is measured here.

Prices are those of us-east-1, without free tier and without volume discounts, as published in November
2026 on aws.amazon.com/dynamodb/pricing/on-demand, /lambda/pricing (arm64, first tier) and /sqs/pricing
(standard queues, after the first million requests). Left out, because they do not grow with the number
of steps or depend on what the user adds: API Gateway, storage, CloudWatch Logs, data transfer, and what
an idle deployment costs (the reconciler's schedule). Reads of a stream by Lambda are free.
"""

from __future__ import annotations

from dataclasses import dataclass

DATE = "November 2026"
REGION = "us-east-1"

WRITE_UNIT = 0.625e-6
READ_UNIT = 0.125e-6
GB_SECOND = 0.0000133334
LAMBDA_REQUEST = 0.20e-6
SQS_REQUEST = 0.40e-6

# Write units of one update of the head: the item itself, and the index entries that move with it
# (a changed index key is a delete and a put). Entries are apart: they are counted by their size.
START_UNITS = 3
TAKE_UNITS = 3
YIELD_UNITS = 3
FINISH_UNITS = 4
# Read units of one take: the head, the newest snapshot, the tail of the log, all strongly consistent.
TAKE_READS = 3
# Each message is sent, received and deleted; batches make it less.
REQUESTS_PER_MESSAGE = 3


@dataclass(frozen=True, slots=True)
class Work:
    """What was done, as counted. `log_units`: write units of entries and snapshots, by their size."""

    steps: int
    log_units: int
    starts: int
    takes: int
    yields: int
    finishes: int
    messages: int
    invocations: int
    gb_seconds: float


@dataclass(frozen=True, slots=True)
class Charge:
    """One line of the bill: so much of something at a price, in dollars."""

    what: str
    amount: float
    usd: float


def bill(work: Work) -> list[Charge]:
    """The charges for `work`."""
    head = (
        work.starts * START_UNITS
        + work.takes * TAKE_UNITS
        + work.yields * YIELD_UNITS
        + work.finishes * FINISH_UNITS
    )
    reads = work.takes * TAKE_READS
    requests = work.messages * REQUESTS_PER_MESSAGE
    return [
        Charge("DynamoDB writes, log", work.log_units, work.log_units * WRITE_UNIT),
        Charge("DynamoDB writes, heads", head, head * WRITE_UNIT),
        Charge("DynamoDB reads", reads, reads * READ_UNIT),
        Charge("Lambda GB-seconds", work.gb_seconds, work.gb_seconds * GB_SECOND),
        Charge("Lambda requests", work.invocations, work.invocations * LAMBDA_REQUEST),
        Charge("SQS requests", requests, requests * SQS_REQUEST),
    ]


def per_million_steps(charges: list[Charge], steps: int) -> float:
    """Dollars for a million steps at the same mix; 0 when nothing was done."""
    return sum(charge.usd for charge in charges) / steps * 1_000_000 if steps else 0.0
