"""What AWS asks for its requests and its time: the one table of prices, with date, region and source.

Numbers only. How many requests a saga needs is in usage.py, the bill in costs.py. No free tier, no volume
discount, no savings plan. Storage, logs and data transfer are not in it: they do not depend on steps.
"""

from __future__ import annotations

from typing import NamedTuple

REGION = "us-east-1"
DATE = "2026-11-22"

# How a number was confirmed on that date. AWS fills the tables of its pages in the browser; where a number could not be
# read there, two pages of others that agree have to do.
ON_AWS = "AWS's own page"
BY_OTHERS = "others' pages"


class Price(NamedTuple):
    """Dollars for a million of something; `page` is where AWS publishes it."""

    what: str
    unit: str
    usd_per_million: float
    page: str
    confirmed: str

    def usd(self, quantity: float) -> float:
        """Dollars for so many."""
        return quantity * self.usd_per_million / 1_000_000


_DYNAMODB = "https://aws.amazon.com/dynamodb/pricing/on-demand/"
_LAMBDA = "https://aws.amazon.com/lambda/pricing/"
_STEP_FUNCTIONS = "https://aws.amazon.com/step-functions/pricing/"
_S3 = "https://aws.amazon.com/s3/pricing/"

# A write unit is a kilobyte begun; a read unit is four, strongly consistent.
WRITE_UNIT = Price("DynamoDB writes", "write units", 0.625, _DYNAMODB, BY_OTHERS)
READ_UNIT = Price("DynamoDB reads", "read units", 0.125, _DYNAMODB, BY_OTHERS)
# Lambda's reads of a stream cost nothing.
SQS_REQUEST = Price("SQS requests", "requests", 0.40, "https://aws.amazon.com/sqs/pricing/", BY_OTHERS)
LAMBDA_REQUEST = Price("Lambda requests", "requests", 0.20, _LAMBDA, ON_AWS)
# arm64, the first 7.5 billion GB-seconds of a month; billed by the millisecond, initialisation included.
GB_SECOND = Price("Lambda time", "GB-seconds", 13.3334, _LAMBDA, BY_OTHERS)
S3_PUT = Price("S3 PUT", "requests", 5.00, _S3, BY_OTHERS)
S3_GET = Price("S3 GET", "requests", 0.40, _S3, BY_OTHERS)
HTTP_REQUEST = Price(
    "API Gateway HTTP requests", "requests", 1.00, "https://aws.amazon.com/api-gateway/pricing/", ON_AWS
)

# What runs whether there are sagas or not: the reconciler's schedule and its state machine.
SCHEDULER_INVOCATION = Price(
    "Scheduler invocations", "requests", 1.00, "https://aws.amazon.com/eventbridge/pricing/", BY_OTHERS
)
EXPRESS_REQUEST = Price("Step Functions Express", "executions", 1.00, _STEP_FUNCTIONS, BY_OTHERS)
EXPRESS_GB_SECOND = Price("Step Functions Express time", "GB-seconds", 16.67, _STEP_FUNCTIONS, BY_OTHERS)

# Peers, for comparison. Neither includes the Lambda requests and time of the steps themselves, nor, for
# durable functions, what is written and kept, which AWS charges by the gigabyte.
DURABLE_OPERATION = Price("Lambda durable functions", "operations", 8.00, _LAMBDA, ON_AWS)
STANDARD_TRANSITION = Price("Step Functions Standard", "transitions", 25.00, _STEP_FUNCTIONS, ON_AWS)
