"""Notices, incidents and questions in memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from baton.core.log.events import Notice
from baton.errors import ChannelRefused, Throttled
from baton.ports import QuestionRow, SagaRef, Spot
from baton.ports.people import CLAIM_MS, NEVER, WINDOW_MS, Incident, Telling, incident_of, is_of


class _Claim(Struct):
    """Claim of a saga that sends a notice made at `at`: its longest duration, and the time of sending."""

    saga: str
    at: int
    until: int
    sent: int | None = None
    refused: str = ""


class MemoryNoticeRecord:
    """`NoticeRecord` in memory."""

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
    """`Notices` that sends nothing: `told` collects them, and `fails` raises before one is sent."""

    def __init__(self, name: str = "memory", fails: Callable[[Telling], None] | None = None) -> None:
        self._name, self.fails = name, fails
        self.told: list[Telling] = []

    @property
    def name(self) -> str:
        return self._name

    @property
    def said(self) -> list[Notice]:
        """The notices that were to be sent, without their tenants and sagas."""
        return [telling.notice for telling in self.told]

    def reaches(self, telling: Telling) -> bool:
        return True

    def tell(self, telling: Telling) -> None:
        if self.fails is not None:
            self.fails(telling)
        self.told.append(telling)


class MemoryQuestions:
    """`Questions` in memory, each call atomic. `puts`, `removals`: calls that would cost a write."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: dict[tuple[str, str, str], tuple[int, QuestionRow | None]] = {}
        self.puts = self.removals = 0

    def put(self, tenant: str, row: QuestionRow, number: int, until: int) -> None:
        self.puts += 1
        self._write((tenant, row.saga, row.ask), number, row)

    def remove(self, ref: SagaRef, ask: str, number: int, until: int) -> None:
        self.removals += 1
        self._write((ref.tenant, ref.id, ask), number, None)

    def _write(self, place: tuple[str, str, str], number: int, row: QuestionRow | None) -> None:
        with self._lock:
            if self._rows.get(place, (0, None))[0] <= number:
                self._rows[place] = (number, row)

    def removed(self, ref: SagaRef, number: int) -> Collection[str]:
        with self._lock:
            return {
                ask
                for (tenant, saga, ask), (count, row) in self._rows.items()
                if (tenant, saga) == (ref.tenant, ref.id) and row is None and count >= number
            }

    def listed(
        self, tenant: str, audience: str, now: int, limit: int, after: Spot | None = None
    ) -> tuple[Sequence[QuestionRow], Spot | None]:
        found = [row for of, row in self.rows() if (of, row.to) == (tenant, audience)]
        found = sorted((row for row in found if (row.expires_at or NEVER) > now), key=lambda row: row.spot)
        left = [row for row in found if after is None or row.spot > after]
        return left[:limit], left[limit - 1].spot if len(left) > limit else None

    def rows(self) -> list[tuple[str, QuestionRow]]:
        """Return every row with its tenant. For tests only: no port has it."""
        with self._lock:
            return [(tenant, row) for (tenant, _, _), (_, row) in self._rows.items() if row is not None]
