"""What sets invocations going: the queue of wakes, direct invocations, and dead letters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from baton.ports.log import SagaRef


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of a wake on the queue and of a direct invocation: a saga's key, the known version.

    `build`: the code that is deployed may mend a saga that is parked for a defect, and that was `due` then.
    """

    saga: str
    v: int = 0
    build: str = ""
    due: int = 0


def tenant_of(message: Message) -> str:
    """Whose saga it is."""
    return SagaRef.parse(message.saga).tenant


class Queue(Protocol):
    """The queue of wakes. While more wait than there are workers, tenants are served in turn."""

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        """Send (message, delay in whole seconds, 0-900). Returns the positions that were not accepted."""
        ...

    def backlog(self) -> int:
        """About how many messages could be received now, and wait because no worker has time for them."""
        ...


class Cause(msgspec.Struct, frozen=True, kw_only=True):
    """Why a message is dead, besides its reason in words: a code, the entry that cannot be read (0: none is known), what node
    that is about, and which delivery of the message it was.
    """

    code: str = ""
    version: int = 0
    node: str = ""
    attempts: int = 1


UNKNOWN = Cause()


class DeadLetters(Protocol):
    """The queue of messages that no worker could handle. What becomes of them is in ports/letters.py."""

    def send(self, body: str, reason: str, cause: Cause = UNKNOWN) -> None: ...


class Invoker(Protocol):
    """Starts worker invocations directly, without any queue."""

    def invoke(self, messages: Sequence[Message]) -> None:
        """One asynchronous invocation for these wakes."""
        ...
