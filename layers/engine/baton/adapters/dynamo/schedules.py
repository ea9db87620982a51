"""`Schedules` on DynamoDB: an item that the due index has like the head of a saga, under an id that no saga has.

Besides, an item with the name of its workflow, put before the first write of the record: the list of a tenant's schedules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from baton.adapters.aws import translated
from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import names_in, number, text
from baton.adapters.dynamo.limits import ITEM_BYTES
from baton.adapters.dynamo.requests import put_version, query
from baton.adapters.rules import pack, shard_of, unpack
from baton.core.schedules.record import ScheduleRecord
from baton.errors import CorruptLog
from baton.ports.log import TIMER
from baton.ports.schedules import ref_of

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item, StoredItem

_NAMES = "#pk = :pk"
_NAMES_AFTER = f"{_NAMES} AND #sk > :after"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ScheduleRecord).decode


class DynamoSchedules:
    """The schedules of one deployment, in its own table. `shards`: of the due index."""

    def __init__(self, client: DynamoDBClient, table: str, shards: int) -> None:
        self._client, self._table, self._shards = client, table, shards

    def read_schedule(self, tenant: str, workflow: str) -> ScheduleRecord | None:
        return self._read(tenant, workflow, is_consistent=True)

    def _read(self, tenant: str, workflow: str, *, is_consistent: bool) -> ScheduleRecord | None:
        with translated():
            answer = self._client.get_item(
                TableName=self._table, Key=_key(tenant, workflow), ConsistentRead=is_consistent
            )
        return _record(answer["Item"]) if "Item" in answer else None

    def write_schedule(self, record: ScheduleRecord) -> bool:
        if record.number == 1:
            with translated():
                self._client.put_item(
                    TableName=self._table, Item=items.key(_names_pk(record.tenant), record.workflow)
                )
        there = put_version(self._client, self._table, self._item(record), record.number)
        return there is None or (bool(there) and _record(there) == record)

    def _item(self, record: ScheduleRecord) -> Item:
        item = {**_key(record.tenant, record.workflow), "ver": number(record.number)}
        if record.due:
            shard = shard_of(ref_of(record.tenant, record.workflow).id, self._shards)
            item["due_shard"] = text(items.due_shard(TIMER, shard))
            item["due_at"] = number(record.due)
        item["d"] = {"B": pack(_encode(record), items.item_size(item) + len("d"), ITEM_BYTES)}
        return item

    def listed(self, tenant: str, after: str, limit: int) -> tuple[Sequence[ScheduleRecord], str]:
        condition = _NAMES_AFTER if after else _NAMES
        request = {
            "KeyConditionExpression": condition,
            "ExpressionAttributeNames": names_in(condition),
            "ExpressionAttributeValues": {
                ":pk": text(_names_pk(tenant)),
                **({":after": text(after)} if after else {}),
            },
        }
        names = [item["sk"]["S"] for item in query(self._client, self._table, request, limit + 1)]
        found = (self._read(tenant, name, is_consistent=False) for name in names[:limit])
        # A crash before the first write of a record leaves its name alone.
        return [one for one in found if one is not None], names[limit - 1] if len(names) > limit else ""


def _names_pk(tenant: str) -> str:
    return f"T#{tenant}#SCHEDULES"


def _key(tenant: str, workflow: str) -> Item:
    return items.key(items.saga_pk(ref_of(tenant, workflow)), items.HEAD)


def _record(item: StoredItem) -> ScheduleRecord:
    """Raises `CorruptLog`."""
    try:
        return _decode(unpack(item["d"]["B"]))
    except (KeyError, ValueError, CorruptLog) as error:
        raise CorruptLog(f"the schedule {item.get('pk')} cannot be read: {error!r}") from error
