"""`Questions` in memory. Nothing expires but from lists."""

from __future__ import annotations

import threading
from collections.abc import Collection, Sequence

from baton.ports import QuestionRow, SagaRef, Spot
from baton.ports.questions import NEVER


class MemoryQuestions:
    """Rows of questions; one lock makes every call atomic. `puts` and `removals` count those that would cost a write."""

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
        """Every row with its tenant. For looking on: no port has it."""
        with self._lock:
            return [(tenant, row) for (tenant, _, _), (_, row) in self._rows.items() if row is not None]
