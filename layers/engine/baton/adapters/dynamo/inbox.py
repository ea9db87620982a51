"""`Inbox` on DynamoDB: an item for each child that has ended, and a count on its parent's head.

The items are put in batches and expire by the table's TTL. When the count is cleared is in log.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from baton.adapters.aws import ConditionFailed, translated
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import names_in, number, saga_pk, text
from baton.adapters.dynamo.requests import query
from baton.errors import Throttled
from baton.ports import Report, SagaRef

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item

_AT_ONCE = 25  # puts of one request
_IS_DUE = "attribute_exists(#due_at)"
_ANNOUNCE = "ADD #inbox :one"
_WINDOW = "#pk = :pk"


class DynamoInbox:
    """`Inbox` on one table."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def leave(self, reports: Sequence[Report], until: int) -> None:
        # A request may name an item only once.
        new = list({_place(one): _item(one, until) for one in reports}.values())
        for first in range(0, len(new), _AT_ONCE):
            part: Any = [{"PutRequest": {"Item": item}} for item in new[first : first + _AT_ONCE]]
            with translated():
                done = self._client.batch_write_item(RequestItems={self._table: part})
            if done.get("UnprocessedItems"):
                raise Throttled("not all of a batch was put")  # what was is put again

    def announce(self, parent: SagaRef) -> bool:
        try:
            with translated():
                done = self._client.update_item(
                    TableName=self._table,
                    Key=items.key(saga_pk(parent), items.HEAD),
                    UpdateExpression=_ANNOUNCE,
                    ConditionExpression=_IS_DUE,
                    ExpressionAttributeNames=names_in(_ANNOUNCE, _IS_DUE),
                    ExpressionAttributeValues={":one": number(1)},
                    ReturnValues="ALL_OLD",
                )
        except ConditionFailed:
            return False
        return "owner" not in done["Attributes"]

    def read(self, parent: SagaRef, window: int) -> Sequence[Report]:
        request = {
            "KeyConditionExpression": _WINDOW,
            "ExpressionAttributeNames": names_in(_WINDOW),
            "ExpressionAttributeValues": {":pk": text(items.inbox_pk(parent, window))},
            "ConsistentRead": True,
        }
        places = (item["sk"]["S"].rpartition("#") for item in query(self._client, self._table, request))
        return [Report(parent, window, slot, child) for slot, _, child in places]


def _place(report: Report) -> tuple[str, str]:
    return items.inbox_pk(report.parent, report.window), f"{report.slot}#{report.child}"


def _item(report: Report, until: int) -> Item:
    return {**items.key(*_place(report)), "ttl": items.ttl(until)}
