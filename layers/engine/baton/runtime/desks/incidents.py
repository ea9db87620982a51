"""Incidents as the API shows them, and when they are over: once a person has decided about their saga.

What opens one is in core/decide/failure_handling.py, where they are kept is the port's business.
"""

from __future__ import annotations

import re
from typing import Any

from baton.core.times import iso
from baton.errors import NotAllowedNow, NotFound, StoreUnavailable
from baton.ports import Clock, Incident, Incidents
from baton.runtime.engine.cursors import foreign_cursor, read_cursor, write_cursor
from baton.runtime.invocation.store_retrier import StoreRetrier

INCIDENT_ID = r"i[0-9a-f]{24}"
STATUSES = ("open", "unacknowledged", "resolved")
MOST_NOTE = 500  # characters
_TRIES = 8  # at an incident that others acknowledge at the same time


class IncidentDesk:
    """The incidents of one tenant, for one request of `by`."""

    def __init__(
        self, incidents: Incidents, call: StoreRetrier, clock: Clock, tenant: str, by: str = ""
    ) -> None:
        self._incidents = incidents
        self._call = call
        self._clock = clock
        self._tenant = tenant
        self._by = by

    async def page(self, status: str, limit: int, cursor: str) -> dict[str, Any]:
        """The next incidents, the newest first. A page may be short and yet not be the last."""
        after = read_cursor(cursor).decode(errors="replace") if cursor else ""
        if cursor and not re.fullmatch(INCIDENT_ID, after):
            raise foreign_cursor()
        found, last = await self._call(
            self._incidents.listed, self._tenant, status=status, limit=limit, after=after
        )
        rows = [incident_view(incident) for incident in found]
        return {"incidents": rows, "next": write_cursor(last.encode()) if last else None}

    async def show(self, id: str) -> dict[str, Any]:
        """Raises `NotFound`."""
        return _view_of(id, await self._call(self._incidents.find, self._tenant, id))

    async def acknowledge(self, id: str, note: str) -> dict[str, Any]:
        """The caller has it. The last one counts, and the same again changes nothing. Raises `NotFound`, and `NotAllowedNow` for one that is resolved."""
        write, seen = self._incidents.acknowledge, 0
        for _ in range(_TRIES):
            # Later than what it follows, whatever the clocks say: each acknowledgement is known by its time.
            now = max(self._clock.now(), seen + 1)
            found = await self._call(write, self._tenant, id, self._by, note, now, seen)
            if found is not None and found.resolved:
                raise NotAllowedNow(f"incident `{id}` is resolved, by {found.by}")
            if found is None or (found.holder, found.note) == (self._by, note):
                return _view_of(id, found)
            seen = found.acked
        raise StoreUnavailable(f"the incident {id} was acknowledged {_TRIES} times meanwhile")

    async def resolve(self, id: str) -> dict[str, Any]:
        """The caller has done something about it. Repeated, a no-op. Raises `NotFound`."""
        write, now = self._incidents.resolve, self._clock.now()
        return _view_of(id, await self._call(write, self._tenant, id, self._by, now))

    async def resolve_all(self, saga: str, node: str = "") -> None:
        """Those of a saga, or of one of its nodes, because a person has decided what becomes of it.

        After the entry that says so: a process that dies in between leaves an incident open, which an operator can resolve.
        """
        for incident in await self._call(self._incidents.of_saga, self._tenant, saga, node):
            await self._call(self._incidents.resolve, self._tenant, incident, self._by, self._clock.now())


def _view_of(id: str, found: Incident | None) -> dict[str, Any]:
    if found is None:
        raise NotFound(f"there is no incident `{id}`")
    return incident_view(found)


def incident_view(incident: Incident) -> dict[str, Any]:
    """An incident as JSON."""
    return {
        "id": incident.id,
        "status": "resolved" if incident.resolved else "open",
        "saga": incident.saga,
        "node": incident.node or None,
        "code": incident.code,
        "message": incident.message,
        "severity": incident.severity,
        "opened_at": iso(incident.opened),
        "resolved_at": iso(incident.resolved) if incident.resolved else None,
        "resolved_by": incident.by or None,
        "acknowledged_at": iso(incident.acked) if incident.acked else None,
        "acknowledged_by": incident.holder or None,
        "note": incident.note or None,
    }
