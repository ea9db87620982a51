"""The toy store's schedules."""

from __future__ import annotations

from collections.abc import Sequence

from baton.core.schedules import ScheduleRecord
from baton.ports import SagaRef
from baton.ports.log import shard_of
from baton.ports.triggers import schedule_ref
from tests.contract.toy_table import Kept


class ToySchedules:
    """`Schedules`."""

    def __init__(self, kept: Kept, shards: int) -> None:
        self._kept, self._shards = kept, shards

    def read_schedule(self, tenant: str, workflow: str) -> ScheduleRecord | None:
        return self._kept.get("schedule", tenant, workflow, ScheduleRecord)

    def write_schedule(self, record: ScheduleRecord) -> bool:
        with self._kept.alone():
            there = self.read_schedule(record.tenant, record.workflow)
            if there == record:
                return True
            if (there.number if there else 0) != record.number - 1:
                return False
            self._kept.put("schedule", record.tenant, record.workflow, record)
            return True

    def listed(self, tenant: str, after: str, limit: int) -> tuple[Sequence[ScheduleRecord], str]:
        found = [one for of, _, one in self._kept.all("schedule", ScheduleRecord) if of == tenant]
        left = sorted((one for one in found if one.workflow > after), key=lambda one: one.workflow)
        return left[:limit], left[limit - 1].workflow if len(left) > limit else ""

    def due(self, shard: int) -> list[tuple[int, str, SagaRef]]:
        """Those in a shard of the due index: when, and what."""
        found = [one for _, _, one in self._kept.all("schedule", ScheduleRecord) if one.due]
        refs = [(one.due, schedule_ref(one.tenant, one.workflow)) for one in found]
        return [(due, str(ref), ref) for due, ref in refs if shard_of(ref.id, self._shards) == shard]
