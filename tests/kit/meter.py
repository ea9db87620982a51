"""Write and read units of the requests that are really sent, by DynamoDB's own rule.

The rule ("Read/write capacity" and "Global secondary indexes" of its developer guide): a write costs a unit
for each kilobyte begun of the larger of old and new item, and of each index row put or deleted, twice that in
a transaction; a read one for each four kilobytes begun, half of it when eventually consistent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import boto3

from baton.adapters.aws import Aws
from baton.adapters.dynamo.items import item_size
from baton.core.read.costs import READ_BYTES, units
from tests.kit.table import table_properties

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

Item = Mapping[str, Any]
TABLE = "sagas"
KEYS = ("pk", "sk")
_WRITES = ("PutItem", "UpdateItem", "DeleteItem", "BatchWriteItem", "TransactWriteItems")
_READS = ("GetItem", "Query")


class Spent(NamedTuple):
    """What one item of one request cost; `sk` is empty for a query. `rows`: of it, by partition of an index."""

    pk: str
    sk: str
    units: float
    rows: Mapping[tuple[str, str], int] = MappingProxyType({})


@cache
def _looking(region: str, address: str) -> DynamoDBClient:
    return boto3.client("dynamodb", region_name=region, endpoint_url=address)


class Meter:
    """Watches the table `TABLE` through the client of `aws`. Requests to the same item must not overlap."""

    def __init__(self, aws: Aws) -> None:
        self.written: list[Spent] = []
        self.read: list[Spent] = []
        self.client = aws.dynamodb
        there = self.client.meta
        # A client whose own reads are not watched.
        self._looking = _looking(there.region_name, there.endpoint_url)
        for operation in _WRITES:
            there.events.register(f"provide-client-params.dynamodb.{operation}", self._before)
            there.events.register(f"after-call.dynamodb.{operation}", self._after)
        for operation in _READS:
            there.events.register(f"provide-client-params.dynamodb.{operation}", self._asked)
            there.events.register(f"after-call.dynamodb.{operation}", self._answered)

    @property
    def units(self) -> list[int]:
        """Write units, write by write."""
        return [int(spent.units) for spent in self.written]

    def clear(self) -> None:
        self.written.clear()
        self.read.clear()

    # ---- writes

    def _image(self, key: Item) -> Item:
        found = self._looking.get_item(TableName=TABLE, Key=key, ConsistentRead=True)
        return found.get("Item", {})

    def _before(self, params: Item, context: dict[str, Any], **_: object) -> None:
        keys = _keys_in(params) if params.get("TableName", TABLE) == TABLE else []
        context["meter"] = 2 if "TransactItems" in params else 1, [(key, self._image(key)) for key in keys]

    def _after(self, context: dict[str, Any], **_: object) -> None:
        factor, images = context["meter"]
        for key, before in images:
            after = self._image(key)
            rows = _index_units(before, after)
            spent = units(max(item_size(before), item_size(after))) + rows.total()
            self.written.append(Spent(key["pk"]["S"], key["sk"]["S"], factor * spent, rows))

    # ---- reads

    def _asked(self, params: Item, context: dict[str, Any], **_: object) -> None:
        context["meter"] = params

    def _answered(self, parsed: Item, context: dict[str, Any], **_: object) -> None:
        params = context["meter"]
        if params["TableName"] != TABLE:
            return
        found: Sequence[Item] = parsed.get("Items", [parsed.get("Item", {})])
        spent = units(sum(item_size(item) for item in found), READ_BYTES)
        share = 1 if params.get("ConsistentRead") else 0.5
        pk, sk = _asked_for(params)
        self.read.append(Spent(pk, sk, spent * share))


def _keys_in(params: Item) -> list[Item]:
    """The keys of the items that a request writes."""
    changes = params.get("TransactItems") or params.get("RequestItems", {}).get(TABLE, [])
    actions = [action for item in changes for action in item.values()]
    items = [action.get("Key", action.get("Item")) for action in actions or [params]]
    return [{name: item[name] for name in KEYS} for item in items]


def _asked_for(params: Item) -> tuple[str, str]:
    """The key of a read. That of a query is its `:pk`, and nothing where it asks an index for something else."""
    if "Key" in params:
        return params["Key"]["pk"]["S"], params["Key"]["sk"]["S"]
    return params["ExpressionAttributeValues"].get(":pk", {}).get("S", ""), ""


def _index_units(before: Item, after: Item) -> Counter[tuple[str, str]]:
    spent: Counter[tuple[str, str]] = Counter()
    for index in table_properties()["GlobalSecondaryIndexes"]:
        old, new = _row(index, before), _row(index, after)
        if old == new:
            continue
        name, partition = index["IndexName"], _keys_of(index)[0]
        moved = any(old.get(key) != new.get(key) for key in _keys_of(index))
        if old and (moved or not new):
            spent[name, old[partition]["S"]] += units(item_size(old))
        if new:
            spent[name, new[partition]["S"]] += units(item_size(new))
    return spent


def index_rows(item: Item) -> dict[str, Item]:
    """The item as each index holds it, where one does."""
    rows = {index["IndexName"]: _row(index, item) for index in table_properties()["GlobalSecondaryIndexes"]}
    return {name: row for name, row in rows.items() if row}


def _keys_of(index: Item) -> list[str]:
    return [key["AttributeName"] for key in index["KeySchema"]]


def _row(index: Item, item: Item) -> Item:
    """The item as the index holds it; empty when it is not in it."""
    keys = _keys_of(index)
    if any(name not in item for name in keys):
        return {}
    names = [*KEYS, *keys, *index["Projection"].get("NonKeyAttributes", [])]
    return {name: item[name] for name in names if name in item}
