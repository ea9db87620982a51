"""The places for calls that one process has, and who is given the next: of the sagas that want one, that with fewest.

There is no queue, because to wait would count as the step's own time: a call that finds no place is told, and asks again.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import TypeAlias

from baton.core.limits import Limits
from baton.ports import StepContext

Whose: TypeAlias = tuple[str, str]  # tenant and saga

WANTED_FOR_S = Limits().room_pause_longest_ms / 1_000 + 0.5
"""A saga that was refused asks again within this time, or no longer wants a place."""


def whose(context: StepContext) -> Whose:
    return context.tenant, context.saga


class Places:
    """So many and no more. Its methods may be called from any thread; `now` is in seconds, of one clock."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._lock = threading.Lock()
        self._sagas: Counter[Whose] = Counter()
        self._tenants: Counter[str] = Counter()
        self._wanted: dict[Whose, float] = {}

    def take(self, who: Whose, now: float) -> bool:
        """Whether there is a place, and none of those that were refused before has fewer: a tenant first, then a saga."""
        with self._lock:
            self._wanted.pop(who, None)
            if self._wanted:
                self._wanted = {other: until for other, until in self._wanted.items() if until > now}
            is_full = self._sagas.total() >= self._most
            if is_full or any(self._has(other) < self._has(who) for other in self._wanted):
                self._wanted[who] = now + WANTED_FOR_S
                return False
            self._sagas[who] += 1
            self._tenants[who[0]] += 1
            return True

    def give_back(self, who: Whose) -> None:
        with self._lock:
            self._sagas[who] -= 1
            self._tenants[who[0]] -= 1
            if not self._sagas[who]:  # a process outlives the sagas that it has run
                del self._sagas[who]
            if not self._tenants[who[0]]:
                del self._tenants[who[0]]

    @property
    def taken(self) -> int:
        return self._sagas.total()

    def _has(self, who: Whose) -> tuple[int, int]:
        return self._tenants[who[0]], self._sagas[who]
