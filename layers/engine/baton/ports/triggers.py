"""Records of schedules and of subscriptions to events, and the ports to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from baton.core.schedules import ScheduleRecord
from baton.ports.log import SCHEDULE, SagaRef


class Schedules(Protocol):
    """Records of schedules. Every change is one conditional write of the whole record."""

    def read_schedule(self, tenant: str, workflow: str) -> ScheduleRecord | None:
        """Read a record, strongly consistent. Return None if none is stored."""
        ...

    def write_schedule(self, record: ScheduleRecord) -> bool:
        """Replace the record whose `number` is one less (0: create it).
        Return false, and write nothing, if the stored one has another number.

        A repeated write finds itself: true. The record is in lane `timer` of the due index at `due`, and in
        none if that is 0.
        """
        ...

    def listed(self, tenant: str, after: str, limit: int) -> tuple[Sequence[ScheduleRecord], str]:
        """Return a tenant's records of `limit` workflows after `after`, by name, and the last name if more
        follow.

        Records without a schedule are included. Eventually consistent.
        """
        ...


def schedule_ref(tenant: str, workflow: str) -> SagaRef:
    """Return the name by which the due index and messages refer to a schedule."""
    return SagaRef(tenant, SCHEDULE + workflow)


class Subscriptions(Protocol):
    """Names of workflows by tenant and type of event.
    The newest version of a listed workflow may have no such rule.

    Each write is of a version of the workflow, and does not change the writes of a later one.
    """

    def subscribe(self, tenant: str, type: str, workflow: str, user: str, version: int) -> None:
        """Subscribe a version that has rules for the type. Repeated, it only replaces the user."""
        ...

    def unsubscribe(self, tenant: str, type: str, workflow: str, version: int, expires: int) -> None:
        """Unsubscribe a version that has none; the subscription of the same version or a later one stays.

        Until `expires` (epoch ms) a subscription of an earlier version that arrives late is refused, too.
        """
        ...

    def subscribed(self, tenant: str, type: str, limit: int) -> Sequence[tuple[str, str, int]]:
        """Return (workflow, user, version) of at most `limit` workflows, by name; strongly consistent."""
        ...
