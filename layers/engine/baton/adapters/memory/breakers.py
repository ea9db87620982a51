"""`Breakers` in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from baton.core.failures.breakers import Breaker


class MemoryBreakers:
    """Records by tenant and target. `writes` counts the ones that were made."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._there: dict[tuple[str, str], Breaker] = {}
        self.writes = 0

    def read_breaker(self, tenant: str, target: str) -> Breaker | None:
        with self._lock:
            return self._there.get((tenant, target))

    def write_breaker(self, tenant: str, target: str, breaker: Breaker, now: int) -> Breaker | None:
        with self._lock:
            there = self._there.get((tenant, target), Breaker())
            if there.version != breaker.version - 1:
                return there
            self._there[tenant, target] = breaker
            self.writes += 1
            return None

    def all(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[tuple[str, Breaker]]:
        with self._lock:
            mine = sorted(target for owner, target in self._there if owner == tenant and target > after)
            return [(target, self._there[tenant, target]) for target in mine[:limit]]
