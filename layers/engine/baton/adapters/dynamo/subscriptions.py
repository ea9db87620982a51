"""`Subscriptions` on DynamoDB: an item for each type of event and workflow, so that one query finds the workflows of a type."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from baton.adapters.aws import ConditionFailed, translated
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import names_in, number, text
from baton.adapters.dynamo.requests import query

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ALL_OF = "#pk = :pk"
_IS_ONE = "attribute_exists(#user)"
_NOT_LATER = "attribute_not_exists(#ver) OR #ver <= :version"
_EARLIER = "attribute_exists(#pk) AND (attribute_not_exists(#ver) OR #ver < :version)"
_GIVE_UP = "SET #ver = :version, #ttl = :ttl REMOVE #user"


class DynamoSubscriptions:
    """The subscriptions of one deployment, in its own table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client, self._table = client, table

    def subscribe(self, tenant: str, type: str, workflow: str, user: str, version: int) -> None:
        item = {**items.key(_pk(tenant, type), workflow), "user": text(user), "ver": number(version)}
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
            "ExpressionAttributeValues": {":pk": text(_pk(tenant, type))},
            "ConsistentRead": True,
        }
        found = query(self._client, self._table, request, limit)
        return [
            (item["sk"]["S"], item["user"]["S"], int(item["ver"]["N"]) if "ver" in item else 0)
            for item in found
        ]


def _pk(tenant: str, type: str) -> str:
    return f"T#{tenant}#ON#{type}"
