"""Effects that happen once, versioned entities, and threads of agents, on DynamoDB."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from baton.adapters.aws import ConditionFailed
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import ITEM_BYTES, number, text_attribute
from baton.adapters.dynamo.table import TablePort
from baton.errors import CorruptLog
from baton.ports.log import pack, unpack
from baton.ports.outside import KEYS_KEPT, Entity, Written
from baton.ports.records import FREED, CheckpointRow, Effect

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import UniversalAttributeValueTypeDef

    from baton.adapters.dynamo.items import Item, StoredItem

SK = "EFFECT"
_MAY_CLAIM = "attribute_not_exists(#pk) OR #st = :freed"
_IS_AS_SEEN = "attribute_not_exists(#pk) OR (#owner = :owner AND #st = :status)"
# Attributes that are not there where they are empty.
_TEXTS = ("ref", "code", "message", "kind", "about", "scope", "by")


class DynamoEffects(TablePort):
    """`Effects` on one table."""

    def claim(self, effect: Effect) -> Effect | None:
        there = self._put_or_read(_item(effect), _MAY_CLAIM, {":freed": text_attribute(FREED)})
        return None if there is None else _effect(there)

    def change(self, seen: Effect, effect: Effect) -> Effect | None:
        before = {":owner": text_attribute(seen.owner), ":status": text_attribute(seen.status)}
        there = self._put_or_read(_item(effect), _IS_AS_SEEN, before)
        return None if there is None else _effect(there)

    def read(self, tenant: str, key: str) -> Effect | None:
        found = self._get(items.key(_pk(tenant, key), SK))
        return _effect(found) if found else None


def _pk(tenant: str, key: str) -> str:
    return f"T#{tenant}#EFFECT#{key}"


def _item(effect: Effect) -> Item:
    """Encode an effect. Raises `ItemTooLarge`."""
    item = {
        **items.key(_pk(effect.tenant, effect.key), SK),
        "st": text_attribute(effect.status),
        "owner": text_attribute(effect.owner),
        "tool": text_attribute(effect.tool),
        "saga": text_attribute(effect.saga),
        "slot": text_attribute(effect.slot),
        "until": number(effect.until),
        "created": number(effect.first),
        "updated": number(effect.updated),
    }
    item |= {name: text_attribute(value) for name in _TEXTS if (value := getattr(effect, name))}
    if effect.generation:
        item["gen"] = number(effect.generation)
    if effect.attempt:
        item["attempt"] = number(effect.attempt)
    if effect.shared_until:
        item["shared"] = number(effect.shared_until)
    if effect.expires:
        item["ttl"] = number(-(-effect.expires // 1_000))
    if effect.data:
        item["d"] = {"B": pack(effect.data, items.item_size(item) + len("d"), ITEM_BYTES)}
    return item


def _effect(item: StoredItem) -> Effect:
    """Decode an item. Raises `CorruptLog`."""
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
            attempt=int(item["attempt"]["N"]) if "attempt" in item else 0,
            data=unpack(item["d"]["B"]) if "d" in item else b"",
            shared_until=int(item["shared"]["N"]) if "shared" in item else 0,
            expires=int(item["ttl"]["N"]) * 1_000 if "ttl" in item else 0,
            **{name: item[name]["S"] for name in _TEXTS if name in item},
        )
    except (KeyError, ValueError, CorruptLog) as error:
        raise CorruptLog(f"effect {item.get('pk')} cannot be read: {error!r}") from error


_KEYS = "#keys = list_append(if_not_exists(#keys, :none), :key)"
_PUT = f"SET #d = :data, {_KEYS} REMOVE #was ADD #ver :one"
# What an item holds before the update, whatever else the update does.
_PUT_KEEPING = f"SET #d = :data, #was = if_not_exists(#d, :nothing), {_KEYS} ADD #ver :one"
# The version and the keys stay.
_DELETE = f"SET {_KEYS} REMOVE #d, #was ADD #ver :one"
_IS_OTHER = "(attribute_not_exists(#keys) OR NOT contains(#keys, :name))"
_IS_NONE = "attribute_not_exists(#d)"
_IS_THERE = "#ver = :expected AND attribute_exists(#d)"
# Half of the keys at once, so that it is done seldom; only if the item has not changed since.
_FORGET = "SET #keys = :kept"
_IS_STILL = "#ver = :ver"
_BESIDES = 6_000  # bytes of an item besides its data: both keys, and the keys of writes


class DynamoEntities(TablePort):
    """`Entities` in one table."""

    def put(
        self,
        tenant: str,
        type: str,
        id: str,
        data: Any,
        *,
        key: str,
        expected: int | None = None,
        keeps_before: bool = False,
    ) -> Written:
        values: dict[str, UniversalAttributeValueTypeDef] = {
            ":data": {"B": pack(msgspec.json.encode(data), _BESIDES, ITEM_BYTES)}
        }
        if keeps_before:
            values[":nothing"] = {"NULL": True}
        where = items.key(items.entity_pk(tenant, type), id)
        return self._write(where, _PUT_KEEPING if keeps_before else _PUT, key, expected, values)

    def delete(self, tenant: str, type: str, id: str, *, key: str, expected: int) -> Written:
        return self._write(items.key(items.entity_pk(tenant, type), id), _DELETE, key, expected, {})

    def _write(
        self,
        where: Item,
        update: str,
        key: str,
        expected: int | None,
        values: dict[str, UniversalAttributeValueTypeDef],
    ) -> Written:
        condition = _IS_OTHER
        values |= {
            ":none": {"L": []},
            ":key": {"L": [text_attribute(key)]},
            ":name": text_attribute(key),
            ":one": number(1),
        }
        if expected is not None:
            condition += f" AND {_IS_THERE if expected else _IS_NONE}"
        if expected:
            values[":expected"] = number(expected)
        try:
            written = self._update(
                where,
                update,
                condition,
                values,
                ReturnValues="UPDATED_NEW",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        except ConditionFailed as error:
            return _as_it_stands(error.item, key)
        if len(written["keys"]["L"]) >= KEYS_KEPT:
            self._forget(where, written)
        return Written(version=int(written["ver"]["N"]), is_new=True, before=_before(written))

    def _forget(self, where: Item, written: StoredItem) -> None:
        kept: Item = {":kept": {"L": written["keys"]["L"][KEYS_KEPT // 2 :]}, ":ver": written["ver"]}
        with suppress(ConditionFailed):  # the writer that came since does it
            self._update(where, _FORGET, _IS_STILL, kept)

    def get(self, tenant: str, type: str, id: str) -> Entity | None:
        item = self._get(items.key(items.entity_pk(tenant, type), id))
        if "d" not in item:
            return None
        return Entity(version=int(item["ver"]["N"]), data=msgspec.json.decode(unpack(item["d"]["B"])))


def _as_it_stands(item: Any, key: str) -> Written:
    """Return the earlier write with this key; or a conflict, with the stored version."""
    version = int(item["ver"]["N"]) if "ver" in item else 0
    names: Sequence[str] = [one["S"] for one in item.get("keys", {"L": []})["L"]]
    if key in names:
        since = len(names) - 1 - names.index(key)
        return Written(version=version - since, before=None if since else _before(item))
    return Written(version=version if "d" in item else 0, conflict=True)


def _before(item: Any) -> Entity | None:
    """Return the entity that the newest write of an item has replaced, if that was kept."""
    if "was" not in item:
        return None
    if "B" not in item["was"]:
        return Entity(version=0, data=None)
    return Entity(version=int(item["ver"]["N"]) - 1, data=msgspec.json.decode(unpack(item["was"]["B"])))


_IS_EMPTY = "attribute_not_exists(#d) AND attribute_not_exists(#ref)"
_IS_FULL = "attribute_exists(#d) OR attribute_exists(#ref)"
_BETWEEN = "#pk = :pk AND #sk BETWEEN :first AND :last"


class DynamoCheckpoints(TablePort):
    """`Checkpoints` in one table."""

    def put(self, tenant: str, thread: str, row: CheckpointRow, *, is_new: bool = False) -> bool:
        item: Item = items.key(items.thread_pk(tenant, thread), row.key)
        if row.data:
            item["d"] = {"B": pack(row.data, _BESIDES, ITEM_BYTES)}
        if row.ref:
            item["ref"] = text_attribute(row.ref)
        if row.expires:
            item["ttl"] = items.ttl(row.expires)
        try:
            self._put(item, _IS_EMPTY if is_new else "")
        except ConditionFailed:
            return False
        return True

    def rows(
        self, tenant: str, thread: str, first: str, last: str, limit: int | None = None
    ) -> Sequence[CheckpointRow]:
        values: Item = {
            ":pk": text_attribute(items.thread_pk(tenant, thread)),
            ":first": text_attribute(first),
            ":last": text_attribute(last),
        }
        options: dict[str, Any] = {"ConsistentRead": True, "ScanIndexForward": False}
        found = self._query(_BETWEEN, values, limit, FilterExpression=_IS_FULL, **options)
        return [_checkpoint_row(item) for item in found]

    def delete(self, tenant: str, thread: str, keys: Sequence[str], now: int) -> None:
        for key in keys:
            self._put({**items.key(items.thread_pk(tenant, thread), key), "ttl": items.ttl(now)})


def _checkpoint_row(item: StoredItem) -> CheckpointRow:
    return CheckpointRow(
        key=item["sk"]["S"],
        data=unpack(item["d"]["B"]) if "d" in item else b"",
        ref=item["ref"]["S"] if "ref" in item else "",
        expires=int(item["ttl"]["N"]) * 1_000 if "ttl" in item else 0,
    )
