"""`Effects` on DynamoDB: one item for each effect, and one conditional write for each change of it.

The conditions are the protocol: a writer has seen what it replaces. The names of the attributes are in
items.py; when a call is made is the runtime's business.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from baton.adapters.aws import ConditionFailed, translated
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import names_in, number, text
from baton.adapters.dynamo.limits import ITEM_BYTES
from baton.adapters.rules import pack, unpack
from baton.errors import CorruptLog
from baton.ports.effects import FREED, Effect

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item, StoredItem

SK = "EFFECT"
_MAY_CLAIM = "attribute_not_exists(#pk) OR #st = :freed"
_IS_AS_SEEN = "attribute_not_exists(#pk) OR (#owner = :owner AND #st = :status)"
# Attributes that are not there where they are empty.
_TEXTS = {
    "ref": "ref",
    "code": "code",
    "message": "message",
    "kind": "kind",
    "about": "about",
    "scope": "scope",
}


class DynamoEffects:
    """`Effects` on one table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def claim(self, effect: Effect) -> Effect | None:
        return self._put(effect, _MAY_CLAIM, {":freed": text(FREED)})

    def change(self, seen: Effect, effect: Effect) -> Effect | None:
        return self._put(effect, _IS_AS_SEEN, {":owner": text(seen.owner), ":status": text(seen.status)})

    def _put(self, effect: Effect, condition: str, values: dict[str, Any]) -> Effect | None:
        try:
            with translated():
                self._client.put_item(
                    TableName=self._table,
                    Item=_item(effect),
                    ConditionExpression=condition,
                    ExpressionAttributeNames=names_in(condition),
                    ExpressionAttributeValues=values,
                    # What refused the write: as fresh as a strongly consistent read, and free.
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ConditionFailed as refused:
            return _effect(refused.item)
        return None

    def read(self, tenant: str, key: str) -> Effect | None:
        with translated():
            answer = self._client.get_item(
                TableName=self._table, Key=items.key(_pk(tenant, key), SK), ConsistentRead=True
            )
        found = answer.get("Item")
        return None if found is None else _effect(found)


def _pk(tenant: str, key: str) -> str:
    return f"T#{tenant}#EFFECT#{key}"


def _item(effect: Effect) -> Item:
    """Raises `ItemTooLarge`."""
    item = {
        **items.key(_pk(effect.tenant, effect.key), SK),
        "st": text(effect.status),
        "owner": text(effect.owner),
        "tool": text(effect.tool),
        "saga": text(effect.saga),
        "slot": text(effect.slot),
        "until": number(effect.until),
        "created": number(effect.first),
        "updated": number(effect.updated),
    }
    item |= {name: text(value) for name, field in _TEXTS.items() if (value := getattr(effect, field))}
    if effect.generation:
        item["gen"] = number(effect.generation)
    if effect.shared_until:
        item["shared"] = number(effect.shared_until)
    if effect.expires:
        item["ttl"] = number(-(-effect.expires // 1_000))
    if effect.data:
        item["d"] = {"B": pack(effect.data, items.item_size(item) + len("d"), ITEM_BYTES)}
    return item


def _effect(item: StoredItem) -> Effect:
    """Raises `CorruptLog`."""
    try:
        tenant, _, key = item["pk"]["S"].removeprefix("T#").rpartition("#EFFECT#")
        return Effect(
            tenant=tenant,
            key=key,
            status=item["st"]["S"],
            owner=item["owner"]["S"],
            tool=item["tool"]["S"],
            saga=item["saga"]["S"],
            slot=item["slot"]["S"],
            until=int(item["until"]["N"]),
            first=int(item["created"]["N"]),
            updated=int(item["updated"]["N"]),
            generation=int(item["gen"]["N"]) if "gen" in item else 0,
            data=unpack(item["d"]["B"]) if "d" in item else b"",
            shared_until=int(item["shared"]["N"]) if "shared" in item else 0,
            expires=int(item["ttl"]["N"]) * 1_000 if "ttl" in item else 0,
            **{field: item[name]["S"] for name, field in _TEXTS.items() if name in item},
        )
    except (KeyError, ValueError, CorruptLog) as error:
        raise CorruptLog(f"effect {item.get('pk')} cannot be read: {error!r}") from error
