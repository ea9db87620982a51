"""`Schedules` in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from baton.adapters.memory.log import MemoryLog
from baton.core.schedules.record import ScheduleRecord
from baton.ports.schedules import ref_of


class MemorySchedules:
    """Records by tenant and workflow, in the due index of their log; one lock makes every call atomic."""

    def __init__(self, log: MemoryLog) -> None:
        self._lock = threading.Lock()
        self._log = log
        self._records: dict[tuple[str, str], ScheduleRecord] = {}

    def read_schedule(self, tenant: str, workflow: str) -> ScheduleRecord | None:
        with self._lock:
            return self._records.get((tenant, workflow))

    def write_schedule(self, record: ScheduleRecord) -> bool:
        key = record.tenant, record.workflow
        with self._lock:
            there = self._records.get(key)
            if there == record:
                return True
            if (0 if there is None else there.number) != record.number - 1:
                return False
            self._records[key] = record
            self._log.move(ref_of(*key), 0 if there is None else there.due, record.due)
        return True

    def listed(self, tenant: str, after: str, limit: int) -> tuple[Sequence[ScheduleRecord], str]:
        with self._lock:
            names = sorted(name for owner, name in self._records if owner == tenant and name > after)
            page = [self._records[tenant, name] for name in names[:limit]]
        return page, names[limit - 1] if len(names) > limit else ""
