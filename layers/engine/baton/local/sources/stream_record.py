"""One record of a DynamoDB stream: from what GetRecords returns to what a function's event holds. Pure."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from baton.local.aws.ministack import REGION

Record = dict[str, Any]


def event_record(record: Mapping[str, Any], stream_arn: str) -> Record:
    """boto3 has decoded binary values and the time of creation; Lambda's JSON has neither type."""
    change = {key: _plain(value) for key, value in record["dynamodb"].items()}
    return {
        "eventID": record["eventID"],
        "eventName": record["eventName"],
        "eventVersion": record.get("eventVersion", "1.1"),
        "eventSource": "aws:dynamodb",
        "awsRegion": record.get("awsRegion", REGION),
        "dynamodb": change,
        "eventSourceARN": stream_arn,
    }


def sequence_of(record: Record) -> str:
    return str(record["dynamodb"]["SequenceNumber"])


def created_at(record: Record) -> float:
    """Epoch seconds; DynamoDB tells it to the second."""
    return float(record["dynamodb"].get("ApproximateCreationDateTime", 0))


def partition_of(record: Record) -> str:
    """The same text for records of one item."""
    return json.dumps(record["dynamodb"].get("Keys", {}), sort_keys=True)


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    if isinstance(value, datetime):
        return int(value.timestamp())
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value
