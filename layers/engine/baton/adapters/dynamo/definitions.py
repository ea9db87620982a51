"""Registered documents, their rules for events, and counters of requests on DynamoDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from baton.adapters.aws import ConditionFailed, translated
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import attribute, names_in, number, put_new, query, text_attribute
from baton.errors import CorruptLog
from baton.ports import Definition

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item, StoredItem

_ALL_OF = "#pk = :pk"
_ABOVE = "#pk = :pk AND #sk > :after"


class DynamoDefinitions:
    """`Definitions` on one table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def put(self, definition: Definition) -> bool:
        # The name first: a crash in between leaves a name without a version, which the next try mends.
        # The other order would leave a workflow that no list shows.
        put_new(self._client, self._table, items.key(items.names_pk(definition.tenant), definition.name))
        return put_new(self._client, self._table, _item(definition))

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        if version is None:
            return next(iter(self.versions(tenant, name, 1)), None)
        with translated():
            answer = self._client.get_item(
                TableName=self._table,
                Key=items.key(items.definition_pk(tenant, name), items.definition_sk(version)),
                ConsistentRead=True,
            )
        found = answer.get("Item")
        return None if found is None else _definition(found, tenant, name)

    def versions(self, tenant: str, name: str, limit: int) -> Sequence[Definition]:
        found = self._query(
            _ALL_OF, {":pk": text_attribute(items.definition_pk(tenant, name))}, limit, newest=True
        )
        return [_definition(item, tenant, name) for item in found]

    def names(self, tenant: str, after: str = "", limit: int | None = None) -> Sequence[str]:
        values = {":pk": text_attribute(items.names_pk(tenant))}
        if after:
            values[":after"] = text_attribute(after)
        found = self._query(_ABOVE if after else _ALL_OF, values, limit)
        return [item["sk"]["S"] for item in found]

    def _query(
        self, condition: str, values: Item, limit: int | None, *, newest: bool = False
    ) -> Iterator[StoredItem]:
        return query(
            self._client,
            self._table,
            {
                "KeyConditionExpression": condition,
                "ExpressionAttributeNames": names_in(condition),
                "ExpressionAttributeValues": values,
                "ScanIndexForward": not newest,
                "ConsistentRead": True,
            },
            limit,
        )


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
    }


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


class DynamoRates:
    """`Rates` on one table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def spend(self, tenant: str, window: int, count: int) -> int:
        with translated():
            answer = self._client.update_item(
                TableName=self._table,
                Key=items.key(items.rate_pk(tenant), items.rate_sk(window)),
                UpdateExpression=_SPEND,
                ExpressionAttributeNames=names_in(_SPEND),
                ExpressionAttributeValues={
                    ":count": number(count),
                    ":ttl": number(window // 1_000 + _KEPT_S),
                },
                ReturnValues="UPDATED_OLD",
            )
        before = answer.get("Attributes", {})
        return int(before["spent"]["N"]) if "spent" in before else 0


_IS_ONE = "attribute_exists(#user)"
_NOT_LATER = "attribute_not_exists(#ver) OR #ver <= :version"
_EARLIER = "attribute_exists(#pk) AND (attribute_not_exists(#ver) OR #ver < :version)"
_GIVE_UP = "SET #ver = :version, #ttl = :ttl REMOVE #user"


class DynamoSubscriptions:
    """`Subscriptions` of one deployment, in its own table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client, self._table = client, table

    def subscribe(self, tenant: str, type: str, workflow: str, user: str, version: int) -> None:
        item = {
            **items.key(_pk(tenant, type), workflow),
            "user": text_attribute(user),
            "ver": number(version),
        }
        with suppress(ConditionFailed), translated():
            self._client.put_item(
                TableName=self._table,
                Item=item,
                ConditionExpression=_NOT_LATER,
                ExpressionAttributeNames=names_in(_NOT_LATER),
                ExpressionAttributeValues={":version": number(version)},
            )

    def unsubscribe(self, tenant: str, type: str, workflow: str, version: int, expires: int) -> None:
        # An update, because what it leaves refuses a subscription that lands late; and no function may delete items.
        with suppress(ConditionFailed), translated():
            self._client.update_item(
                TableName=self._table,
                Key=items.key(_pk(tenant, type), workflow),
                UpdateExpression=_GIVE_UP,
                ConditionExpression=_EARLIER,
                ExpressionAttributeNames=names_in(_GIVE_UP, _EARLIER),
                ExpressionAttributeValues={":version": number(version), ":ttl": items.ttl(expires)},
            )

    def subscribed(self, tenant: str, type: str, limit: int) -> Sequence[tuple[str, str, int]]:
        request = {
            "KeyConditionExpression": _ALL_OF,
            "FilterExpression": _IS_ONE,
            "ExpressionAttributeNames": names_in(_ALL_OF, _IS_ONE),
            "ExpressionAttributeValues": {":pk": text_attribute(_pk(tenant, type))},
            "ConsistentRead": True,
        }
        found = query(self._client, self._table, request, limit)
        return [
            (item["sk"]["S"], item["user"]["S"], int(item["ver"]["N"]) if "ver" in item else 0)
            for item in found
        ]


def _pk(tenant: str, type: str) -> str:
    return f"T#{tenant}#ON#{type}"
