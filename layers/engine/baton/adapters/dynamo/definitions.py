"""Registered documents, their rules for events, and counters of requests on DynamoDB."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from baton.adapters.aws import ConditionFailed
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import attribute, number, text_attribute
from baton.adapters.dynamo.table import TablePort
from baton.core.log.records import Parked
from baton.errors import CorruptLog
from baton.ports import Definition
from baton.ports.records import Tag, TagMove

if TYPE_CHECKING:
    from baton.adapters.dynamo.items import Item, StoredItem


_Pauses = tuple[Parked, ...]
_Moves = tuple[TagMove, ...]


class DynamoDefinitions(TablePort):
    """`Definitions` on one table."""

    def put(self, definition: Definition) -> bool:
        # The name first: a crash in between leaves a name without a version, which the next try mends.
        # The other order would leave a workflow that no list shows.
        self._put_new(items.key(items.names_pk(definition.tenant), definition.name))
        return self._put_new(_item(definition))

    def write_pauses(self, seen: Definition, pauses: Sequence[Parked]) -> bool:
        condition = "#pauses = :seen" if seen.pauses else "attribute_not_exists(#pauses)"
        if seen.version:
            condition = f"attribute_exists(#pk) AND {condition}"
        values = {":seen": text_attribute(_pauses(seen.pauses))} if seen.pauses else {}
        try:
            self._put(_item(msgspec.structs.replace(seen, pauses=tuple(pauses))), condition, values)
        except ConditionFailed:
            return False
        return True

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        if version is None:
            return next(iter(self.versions(tenant, name, 1)), None)
        found = self._get(items.key(items.definition_pk(tenant, name), items.definition_sk(version)))
        return _definition(found, tenant, name) if found else None

    def versions(self, tenant: str, name: str, limit: int) -> Sequence[Definition]:
        pk = items.definition_pk(tenant, name)
        found = self._after(pk, "", limit, ScanIndexForward=False, ConsistentRead=True)
        return [_definition(item, tenant, name) for item in found]

    def names(self, tenant: str, after: str = "", limit: int | None = None) -> Sequence[str]:
        return self._sort_keys(items.names_pk(tenant), after, limit, ConsistentRead=True)

    def tag(self, tenant: str, workflow: str, name: str) -> Tag | None:
        found = self._get(items.key(items.tags_pk(tenant, workflow), name))
        return _tag(found, tenant, workflow) if found else None

    def tags(self, tenant: str, workflow: str) -> Sequence[Tag]:
        found = self._after(items.tags_pk(tenant, workflow), "", None, ConsistentRead=True)
        return [_tag(item, tenant, workflow) for item in found]

    def write_tag(self, tag: Tag) -> bool:
        item: Item = {
            **items.key(items.tags_pk(tag.tenant, tag.workflow), tag.name),
            "ver": number(tag.writes),
            "moves": text_attribute(msgspec.json.encode(tag.moves).decode()),
        }
        return self._put_version(item, tag.writes) is None


def _tag(item: StoredItem, tenant: str, workflow: str) -> Tag:
    """Decode an item. Raises `CorruptLog`."""
    try:
        return Tag(
            tenant=tenant,
            workflow=workflow,
            name=item["sk"]["S"],
            writes=int(item["ver"]["N"]),
            moves=msgspec.json.decode(item["moves"]["S"], type=_Moves),
        )
    except (KeyError, ValueError) as error:
        raise CorruptLog(f"a tag of {workflow} of {tenant} cannot be read: {error!r}") from error


def _item(definition: Definition) -> Item:
    types: list[Any] = [definition.types, definition.past]
    if definition.heard:
        types.append(definition.heard)
    return {
        **items.key(
            items.definition_pk(definition.tenant, definition.name), items.definition_sk(definition.version)
        ),
        "gh": text_attribute(definition.graph),
        "doc": text_attribute(definition.document),
        "created": number(definition.created),
        "by": text_attribute(definition.by),
        **({"types": attribute(types)} if any(types) else {}),
        **({"pauses": text_attribute(_pauses(definition.pauses))} if definition.pauses else {}),
        **({"mcp": {"BOOL": True}} if definition.mcp else {}),
        **({"message": text_attribute(definition.description)} if definition.description else {}),
    }


def _pauses(pauses: Sequence[Parked]) -> str:
    return msgspec.json.encode(pauses).decode()


def _definition(item: StoredItem, tenant: str, name: str) -> Definition:
    """Decode an item. Raises `CorruptLog`."""
    try:
        return Definition(
            tenant=tenant,
            name=name,
            version=int(item["sk"]["S"].removeprefix("V#")),
            graph=item["gh"]["S"],
            document=item["doc"]["S"],
            created=int(item["created"]["N"]),
            by=item["by"]["S"],
            types=_types(item, 0),
            past=_types(item, 1),
            heard=_heard(item),
            pauses=msgspec.json.decode(item["pauses"]["S"], type=_Pauses) if "pauses" in item else (),
            mcp="mcp" in item,
            description=item["message"]["S"] if "message" in item else "",
        )
    except (KeyError, ValueError) as error:
        raise CorruptLog(f"definition {name} of {tenant} cannot be read: {error!r}") from error


def _types(item: StoredItem, which: int) -> tuple[str, ...]:
    return tuple(one["S"] for one in item["types"]["L"][which]["L"]) if "types" in item else ()


def _heard(item: StoredItem) -> tuple[tuple[str, str, int], ...]:
    found = item["types"]["L"][2:] if "types" in item else ()
    rows = [one["L"] for each in found for one in each["L"]]
    return tuple((kind["S"], key["S"], int(until["N"])) for kind, key, until in rows)


_KEPT_S = 3_600
_SPEND = "SET #ttl = :ttl ADD #spent :count"


class DynamoRates(TablePort):
    """`Rates` on one table."""

    def spend(self, tenant: str, window: int, count: int) -> int:
        values = {":count": number(count), ":ttl": number(window // 1_000 + _KEPT_S)}
        place = items.key(items.rate_pk(tenant), items.rate_sk(window))
        before = self._update(place, _SPEND, "", values, ReturnValues="UPDATED_OLD")
        return int(before["spent"]["N"]) if "spent" in before else 0


_IS_ONE = "attribute_exists(#user)"
_NOT_LATER = "attribute_not_exists(#ver) OR #ver <= :version"
_EARLIER = "attribute_exists(#pk) AND (attribute_not_exists(#ver) OR #ver < :version)"
_GIVE_UP = "SET #ver = :version, #ttl = :ttl REMOVE #user"


class DynamoSubscriptions(TablePort):
    """`Subscriptions` of one deployment, in its own table."""

    def subscribe(self, tenant: str, type: str, workflow: str, user: str, version: int) -> None:
        item = {
            **items.key(_pk(tenant, type), workflow),
            "user": text_attribute(user),
            "ver": number(version),
        }
        with suppress(ConditionFailed):
            self._put(item, _NOT_LATER, {":version": number(version)})

    def unsubscribe(self, tenant: str, type: str, workflow: str, version: int, expires: int) -> None:
        # An update, because what it leaves refuses a subscription that lands late; and no function may delete items.
        values = {":version": number(version), ":ttl": items.ttl(expires)}
        with suppress(ConditionFailed):
            self._update(items.key(_pk(tenant, type), workflow), _GIVE_UP, _EARLIER, values)

    def subscribed(self, tenant: str, type: str, limit: int) -> Sequence[tuple[str, str, int]]:
        pk = _pk(tenant, type)
        found = self._after(pk, "", limit, FilterExpression=_IS_ONE, ConsistentRead=True)
        return [
            (item["sk"]["S"], item["user"]["S"], int(item["ver"]["N"]) if "ver" in item else 0)
            for item in found
        ]


def _pk(tenant: str, type: str) -> str:
    return f"T#{tenant}#ON#{type}"
