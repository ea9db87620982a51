"""What sets invocations going: the queue of wakes, direct invocations, and what nobody can handle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of a wake on the queue and of a direct invocation: a saga's key, the known version."""

    saga: str
    v: int = 0


class Queue(Protocol):
    """The queue of wakes."""

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        """Send (message, delay in whole seconds, 0-900). Returns the positions that were not accepted."""
        ...


class DeadLetters(Protocol):
    """The queue of what nobody could handle."""

    def send(self, body: str, reason: str) -> None: ...

    def count(self) -> int:
        """Approximate number of messages in it."""
        ...


class Invoker(Protocol):
    """Starts worker invocations directly, without any queue."""

    def invoke(self, messages: Sequence[Message]) -> None:
        """One asynchronous invocation for these wakes."""
        ...
