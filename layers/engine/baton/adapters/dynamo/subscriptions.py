"""`Subscriptions` on DynamoDB: an item for each type of event and workflow, so that one query finds the workflows of a type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from baton.adapters.aws import translated
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import names_in, text
from baton.adapters.dynamo.requests import query

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_ALL_OF = "#pk = :pk"


class DynamoSubscriptions:
    """The subscriptions of one deployment, in its own table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client, self._table = client, table

    def subscribe(self, tenant: str, type: str, workflow: str, user: str) -> None:
        item = {**items.key(_pk(tenant, type), workflow), "user": text(user)}
        with translated():
            self._client.put_item(TableName=self._table, Item=item)

    def subscribed(self, tenant: str, type: str, limit: int) -> Sequence[tuple[str, str]]:
        request = {
            "KeyConditionExpression": _ALL_OF,
            "ExpressionAttributeNames": names_in(_ALL_OF),
            "ExpressionAttributeValues": {":pk": text(_pk(tenant, type))},
            "ConsistentRead": True,
        }
        found = query(self._client, self._table, request, limit)
        return [(item["sk"]["S"], item["user"]["S"]) for item in found]


def _pk(tenant: str, type: str) -> str:
    return f"T#{tenant}#ON#{type}"
