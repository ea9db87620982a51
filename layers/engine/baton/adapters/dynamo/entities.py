"""`Entities` on DynamoDB: one item each, one conditional update for each write.

The item remembers the keys of its newest writes, in their order, so that a write that comes again is known for what it
is, even when others have come in between. What a tool promises on top of it is in tools/standard.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from baton.adapters.aws import ConditionFailed, translated
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import names_in, number, text
from baton.adapters.dynamo.limits import ITEM_BYTES
from baton.adapters.rules import pack, unpack
from baton.ports.outside import KEYS_KEPT, Entity, Written

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import UniversalAttributeValueTypeDef

    from baton.adapters.dynamo.items import Item, StoredItem

_PUT = "SET #d = :data, #keys = list_append(if_not_exists(#keys, :none), :key) ADD #ver :one"
_IS_OTHER = "(attribute_not_exists(#keys) OR NOT contains(#keys, :name))"
_IS_NONE = "attribute_not_exists(#ver)"
_IS_THERE = "#ver = :expected"
# Half of the keys at once, so that it is done seldom; only if the item has not changed since.
_FORGET = "SET #keys = :kept"
_IS_STILL = "#ver = :ver"
_BESIDES = 6_000  # bytes of an item besides its data: both keys, and the keys of writes


class DynamoEntities:
    """`Entities` in one table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def put(
        self, tenant: str, type: str, id: str, data: Any, *, key: str, expected: int | None = None
    ) -> Written:
        condition = _IS_OTHER
        values: dict[str, UniversalAttributeValueTypeDef] = {
            ":data": {"B": pack(msgspec.json.encode(data), _BESIDES, ITEM_BYTES)},
            ":none": {"L": []},
            ":key": {"L": [text(key)]},
            ":name": text(key),
            ":one": number(1),
        }
        if expected is not None:
            condition += f" AND {_IS_THERE if expected else _IS_NONE}"
        if expected:
            values[":expected"] = number(expected)
        where = items.key(items.entity_pk(tenant, type), id)
        try:
            with translated():
                answer = self._client.update_item(
                    TableName=self._table,
                    Key=where,
                    UpdateExpression=_PUT,
                    ConditionExpression=condition,
                    ExpressionAttributeNames=names_in(_PUT, condition),
                    ExpressionAttributeValues=values,
                    ReturnValues="UPDATED_NEW",
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ConditionFailed as error:
            return _as_it_stands(error.item, key)
        written = answer["Attributes"]
        if len(written["keys"]["L"]) >= KEYS_KEPT:
            self._forget(where, written)
        return Written(version=int(written["ver"]["N"]), is_new=True)

    def _forget(self, where: Item, written: StoredItem) -> None:
        try:
            with translated():
                self._client.update_item(
                    TableName=self._table,
                    Key=where,
                    UpdateExpression=_FORGET,
                    ConditionExpression=_IS_STILL,
                    ExpressionAttributeNames=names_in(_FORGET, _IS_STILL),
                    ExpressionAttributeValues={
                        ":kept": {"L": written["keys"]["L"][KEYS_KEPT // 2 :]},
                        ":ver": written["ver"],
                    },
                )
        except ConditionFailed:
            pass  # the writer that came since does it

    def get(self, tenant: str, type: str, id: str) -> Entity | None:
        with translated():
            answer = self._client.get_item(
                TableName=self._table, Key=items.key(items.entity_pk(tenant, type), id), ConsistentRead=True
            )
        if "Item" not in answer:
            return None
        item = answer["Item"]
        return Entity(version=int(item["ver"]["N"]), data=msgspec.json.decode(unpack(item["d"]["B"])))


def _as_it_stands(item: Any, key: str) -> Written:
    """The write with this key as it was done before; or a conflict, with the version that is there."""
    version = int(item["ver"]["N"]) if "ver" in item else 0
    names: Sequence[str] = [one["S"] for one in item.get("keys", {"L": []})["L"]]
    if key in names:
        return Written(version=version - (len(names) - 1 - names.index(key)))
    return Written(version=version, conflict=True)
