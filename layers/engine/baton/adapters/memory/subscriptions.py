"""`Subscriptions` in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence


class MemorySubscriptions:
    """Users by tenant, type and workflow; one lock makes every call atomic."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._users: dict[tuple[str, str, str], str] = {}

    def subscribe(self, tenant: str, type: str, workflow: str, user: str) -> None:
        with self._lock:
            self._users[tenant, type, workflow] = user

    def subscribed(self, tenant: str, type: str, limit: int) -> Sequence[tuple[str, str]]:
        with self._lock:
            found = sorted((key[2], user) for key, user in self._users.items() if key[:2] == (tenant, type))
        return found[:limit]
