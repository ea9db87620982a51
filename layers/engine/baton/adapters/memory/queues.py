"""`Queue`, `DeadLetters` and `Invoker` in memory."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from baton.core.letters import DeadMessage
from baton.ports import UNKNOWN, Clock, DeadMessageCause, Message
from baton.ports.log import check_delay

_HIDDEN_MS = 120_000


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
        """Return all messages as (visible from, message), in the order of sending."""
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
    """`DeadLetters`, `DeadQueue` with all `letters` ever sent. A received one is hidden for two minutes."""

    def __init__(self, clock: Clock | None = None) -> None:
        self.letters: list[tuple[str, str]] = []
        self._lock = threading.Lock()
        self._clock = clock
        self._waiting: dict[str, tuple[int, DeadMessage]] = {}

    def send(self, body: str, reason: str, cause: DeadMessageCause = UNKNOWN) -> None:
        with self._lock:
            self.letters.append((body, reason))
            name, now = f"m{len(self.letters)}", self._now()
            self._waiting[name] = (
                now,
                DeadMessage(
                    id=name,
                    receipt=name,
                    body=body,
                    sent=now,
                    attempts=cause.attempts,
                    reason=reason,
                    code=cause.code,
                    version=cause.version,
                    node=cause.node,
                ),
            )

    def count(self) -> int:
        now = self._now()
        with self._lock:
            return sum(visible <= now for visible, _ in self._waiting.values())

    def receive(self, limit: int) -> Sequence[DeadMessage]:
        now = self._now()
        with self._lock:
            found = [one for visible, one in self._waiting.values() if visible <= now][:limit]
            for one in found:
                self._waiting[one.id] = (now + _HIDDEN_MS, one)
        return found

    def delete(self, receipts: Sequence[str]) -> None:
        with self._lock:
            for receipt in receipts:
                self._waiting.pop(receipt, None)

    def _now(self) -> int:
        return 0 if self._clock is None else self._clock.now()


class MemoryInvoker:
    """`Invoker` that records each invocation instead of starting one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._invocations: list[tuple[Message, ...]] = []

    def invoke(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        with self._lock:
            self._invocations.append(tuple(messages))

    def drain(self) -> list[tuple[Message, ...]]:
        """Return the invocations since the last call, oldest first."""
        with self._lock:
            invocations, self._invocations = self._invocations, []
        return invocations
