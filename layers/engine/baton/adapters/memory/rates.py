"""`Rates` in memory: for tests and for trying things without any AWS. Forgets all windows but the newest."""

from __future__ import annotations

import threading


class MemoryRates:
    """Sums by tenant and window; one lock makes every call atomic."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._spent: dict[tuple[str, int], int] = {}
        self.calls = 0

    def spend(self, tenant: str, window: int, count: int) -> int:
        with self._lock:
            self.calls += 1
            if any(known < window for _, known in self._spent):
                self._spent = {key: sum_ for key, sum_ in self._spent.items() if key[1] >= window}
            before = self._spent.get((tenant, window), 0)
            self._spent[tenant, window] = before + count
            return before
