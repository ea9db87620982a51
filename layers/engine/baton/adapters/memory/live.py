"""What viewers are shown, in memory."""

from __future__ import annotations

import threading

from msgspec.structs import replace

from baton.adapters.memory.log import MemoryLog
from baton.ports.live import LiveTexts
from baton.ports.log import Head, SagaRef


class MemoryLive:
    """`Live`."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._stored: dict[SagaRef, LiveTexts] = {}
        self.writes = 0

    def watch(self, ref: SagaRef, now: int, until: int, unless: int) -> bool:
        with self._lock:
            there = self._stored.get(ref, LiveTexts(0))
            if there.until >= unless:
                return False
            self._stored[ref] = replace(there, until=until)
            return True

    def leave_word(self, head: Head, now: int, until: int) -> bool:
        return self._log.leave_word(head, until)

    def put_texts(self, ref: SagaRef, epoch: int, now: int, data: bytes) -> bool:
        with self._lock:
            there = self._stored.get(ref)
            if there is None or there.until <= now or (there.epoch, there.at) >= (epoch, now):
                return False
            self._stored[ref] = LiveTexts(there.until, epoch, now, data)
            return True

    def read(self, ref: SagaRef) -> LiveTexts | None:
        return self._stored.get(ref)
