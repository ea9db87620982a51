"""Circuit breakers and schedules on DynamoDB."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from baton.adapters.dynamo import items
from baton.adapters.dynamo.items import ITEM_BYTES, number, text_attribute
from baton.adapters.dynamo.table import TablePort
from baton.core.failures import quoted
from baton.core.failures.breakers import CLOSED, OPEN, Breaker, Move
from baton.core.schedules import ScheduleRecord
from baton.errors import CorruptLog
from baton.ports.log import TIMER, pack, shard_of, unpack
from baton.ports.triggers import schedule_ref

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from baton.adapters.dynamo.items import Item, StoredItem

KEPT_MS = 30 * 86_400_000

_encode = msgspec.json.Encoder().encode
_decode_breaker = msgspec.json.Decoder(Breaker).decode


class DynamoBreakers(TablePort):
    """`Breakers` on one table."""

    def read_breaker(self, tenant: str, target: str) -> Breaker | None:
        found = self._get(items.key(_pk(tenant), target), is_consistent=False)
        return breaker_of(found) if found else None

    def write_breaker(self, tenant: str, target: str, breaker: Breaker, now: int) -> Breaker | None:
        item: Item = {**items.key(_pk(tenant), target), "ver": number(breaker.version)}
        if breaker.state != OPEN or breaker.until:
            item["ttl"] = items.ttl(now + KEPT_MS)
        item["d"] = {"B": pack(_encode(breaker), items.item_size(item) + len("d"), ITEM_BYTES)}
        there = self._put_version(item, breaker.version)
        if there is None:
            return None
        return breaker_of(there) if there else Breaker()

    def all(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[tuple[str, Breaker]]:
        return [(item["sk"]["S"], _shown(item)) for item in self._after(_pk(tenant), after, limit)]


def _pk(tenant: str) -> str:
    """Return the partition key of the circuit breakers of a tenant, the target as sort key."""
    return f"T#{tenant}#BREAKERS"


def _shown(item: StoredItem) -> Breaker:
    """Decode a breaker. One that cannot be read is shown as such, so that the others can be seen."""
    try:
        return breaker_of(item)
    except CorruptLog as error:
        return Breaker(
            version=int(item.get("ver", {"N": "0"})["N"]),
            moves=(Move(0, CLOSED, quoted(str(error), 300), ""),),
        )


def breaker_of(item: StoredItem) -> Breaker:
    """Decode a breaker. Raises `CorruptLog`."""
    try:
        return _decode_breaker(unpack(item["d"]["B"]))
    except (KeyError, ValueError, CorruptLog) as error:
        raise CorruptLog(f"breaker {item.get('sk')} cannot be read: {error!r}") from error


_decode_schedule = msgspec.json.Decoder(ScheduleRecord).decode


class DynamoSchedules(TablePort):
    """`Schedules` of one deployment, in its own table. `shards`: of the due index."""

    def __init__(self, client: DynamoDBClient, table: str, shards: int) -> None:
        super().__init__(client, table)
        self._shards = shards

    def read_schedule(self, tenant: str, workflow: str) -> ScheduleRecord | None:
        return self._read(tenant, workflow, is_consistent=True)

    def _read(self, tenant: str, workflow: str, *, is_consistent: bool) -> ScheduleRecord | None:
        found = self._get(_schedule_key(tenant, workflow), is_consistent=is_consistent)
        return _record(found) if found else None

    def write_schedule(self, record: ScheduleRecord) -> bool:
        if record.number == 1:
            self._put(items.key(_names_pk(record.tenant), record.workflow))
        there = self._put_version(self._item(record), record.number)
        return there is None or (bool(there) and _record(there) == record)

    def _item(self, record: ScheduleRecord) -> Item:
        item = {**_schedule_key(record.tenant, record.workflow), "ver": number(record.number)}
        if record.due:
            shard = shard_of(schedule_ref(record.tenant, record.workflow).id, self._shards)
            item["due_shard"] = text_attribute(items.due_shard(TIMER, shard))
            item["due_at"] = number(record.due)
        item["d"] = {"B": pack(_encode(record), items.item_size(item) + len("d"), ITEM_BYTES)}
        return item

    def listed(self, tenant: str, after: str, limit: int) -> tuple[Sequence[ScheduleRecord], str]:
        names = self._sort_keys(_names_pk(tenant), after, limit + 1)
        found = (self._read(tenant, name, is_consistent=False) for name in names[:limit])
        # A crash before the first write of a record leaves its name alone.
        return [one for one in found if one is not None], names[limit - 1] if len(names) > limit else ""


def _names_pk(tenant: str) -> str:
    return f"T#{tenant}#SCHEDULES"


def _schedule_key(tenant: str, workflow: str) -> Item:
    return items.key(items.saga_pk(schedule_ref(tenant, workflow)), items.HEAD)


def _record(item: StoredItem) -> ScheduleRecord:
    """Decode a schedule. Raises `CorruptLog`."""
    try:
        return _decode_schedule(unpack(item["d"]["B"]))
    except (KeyError, ValueError, CorruptLog) as error:
        raise CorruptLog(f"the schedule {item.get('pk')} cannot be read: {error!r}") from error
