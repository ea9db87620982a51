"""The requests that many DynamoDB adapters make: put an item that must be new or the next version, and query to the end.

Which items and which conditions beyond that is the business of log.py and definitions.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from baton.adapters.aws import ConditionFailed, translated
from baton.adapters.dynamo.items import names_in, number

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item, StoredItem


def put_new(client: DynamoDBClient, table: str, item: Item) -> bool:
    """False, and nothing written, when an item has that key already."""
    try:
        with translated():
            client.put_item(TableName=table, Item=item, ConditionExpression="attribute_not_exists(pk)")
    except ConditionFailed:
        return False
    return True


def put_version(client: DynamoDBClient, table: str, item: Item, version: int) -> StoredItem | None:
    """Put an item whose `ver` is the version that follows the one that is there; 1 is the first.

    None once it is put. Otherwise the item that is there, empty when there is none.
    """
    condition = "#ver = :seen" if version > 1 else "attribute_not_exists(#pk)"
    request: Any = {
        "TableName": table,
        "Item": item,
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names_in(condition),
        "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
    }
    if version > 1:
        request["ExpressionAttributeValues"] = {":seen": number(version - 1)}
    try:
        with translated():
            client.put_item(**request)
    except ConditionFailed as refused:
        return refused.item or {}
    return None


def query(
    client: DynamoDBClient, table: str, request: dict[str, Any], limit: int | None = None
) -> Iterator[StoredItem]:
    """All items that match, or the first `limit`, whatever the number of pages: one ends at 1 MB."""
    while limit is None or limit > 0:
        if limit is not None:
            request["Limit"] = limit
        with translated():
            page = client.query(TableName=table, **request)
        yield from page["Items"]
        if "LastEvaluatedKey" not in page:
            return
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        limit = None if limit is None else limit - len(page["Items"])
