"""Registered workflow documents on DynamoDB, one item a version, and the list of a tenant's names.

What items look like is in `dynamo_items`; the documents themselves are blobs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from baton.adapters import dynamo_items as items
from baton.adapters.aws import translated
from baton.adapters.dynamo_items import names_in, text
from baton.adapters.dynamo_requests import put_new, query
from baton.ports import Definition

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo_items import StoredItem

_ALL_OF = "#pk = :pk"


class DynamoDefinitions:
    """`Definitions` on one table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def put(self, definition: Definition) -> bool:
        # The name first: a crash in between leaves a name without a version, which the next try mends.
        # The other order would leave a workflow that no list shows.
        put_new(self._client, self._table, items.key(items.names_pk(definition.tenant), definition.name))
        return put_new(self._client, self._table, items.definition_item(definition))

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        pk = items.definition_pk(tenant, name)
        if version is None:
            found = next(self._all_of(pk, 1, newest_first=True), None)
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
        return [item["sk"]["S"] for item in self._all_of(items.names_pk(tenant))]

    def _all_of(
        self, pk: str, limit: int | None = None, *, newest_first: bool = False
    ) -> Iterator[StoredItem]:
        return query(
            self._client,
            self._table,
            {
                "KeyConditionExpression": _ALL_OF,
                "ExpressionAttributeNames": names_in(_ALL_OF),
                "ExpressionAttributeValues": {":pk": text(pk)},
                "ScanIndexForward": not newest_first,
                "ConsistentRead": True,
            },
            limit,
        )
