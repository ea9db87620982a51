"""All stores in memory: for unit tests, the simulation and trying a workflow without any AWS.

They keep what the ports promise and nothing beyond that; one lock per store makes every call atomic. The
log is in `memory_log`, and named here so that all stores come from one place.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from baton.adapters.memory.log import MemoryLog
from baton.adapters.rules import check_delay
from baton.errors import CorruptLog
from baton.ports import Clock, Definition, Message
from baton.ports.stores import reference_of

__all__ = [
    "MemoryBlobs",
    "MemoryDeadLetters",
    "MemoryDefinitions",
    "MemoryInvoker",
    "MemoryLog",
    "MemoryQueue",
]


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


class MemoryBlobs:
    """Content-addressed bytes. `stored` is open, so that a test can tamper with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stored: dict[tuple[str, str], bytes] = {}

    def put(self, tenant: str, data: bytes) -> str:
        ref = reference_of(data)
        with self._lock:
            self.stored[tenant, ref] = data
        return ref

    def get(self, tenant: str, ref: str) -> bytes:
        with self._lock:
            data = self.stored.get((tenant, ref))
        if data is None:
            raise CorruptLog(f"blob {ref} is not there")
        if reference_of(data) != ref:
            raise CorruptLog(f"blob {ref} does not hold what its name says")
        return data


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
