"""`Inbox` in memory. Nothing expires."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from baton.adapters.memory.log import MemoryLog
from baton.ports import Report, SagaRef


class MemoryInbox:
    """The inboxes of the sagas of a log."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._windows: dict[tuple[SagaRef, int], dict[tuple[str, str], Report]] = {}

    def leave(self, reports: Sequence[Report], until: int) -> None:
        with self._lock:
            for one in reports:
                self._windows.setdefault((one.parent, one.window), {})[one.slot, one.child] = one

    def announce(self, parent: SagaRef) -> bool:
        return self._log.announce(parent)

    def read(self, parent: SagaRef, window: int) -> Sequence[Report]:
        with self._lock:
            return [one for _, one in sorted(self._windows.get((parent, window), {}).items())]
