"""Reads the DynamoDB table, behind the back of the functions: what lies there, and who holds a saga."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

WRITE_UNIT_BYTES = 1024
_KINDS = {"HEAD": "head", "LOG": "entry", "SNAP": "snapshot", "V": "definition", "EFFECT": "effect"}


def count_items(client: DynamoDBClient, table: str) -> tuple[dict[str, int], dict[str, int], int]:
    """Items by kind, the write units each kind cost when put once, and the sum of all heads' epochs.

    An epoch is raised by each take and by nothing else, so that sum is the number of takes.
    """
    counts: Counter[str] = Counter()
    units: Counter[str] = Counter()
    takes = 0
    for page in client.get_paginator("scan").paginate(TableName=table, ConsistentRead=True):
        for item in page["Items"]:
            kind = kind_of(str(item.get("sk", {}).get("S", "")))
            counts[kind] += 1
            units[kind] += -(-size_of(item) // WRITE_UNIT_BYTES)
            if kind == "head":
                takes += int(item.get("epoch", {}).get("N", "0"))
    return dict(counts), dict(units), takes


def owner_of(client: DynamoDBClient, table: str, tenant: str, saga: str) -> str:
    """Under which name a worker holds a saga's lease; empty: none does. The log tells it only of the worker that wrote last."""
    key = {"pk": {"S": f"T#{tenant}#SAGA#{saga}"}, "sk": {"S": "HEAD"}}
    head = client.get_item(TableName=table, Key=key, ConsistentRead=True).get("Item", {})
    return head.get("owner", {}).get("S", "")


def kind_of(sort_key: str) -> str:
    """The kind of item a sort key belongs to."""
    return _KINDS.get(sort_key.partition("#")[0], "other")


def size_of(item: Mapping[str, Any]) -> int:
    """Bytes of an item as DynamoDB counts them, for the types that are used here: S, N, B, BOOL."""
    return sum(len(name.encode()) + _value_size(value) for name, value in item.items())


def _value_size(value: Mapping[str, Any]) -> int:
    (kind, content), *_ = value.items()
    if kind == "S":
        return len(content.encode())
    if kind == "N":
        # Two digits to a byte, and a byte for the exponent.
        return (len(content.lstrip("-").replace(".", "")) + 1) // 2 + 1
    return len(content) if kind == "B" else 1
