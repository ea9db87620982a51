"""The records of schedules: one for each workflow that has one, found by the due index like a saga.

What a record means is in core/schedules/record.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from baton.core.schedules.record import ScheduleRecord
from baton.ports.log import SCHEDULE, SagaRef


class Schedules(Protocol):
    """Every change is one conditional write of the whole record."""

    def read_schedule(self, tenant: str, workflow: str) -> ScheduleRecord | None:
        """Strongly consistent."""
        ...

    def write_schedule(self, record: ScheduleRecord) -> bool:
        """Put a record in the place of the one whose `number` is one less (0: of none). False, and nothing written, if another is there.

        A write that is repeated because its answer was lost finds itself there: True. The record is in lane `timer` of the due
        index at `due`, and in none where that is 0.
        """
        ...

    def listed(self, tenant: str, after: str, limit: int) -> tuple[Sequence[ScheduleRecord], str]:
        """A tenant's records of `limit` workflows behind `after`, by name, and the last name if there are more of them.

        Records without a schedule are among them. Eventually consistent.
        """
        ...


def ref_of(tenant: str, workflow: str) -> SagaRef:
    """By what the due index and messages call a schedule."""
    return SagaRef(tenant, SCHEDULE + workflow)
