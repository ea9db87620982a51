"""Sends Lambda's description of stream records that were given up to the on-failure queue.

It names the records, it does not contain them; format as in Lambda's developer guide for DynamoDB.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from typing import Any

from baton.local.aws.aws import Aws
from baton.local.functions.lambdas import RESPONSE_CONTEXT, request_context, timestamp
from baton.local.sources.stream_batch import Condition, SetAside
from baton.local.sources.stream_record import Record, created_at, sequence_of
from baton.local.template.declared import Function, StreamSource

log = logging.getLogger("baton.local")


def failure_queue(source: StreamSource, function: Function, aws: Aws) -> SetAside:
    """The `set_aside` of one stream source; without a destination the records are only logged."""

    async def set_aside(
        shard: str, records: Sequence[Record], condition: Condition, request_id: str, attempts: int
    ) -> None:
        document = describe(source, function.arn, shard, records, condition, request_id, attempts)
        log.warning("%s: %d records set aside: %s", source.logical_id, len(records), condition)
        if source.on_failure_url:
            send: Callable[..., Any] = aws.sqs.send_message
            await aws.call(send, QueueUrl=source.on_failure_url, MessageBody=json.dumps(document))

    return set_aside


def describe(
    source: StreamSource,
    function_arn: str,
    shard: str,
    records: Sequence[Record],
    condition: Condition,
    request_id: str,
    attempts: int,
) -> dict[str, Any]:
    """The document. `requestId` is that of the last attempt, empty if there was none."""
    return {
        "requestContext": request_context(function_arn, request_id, condition, attempts),
        "responseContext": RESPONSE_CONTEXT,
        "version": "1.0",
        "timestamp": timestamp(),
        "DDBStreamBatchInfo": {
            "shardId": shard,
            "startSequenceNumber": sequence_of(records[0]),
            "endSequenceNumber": sequence_of(records[-1]),
            "approximateArrivalOfFirstRecord": timestamp(created_at(records[0])),
            "approximateArrivalOfLastRecord": timestamp(created_at(records[-1])),
            "batchSize": len(records),
            "streamArn": source.arn,
        },
    }
