"""`Queue`, `DeadLetters` and `Invoker` in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from baton.adapters.rules import check_delay
from baton.ports import Clock, Message


class MemoryQueue:
    """Messages with the moment from which they can be received; nothing is redelivered."""

    def __init__(self, clock: Clock) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._messages: list[tuple[int, Message]] = []

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        now = self._clock.now()
        sent = [(now + check_delay(delay) * 1000, message) for message, delay in messages]
        with self._lock:
            self._messages.extend(sent)
        return []

    def waiting(self) -> Sequence[tuple[int, Message]]:
        """Everything in it as (visible from, message), in the order of sending."""
        with self._lock:
            return list(self._messages)

    def backlog(self) -> int:
        now = self._clock.now()
        with self._lock:
            return sum(visible <= now for visible, _ in self._messages)

    def receive(self, limit: int | None = None) -> list[Message]:
        """Take out what is visible by now, soonest first."""
        now = self._clock.now()
        with self._lock:
            ready = sorted((item for item in self._messages if item[0] <= now), key=lambda item: item[0])
            ready = ready if limit is None else ready[:limit]
            for item in ready:
                self._messages.remove(item)
        return [message for _, message in ready]


class MemoryDeadLetters:
    """Dead letters as (body, reason), in `letters`."""

    def __init__(self) -> None:
        self.letters: list[tuple[str, str]] = []

    def send(self, body: str, reason: str) -> None:
        self.letters.append((body, reason))

    def count(self) -> int:
        return len(self.letters)


class MemoryInvoker:
    """Records each invocation instead of starting one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._invocations: list[tuple[Message, ...]] = []

    def invoke(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        with self._lock:
            self._invocations.append(tuple(messages))

    def drain(self) -> list[tuple[Message, ...]]:
        """The invocations since the last call, oldest first."""
        with self._lock:
            invocations, self._invocations = self._invocations, []
        return invocations
