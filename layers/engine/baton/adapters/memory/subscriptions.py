"""`Subscriptions` in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence


class MemorySubscriptions:
    """(User, version) by tenant, type and workflow, without a user once it was given up; one lock makes every call atomic."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str, str], tuple[str, int]] = {}

    def subscribe(self, tenant: str, type: str, workflow: str, user: str, version: int) -> None:
        with self._lock:
            if self._known.get((tenant, type, workflow), ("", 0))[1] <= version:
                self._known[tenant, type, workflow] = user, version

    def unsubscribe(self, tenant: str, type: str, workflow: str, version: int, expires: int) -> None:
        with self._lock:
            if self._known.get((tenant, type, workflow), ("", version))[1] < version:
                self._known[tenant, type, workflow] = "", version

    def subscribed(self, tenant: str, type: str, limit: int) -> Sequence[tuple[str, str, int]]:
        with self._lock:
            found = sorted(
                (key[2], *row) for key, row in self._known.items() if row[0] and key[:2] == (tenant, type)
            )
        return found[:limit]
