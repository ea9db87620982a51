"""`Notices` and `Incidents` in memory: for tests and for trying things without any AWS. Sends nothing."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from msgspec.structs import replace

from baton.core.log.events import Notice
from baton.ports.notices import WINDOW_MS, Incident, incident_of


class MemoryNotices:
    """`told` holds what was told: tenant, saga, user and the notice."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._when: dict[tuple[str, str], int] = {}
        self._incidents: dict[tuple[str, str], Incident] = {}
        self.told: list[tuple[str, str, str, Notice]] = []

    def tell(self, tenant: str, saga: str, user: str, notice: Notice, now: int) -> None:
        with self._lock:
            before = self._when.get((tenant, notice.key))
            if before is not None and now - before < WINDOW_MS:
                return
            if notice.incident:
                incident = incident_of(tenant, saga, notice)
                self._incidents.setdefault((tenant, incident.id), incident)
            self.told.append((tenant, saga, user, notice))
            self._when[tenant, notice.key] = now

    def listed(
        self, tenant: str, *, status: str = "", limit: int, after: str = ""
    ) -> tuple[Sequence[Incident], str]:
        with self._lock:
            kept = [self._incidents[key] for key in sorted(self._incidents, reverse=True)]
        wanted = {"open": (True,), "resolved": (False,), "": (True, False)}[status]
        found = [
            incident
            for incident in kept
            if incident.tenant == tenant
            and (not after or incident.id < after)
            and (incident.resolved == 0) in wanted
        ]
        return found[:limit], found[limit - 1].id if len(found) > limit else ""

    def of_saga(self, tenant: str, saga: str, node: str = "") -> Sequence[str]:
        with self._lock:
            kept = [self._incidents[key] for key in sorted(self._incidents)]
        return [
            incident.id
            for incident in kept
            if (incident.tenant, incident.saga) == (tenant, saga) and node in {"", incident.node}
        ]

    def resolve(self, tenant: str, id: str, by: str, now: int) -> Incident | None:
        with self._lock:
            incident = self._incidents.get((tenant, id))
            if incident is not None and not incident.resolved:
                incident = self._incidents[tenant, id] = replace(incident, resolved=now, by=by)
            return incident
