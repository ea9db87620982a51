"""What AWS allows, and what it asks for keeping data: every figure that the model of scale takes from outside, with date and source.

Numbers only. Prices of requests and of time are in core/read/costs.py. A quota of the account can be raised on request
(Service Quotas, or a case with AWS's support); what is AWS's own cannot.
"""

from __future__ import annotations

from typing import NamedTuple

from baton.core.read.costs import BY_OTHERS, ON_AWS

DATE = "2026-11-23"
REGION = "us-east-1; the defaults are the same in most regions, and lower for API Gateway in newer ones"
NOT_CONFIRMED = "on no page of AWS's that we found"
ACCOUNT, AWS = "the account", "AWS"


class Quota(NamedTuple):
    """`holds_for`: ACCOUNT, which can be raised, or AWS. `page` is where AWS publishes it, `confirmed` how it was on that date."""

    what: str
    value: float
    unit: str
    holds_for: str
    page: str
    confirmed: str = ON_AWS


_DYNAMODB = "https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/"
_LAMBDA = "https://docs.aws.amazon.com/lambda/latest/dg/"
_SQS = "https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/"

PARTITION_WRITES = Quota(
    "DynamoDB: writes of one partition",
    1_000,
    "write units/s",
    AWS,
    _DYNAMODB + "warm-throughput-scenarios.html",
)
PARTITION_READS = Quota(
    "DynamoDB: reads of one partition",
    3_000,
    "read units/s",
    AWS,
    _DYNAMODB + "warm-throughput-scenarios.html",
)
# On demand there is none for the whole account; its 80,000 are for provisioned tables.
TABLE_WRITES = Quota(
    "DynamoDB: writes of one table, or of one of its indexes, on demand",
    40_000,
    "write units/s",
    ACCOUNT,
    _DYNAMODB + "ServiceQuotas.html",
)
TABLE_READS = Quota(
    "DynamoDB: reads of one table, or of one of its indexes, on demand",
    40_000,
    "read units/s",
    ACCOUNT,
    _DYNAMODB + "ServiceQuotas.html",
)
COLD_WRITES = Quota(
    "DynamoDB: writes of a new table or index, at once",
    4_000,
    "write units/s",
    AWS,
    _DYNAMODB + "warm-throughput-scenarios.html",
)
COLD_READS = Quota(
    "DynamoDB: reads of a new table or index, at once",
    12_000,
    "read units/s",
    AWS,
    _DYNAMODB + "warm-throughput-scenarios.html",
)
STREAM_PARALLEL = Quota(
    "Lambda: batches of one shard of a stream at a time (`ParallelizationFactor`)",
    10,
    "batches",
    AWS,
    _LAMBDA + "services-ddb-params.html",
)
QUEUE_IN_FLIGHT = Quota(
    "SQS: messages of a standard queue in flight",
    120_000,
    "messages",
    ACCOUNT,
    _SQS + "quotas-queues.html",
)
QUEUE_BATCH = Quota("SQS: messages of one request", 10, "messages", AWS, _SQS + "quotas-messages.html")
QUEUE_DELAY = Quota("SQS: longest delay of a message", 900, "s", AWS, _SQS + "quotas-queues.html")
POLLERS_MOST = Quota(
    "Lambda: invocations that a queue keeps busy at once",
    1_250,
    "invocations",
    AWS,
    _LAMBDA + "services-sqs-scaling.html",
)
POLLERS_MORE = Quota(
    "Lambda: by how many of them that grows",
    300,
    "invocations a minute",
    AWS,
    _LAMBDA + "services-sqs-scaling.html",
)
POLLERS_SET = Quota(
    "Lambda: largest `MaximumConcurrency` of a queue",
    1_000,
    "invocations",
    AWS,
    "https://docs.aws.amazon.com/lambda/latest/api/API_ScalingConfig.html",
)
CONCURRENCY = Quota(
    "Lambda: invocations at once, all functions together",
    1_000,
    "invocations",
    ACCOUNT,
    _LAMBDA + "gettingstarted-limits.html",
)
CONCURRENCY_MORE = Quota(
    "Lambda: by how many one function grows",
    1_000,
    "invocations in 10 s",
    AWS,
    _LAMBDA + "scaling-behavior.html",
)
API_REQUESTS = Quota(
    "API Gateway: requests, all APIs of a region together",
    10_000,
    "requests/s",
    ACCOUNT,
    "https://docs.aws.amazon.com/apigateway/latest/developerguide/limits.html",
)
MAP_AT_ONCE = Quota(
    "Step Functions: iterations of an inline Map at once",
    40,
    "iterations",
    AWS,
    "https://docs.aws.amazon.com/step-functions/latest/dg/state-map-inline.html",
)
S3_PUTS = Quota(
    "S3: PUTs of one partitioned prefix",
    3_500,
    "requests/s",
    AWS,
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html",
)
S3_GETS = Quota(
    "S3: GETs of one partitioned prefix",
    5_500,
    "requests/s",
    AWS,
    "https://docs.aws.amazon.com/AmazonS3/latest/userguide/optimizing-performance.html",
)
QUEUE_REQUESTS = Quota(
    "SQS: requests to a standard queue",
    float("inf"),
    "nearly unlimited",
    AWS,
    _SQS + "standard-queues.html",
)
ASYNC_INVOKES = Quota(
    "Lambda: asynchronous invocations that it accepts for later",
    float("inf"),
    "no limit but that of running ones",
    AWS,
    _LAMBDA + "gettingstarted-limits.html",
    NOT_CONFIRMED,
)

STORED = Quota(
    "DynamoDB: storage, indexes included",
    0.25,
    "$ a GB-month",
    AWS,
    "https://aws.amazon.com/dynamodb/pricing/on-demand/",
)
RESTORE = Quota(
    "DynamoDB: point-in-time recovery, by the size of the table",
    0.20,
    "$ a GB-month",
    AWS,
    "https://aws.amazon.com/dynamodb/pricing/on-demand/",
    BY_OTHERS,
)

QUOTAS = tuple(value for value in list(globals().values()) if isinstance(value, Quota))
