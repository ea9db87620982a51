"""Planted bugs in what becomes of incidents, as in bugs.py."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import replace

from baton.adapters.memory.people import MemoryNoticeRecord
from baton.ports import people
from baton.ports.people import Incident
from tests.kit.bugs import replaced


@contextmanager
def an_acknowledgement_that_lands_late_counts() -> Iterator[None]:
    """Acknowledge row: what an operator said before takes the incident away from the one who has it since."""
    real = MemoryNoticeRecord.acknowledge

    def acknowledge(
        self: MemoryNoticeRecord, tenant: str, id: str, by: str, note: str, now: int, seen: int = 0
    ) -> Incident | None:
        there = self.find(tenant, id)
        return real(self, tenant, id, by, note, now, there.acked if there is not None else 0)

    with replaced(MemoryNoticeRecord, "acknowledge", acknowledge):
        yield


@contextmanager
def an_acknowledgement_opens_it_again() -> Iterator[None]:
    """Acknowledge row: an incident that is over is on the list again, and the decision about its saga is not seen."""
    real = MemoryNoticeRecord.acknowledge

    def acknowledge(
        self: MemoryNoticeRecord, tenant: str, id: str, by: str, note: str, now: int, seen: int = 0
    ) -> Incident | None:
        there = self.find(tenant, id)
        if there is not None and there.resolved:
            self._incidents[tenant, id] = replace(there, resolved=0, by="")
        return real(self, tenant, id, by, note, now, seen)

    with replaced(MemoryNoticeRecord, "acknowledge", acknowledge):
        yield


@contextmanager
def a_second_failure_is_the_first_one() -> Iterator[None]:
    """Notice row: the incident of a failure that has been dealt with hides the next one of the same node."""
    real = people.incident_id

    with replaced(people, "incident_id", lambda key, at: real(key, 0)):
        yield
