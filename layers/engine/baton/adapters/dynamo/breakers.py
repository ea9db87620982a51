"""`Breakers` on DynamoDB: an item for each target in one partition of its tenant, put under the condition of its version."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from baton.adapters.aws import translated
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import names_in, number, text
from baton.adapters.dynamo.limits import ITEM_BYTES
from baton.adapters.dynamo.requests import put_version, query
from baton.adapters.rules import pack, unpack
from baton.core.failures import quoted
from baton.core.failures.breakers import CLOSED, OPEN, Breaker, Move
from baton.errors import CorruptLog

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item, StoredItem

KEPT_MS = 30 * 86_400_000
_OF_TENANT = "#pk = :pk"
_AFTER = f"{_OF_TENANT} AND #sk > :after"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Breaker).decode


class DynamoBreakers:
    """`Breakers` on one table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read_breaker(self, tenant: str, target: str) -> Breaker | None:
        with translated():
            answer = self._client.get_item(TableName=self._table, Key=items.key(_pk(tenant), target))
        return breaker_of(answer["Item"]) if "Item" in answer else None

    def write_breaker(self, tenant: str, target: str, breaker: Breaker, now: int) -> Breaker | None:
        item: Item = {**items.key(_pk(tenant), target), "ver": number(breaker.version)}
        if breaker.state != OPEN or breaker.until:
            item["ttl"] = items.ttl(now + KEPT_MS)
        item["d"] = {"B": pack(_encode(breaker), items.item_size(item) + len("d"), ITEM_BYTES)}
        there = put_version(self._client, self._table, item, breaker.version)
        if there is None:
            return None
        return breaker_of(there) if there else Breaker()

    def all(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[tuple[str, Breaker]]:
        condition = _AFTER if after else _OF_TENANT
        values = {":pk": text(_pk(tenant)), **({":after": text(after)} if after else {})}
        request = {
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names_in(condition),
            "ExpressionAttributeValues": values,
        }
        found = query(self._client, self._table, request, limit)
        return [(item["sk"]["S"], _shown(item)) for item in found]


def _pk(tenant: str) -> str:
    """Where the circuit breakers of a tenant are, the target as sort key."""
    return f"T#{tenant}#BREAKERS"


def _shown(item: StoredItem) -> Breaker:
    """One that cannot be read says so, so that the others can be seen."""
    try:
        return breaker_of(item)
    except CorruptLog as error:
        return Breaker(
            version=int(item.get("ver", {"N": "0"})["N"]),
            moves=(Move(0, CLOSED, quoted(str(error), 300), ""),),
        )


def breaker_of(item: StoredItem) -> Breaker:
    """Raises `CorruptLog`."""
    try:
        return _decode(unpack(item["d"]["B"]))
    except (KeyError, ValueError, CorruptLog) as error:
        raise CorruptLog(f"breaker {item.get('sk')} cannot be read: {error!r}") from error
