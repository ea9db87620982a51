"""`Definitions` and `Rates` in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from baton.ports import Definition


class MemoryDefinitions:
    """Registered workflow documents."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: dict[tuple[str, str], dict[int, Definition]] = {}

    def put(self, definition: Definition) -> bool:
        with self._lock:
            versions = self._versions.setdefault((definition.tenant, definition.name), {})
            if definition.version in versions:
                return False
            versions[definition.version] = definition
            return True

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        with self._lock:
            versions = self._versions.get((tenant, name), {})
            return versions.get(max(versions, default=0) if version is None else version)

    def names(self, tenant: str, after: str = "", limit: int | None = None) -> Sequence[str]:
        with self._lock:
            found = sorted(name for owner, name in self._versions if owner == tenant and name > after)
        return found[:limit]

    def versions(self, tenant: str, name: str, limit: int) -> Sequence[Definition]:
        with self._lock:
            versions = self._versions.get((tenant, name), {})
            return [versions[number] for number in sorted(versions, reverse=True)[:limit]]


class MemoryRates:
    """Sums by tenant and window, of the newest window. `calls` counts those that would cost a request."""

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
