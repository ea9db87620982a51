"""`Effects` in memory: for tests, the simulation and trying a workflow without any AWS."""

from __future__ import annotations

import threading

from baton.ports.effects import FREED, Effect


class MemoryEffects:
    """Effects by tenant and key; one lock makes every call atomic. `stored` is open, so that a test can look."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stored: dict[tuple[str, str], Effect] = {}

    def claim(self, effect: Effect) -> Effect | None:
        with self._lock:
            there = self.stored.get((effect.tenant, effect.key))
            if there is None or there.status == FREED:
                self.stored[effect.tenant, effect.key] = effect
                return None
            return there

    def change(self, seen: Effect, effect: Effect) -> Effect | None:
        with self._lock:
            there = self.stored.get((seen.tenant, seen.key))
            if there is None or (there.owner, there.status) == (seen.owner, seen.status):
                self.stored[seen.tenant, seen.key] = effect
                return None
            return there

    def read(self, tenant: str, key: str) -> Effect | None:
        with self._lock:
            return self.stored.get((tenant, key))
