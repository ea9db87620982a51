"""Registered workflow documents on DynamoDB, one item a version, and the list of a tenant's names.

What items look like is in `dynamo_items`; the documents themselves are blobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from baton.adapters import dynamo_items as items
from baton.adapters.aws import ConditionFailed, translated
from baton.adapters.dynamo_items import names_in, text
from baton.ports import Definition

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo_items import Item

_IS_NEW = "attribute_not_exists(pk)"
_ALL_OF = "#pk = :pk"


class DynamoDefinitions:
    """`Definitions` on one table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def put(self, definition: Definition) -> bool:
        # The name first: a crash in between leaves a name without a version, which the next try mends.
        # The other order would leave a workflow that no list shows.
        self._put_new(items.key(items.names_pk(definition.tenant), definition.name))
        return self._put_new(items.definition_item(definition))

    def _put_new(self, item: Item) -> bool:
        try:
            with translated():
                self._client.put_item(TableName=self._table, Item=item, ConditionExpression=_IS_NEW)
        except ConditionFailed:
            return False
        return True

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        pk = items.definition_pk(tenant, name)
        if version is None:
            with translated():
                newest = self._client.query(
                    TableName=self._table,
                    KeyConditionExpression=_ALL_OF,
                    ExpressionAttributeNames=names_in(_ALL_OF),
                    ExpressionAttributeValues={":pk": text(pk)},
                    ScanIndexForward=False,
                    ConsistentRead=True,
                    Limit=1,
                )
            found = newest["Items"][0] if newest["Items"] else None
        else:
            with translated():
                answer = self._client.get_item(
                    TableName=self._table,
                    Key=items.key(pk, items.definition_sk(version)),
                    ConsistentRead=True,
                )
            found = answer.get("Item")
        return None if found is None else items.definition_of(found, tenant, name)

    def names(self, tenant: str) -> Sequence[str]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression=_ALL_OF,
            ExpressionAttributeNames=names_in(_ALL_OF),
            ExpressionAttributeValues={":pk": text(items.names_pk(tenant))},
            ConsistentRead=True,
        )
        with translated():
            return [item["sk"]["S"] for page in pages for item in page["Items"]]
