"""Base of the ports on the table: its requests, with the ports' errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from baton.adapters.aws import ConditionFailed, translated
from baton.adapters.dynamo.items import names_in, number
from baton.errors import Throttled

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item, StoredItem

_AT_ONCE = 25  # puts of one request


class TablePort:
    """Base class of a port on one table.

    Expressions write an attribute `owner` as `#owner`. `table`: another table than the port's own. `options`
    are those of the request, as DynamoDB names them.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client, self._table = client, table

    def _get(self, key: Item, *, is_consistent: bool = True, table: str = "") -> StoredItem:
        """Return an item, empty if there is none."""
        with translated():
            found = self._client.get_item(
                TableName=table or self._table, Key=key, ConsistentRead=is_consistent
            )
        return found.get("Item", {})

    def _put(
        self, item: Item, condition: str = "", values: Item | None = None, table: str = "", **options: Any
    ) -> StoredItem:
        """Put an item, and return what `ReturnValues` asks for. Raises `ConditionFailed`."""
        if condition:
            options["ConditionExpression"] = condition
            options["ExpressionAttributeNames"] = names_in(condition)
        if values:
            options["ExpressionAttributeValues"] = values
        with translated():
            done = self._client.put_item(TableName=table or self._table, Item=item, **options)
        return done.get("Attributes", {})

    def _put_or_read(
        self, item: Item, condition: str, values: Item | None = None, table: str = ""
    ) -> StoredItem | None:
        """Put an item and return None. Where the condition does not hold, return the stored item."""
        try:
            # As fresh as a strongly consistent read, and free.
            self._put(item, condition, values, table, ReturnValuesOnConditionCheckFailure="ALL_OLD")
        except ConditionFailed as refused:
            return refused.item
        return None

    def _put_new(self, item: Item) -> bool:
        """Put an item with a new key. Return false, and write nothing, if an item has the key already."""
        try:
            self._put(item, "attribute_not_exists(#pk)")
        except ConditionFailed:
            return False
        return True

    def _put_version(self, item: Item, version: int) -> StoredItem | None:
        """Put the version after the stored one, from 1. Return None, else the stored item or an empty one."""
        if version > 1:
            return self._put_or_read(item, "#ver = :seen", {":seen": number(version - 1)})
        return self._put_or_read(item, "attribute_not_exists(#pk)")

    def _put_all(self, items: Sequence[Item]) -> None:
        """Put items, none of them twice. Raises `Throttled` if some were not put."""
        for first in range(0, len(items), _AT_ONCE):
            part: Any = [{"PutRequest": {"Item": item}} for item in items[first : first + _AT_ONCE]]
            with translated():
                done = self._client.batch_write_item(RequestItems={self._table: part})
            if done.get("UnprocessedItems"):
                raise Throttled("not all of a batch was put")  # what was is put again

    def _update(
        self,
        key: Item,
        update: str,
        condition: str,
        values: Item,
        *,
        names: Mapping[str, str] | None = None,
        table: str = "",
        **options: Any,
    ) -> StoredItem:
        """Update an item. Return what `ReturnValues` asks for. `names`: in place of the expressions'."""
        if condition:
            options["ConditionExpression"] = condition
        with translated():
            done = self._client.update_item(
                TableName=table or self._table,
                Key=key,
                UpdateExpression=update,
                ExpressionAttributeNames=names or names_in(update, condition),
                ExpressionAttributeValues=values,
                **options,
            )
        return done.get("Attributes", {})

    def _transact(self, writes: Sequence[Mapping[str, Any]], invalid: type[Exception] | None = None) -> None:
        """Write several items or none. Raises `ConditionFailed`, and `invalid` as `translated` does."""
        request: Any = list(writes)
        with translated(invalid):
            self._client.transact_write_items(TransactItems=request)

    def _query(
        self, condition: str, values: Item, limit: int | None = None, table: str = "", **options: Any
    ) -> Iterator[StoredItem]:
        """Yield all items that match, or the first `limit`, of any number of pages: a page ends at 1 MB."""
        while limit is None or limit > 0:
            if limit is not None:
                options["Limit"] = limit
            found, last = self._page(condition, values, table, **options)
            yield from found
            if last is None:
                return
            options["ExclusiveStartKey"] = last
            limit = None if limit is None else limit - len(found)

    def _page(
        self, condition: str, values: Item, table: str = "", **options: Any
    ) -> tuple[Sequence[StoredItem], StoredItem | None]:
        """Return the items of one page, and the key that the next one follows, None after the last."""
        others = (options.get("FilterExpression", ""), options.get("ProjectionExpression", ""))
        with translated():
            page = self._client.query(
                TableName=table or self._table,
                KeyConditionExpression=condition,
                ExpressionAttributeNames=names_in(condition, *others),
                ExpressionAttributeValues=values,
                **options,
            )
        return page["Items"], page.get("LastEvaluatedKey")

    def _sort_keys(self, pk: str, after: str, limit: int | None, **options: Any) -> list[str]:
        """Return the sort keys of a partition that follow `after`."""
        return [item["sk"]["S"] for item in self._after(pk, after, limit, **options)]

    def _after(self, pk: str, after: str, limit: int | None, **options: Any) -> Iterator[StoredItem]:
        """Yield the items of a partition whose sort keys follow `after`; empty: all."""
        values: Item = {":pk": {"S": pk}, **({":after": {"S": after}} if after else {})}
        condition = "#pk = :pk AND #sk > :after" if after else "#pk = :pk"
        return self._query(condition, values, limit, **options)
