"""Notices and incidents in memory: for tests and for trying things without any AWS."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from baton.core.log.events import Notice
from baton.errors import ChannelRefused, Throttled
from baton.ports.notices import CLAIM_MS, WINDOW_MS, Incident, Telling, incident_of, is_of


class _Claim(Struct):
    """Which saga sends a notice that was made at `at`, how long it may take, and when it was sent."""

    saga: str
    at: int
    until: int
    sent: int | None = None
    refused: str = ""


class MemoryNoticeRecord:
    """`NoticeRecord`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claims: dict[tuple[str, str], _Claim] = {}
        self._incidents: dict[tuple[str, str], Incident] = {}

    def claim(self, tenant: str, saga: str, notice: Notice, now: int) -> Notice | None:
        with self._lock:
            there = self._claims.get((tenant, notice.key))
            if there is None or (
                there.sent is not None and now - there.sent >= WINDOW_MS and there.at != notice.at
            ):
                there = None
            elif there.refused:
                raise ChannelRefused(there.refused)
            elif there.sent is not None:
                return None
            elif there.saga != saga and there.until > now:
                raise Throttled(f"another saga is sending the notice {notice.key}")
            at = notice.at if there is None else there.at
            self._claims[tenant, notice.key] = _Claim(saga, at, now + CLAIM_MS)
            return replace(notice, at=at)

    def sent(self, tenant: str, key: str, now: int, refused: str = "") -> None:
        with self._lock:
            claim = self._claims[tenant, key]
            claim.sent, claim.refused = now, refused

    def open(self, tenant: str, saga: str, notice: Notice, expires: int = 0) -> None:
        incident = incident_of(tenant, saga, notice)
        with self._lock:
            self._incidents.setdefault((tenant, incident.id), incident)

    def listed(
        self, tenant: str, *, status: str = "", limit: int, after: str = ""
    ) -> tuple[Sequence[Incident], str]:
        with self._lock:
            kept = [self._incidents[key] for key in sorted(self._incidents, reverse=True)]
        found = [
            incident
            for incident in kept
            if incident.tenant == tenant and (not after or incident.id < after) and is_of(incident, status)
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

    def find(self, tenant: str, id: str) -> Incident | None:
        with self._lock:
            return self._incidents.get((tenant, id))

    def acknowledge(
        self, tenant: str, id: str, by: str, note: str, now: int, seen: int = 0
    ) -> Incident | None:
        with self._lock:
            found = self._incidents.get((tenant, id))
            if found is not None and not found.resolved and found.acked == seen:
                found = self._incidents[tenant, id] = replace(found, acked=now, holder=by, note=note)
            return found

    def resolve(self, tenant: str, id: str, by: str, now: int) -> Incident | None:
        with self._lock:
            incident = self._incidents.get((tenant, id))
            if incident is not None and not incident.resolved:
                incident = self._incidents[tenant, id] = replace(incident, resolved=now, by=by)
            return incident


class MemoryNotices:
    """`Notices` that sends nothing. `told` holds what was to be sent; `fails` raises what goes wrong before it is."""

    def __init__(self, name: str = "memory", fails: Callable[[Telling], None] | None = None) -> None:
        self._name, self.fails = name, fails
        self.told: list[Telling] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def said(self) -> list[Notice]:
        """The notices alone."""
        return [telling.notice for telling in self.told]

    def reaches(self, telling: Telling) -> bool:
        return True

    def tell(self, telling: Telling) -> None:
        if self.fails is not None:
            self.fails(telling)
        self.told.append(telling)
