"""Schedules and subscriptions to events: their records, and the ports to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from baton.core.schedules import ScheduleRecord
from baton.ports.log import SCHEDULE, SagaRef


class Schedules(Protocol):
    """Every change is one conditional write of the whole record."""

    def read_schedule(self, tenant: str, workflow: str) -> ScheduleRecord | None:
        """Strongly consistent."""
        ...

    def write_schedule(self, record: ScheduleRecord) -> bool:
        """Put a record in the place of the one whose `number` is one less (0: of none).
        False, and nothing written, if another is there.

        A write that is repeated because its answer was lost finds itself there: True. The
        record is in lane `timer` of the due index at `due`, and in none where that is 0.
        """
        ...

    def listed(self, tenant: str, after: str, limit: int) -> tuple[Sequence[ScheduleRecord], str]:
        """A tenant's records of `limit` workflows behind `after`, by name, and
        the last name if there are more of them.

        Records without a schedule are among them. Eventually consistent.
        """
        ...


def schedule_ref(tenant: str, workflow: str) -> SagaRef:
    """By what the due index and messages call a schedule."""
    return SagaRef(tenant, SCHEDULE + workflow)


class Subscriptions(Protocol):
    """By tenant and type of event, the names of workflows.
    A workflow may be there whose newest version has no such rule.

    Each write is of a version of the workflow, and changes nothing that was written for a later one.
    """

    def subscribe(self, tenant: str, type: str, workflow: str, user: str, version: int) -> None:
        """For a version that has rules for the type. Repeated, it changes who the user is, and nothing else."""
        ...

    def unsubscribe(self, tenant: str, type: str, workflow: str, version: int, expires: int) -> None:
        """For a version that has none; the subscription of the same version or a later one stays.

        Until `expires` (epoch ms) a subscription of an earlier version that lands late is refused, too.
        """
        ...

    def subscribed(self, tenant: str, type: str, limit: int) -> Sequence[tuple[str, str, int]]:
        """(Workflow, user, version) of at most `limit` workflows, by name; strongly consistent."""
        ...
