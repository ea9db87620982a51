"""The bill for what a demo run did, from its counts.

Prices are in core/read/prices.py. Left out, because they do not grow with the number of steps or depend on what the
user adds: API Gateway, storage, logs, data transfer, and what an idle deployment costs (the reconciler's schedule).
"""

from __future__ import annotations

from dataclasses import dataclass

from baton.core.read import prices
from baton.core.read.bill import REQUESTS_PER_MESSAGE
from baton.core.read.costs import Charge
from baton.core.read.prices import Price

# Write units of one update of the head: the item itself, and the index entries that move with it
# (a changed index key is a delete and a put). Entries are apart: they are counted by their size.
START_UNITS = 3
TAKE_UNITS = 1
YIELD_UNITS = 3
FINISH_UNITS = 4
# Read units of one take: the head, the newest snapshot, the tail of the log, all strongly consistent.
TAKE_READS = 3
# An effect that happens once is claimed before it, and its result is recorded after it.
WRITES_PER_EFFECT = 2


@dataclass(frozen=True, slots=True)
class Work:
    """What was done, as counted. `log_units`: write units of entries and snapshots, by their size; `effect_units`: of effects."""

    steps: int
    log_units: int
    starts: int
    takes: int
    yields: int
    finishes: int
    messages: int
    invocations: int
    gb_seconds: float
    effect_units: int = 0


def bill(work: Work) -> list[Charge]:
    """The charges for `work`."""
    head = (
        work.starts * START_UNITS
        + work.takes * TAKE_UNITS
        + work.yields * YIELD_UNITS
        + work.finishes * FINISH_UNITS
    )
    return [
        _charge("DynamoDB writes, log", prices.WRITE_UNIT, work.log_units),
        _charge("DynamoDB writes, heads", prices.WRITE_UNIT, head),
        _charge("DynamoDB writes, effects", prices.WRITE_UNIT, work.effect_units),
        _charge("DynamoDB reads", prices.READ_UNIT, work.takes * TAKE_READS),
        _charge("Lambda GB-seconds", prices.GB_SECOND, work.gb_seconds),
        _charge("Lambda requests", prices.LAMBDA_REQUEST, work.invocations),
        _charge("SQS requests", prices.SQS_REQUEST, work.messages * REQUESTS_PER_MESSAGE),
    ]


def _charge(what: str, price: Price, quantity: float) -> Charge:
    return Charge(what, quantity, price.unit, price.usd(quantity))
