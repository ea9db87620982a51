"""Circuit breakers and dead letters: their records, and the ports to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from baton.core.failures.breakers import Breaker
from baton.core.letters import DeadMessage, Letter
from baton.ports.log import SagaRef, Wake


class Breakers(Protocol):
    """One record for each tenant and target."""

    def read_breaker(self, tenant: str, target: str) -> Breaker | None:
        """The record, eventually consistent; None: nothing was ever told of this target, or not for long."""
        ...

    def write_breaker(self, tenant: str, target: str, breaker: Breaker, now: int) -> Breaker | None:
        """Put the record if what is there has the version before its own; a
        record with version 1, if none is there.

        Returns what is there instead: None if it was written. A write that is
        repeated because its answer was lost finds itself there. The record is kept
        for 30 days from `now` on; one that is open until it is reset, for good.
        """
        ...

    def all(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[tuple[str, Breaker]]:
        """The records of a tenant with their targets, in the order of these, eventually consistent."""
        ...


MOST_COUNTED = 1_000
"""Pending letters that are counted; of more it is said that there are so many or more."""


class Outstanding(msgspec.Struct, frozen=True):
    """The pending letters of all tenants: how many, MOST_COUNTED at most,
    and since when the oldest is (epoch ms; 0: none is).
    """

    count: int = 0
    oldest: int = 0


class DeadQueue(Protocol):
    """A queue of messages that a function could not handle.
    What is received and not deleted comes back after a while.
    """

    def count(self) -> int:
        """Approximate number of messages that could be received."""
        ...

    def receive(self, limit: int) -> Sequence[DeadMessage]:
        """At most `limit` (1-10) messages. None may mean that there are some that were not found this time."""
        ...

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages that were received, at most ten.
        One that is not deleted comes back; one that is gone is no error.
        """
        ...


class Letters(Protocol):
    """The record of dead letters: one for each saga that has any, and one
    for each message that names no saga.

    Every change is one conditional write of the whole letter.
    """

    def read(self, tenant: str, id: str) -> Letter | None:
        """Strongly consistent. None, too, for one that has expired."""
        ...

    def write(self, letter: Letter, seen: int, wake: Wake | None = None) -> bool:
        """Put a letter in the place of the one whose `number` is `seen` (0: of none).
        False, and nothing written, if another is there.

        `wake` is passed on by the stream, for the letter's saga. A letter that is pending can be found by
        `outstanding`. Raises `ValueError` for a key that no store takes.
        """
        ...

    def listed(
        self, tenant: str, status: str, limit: int, after: Letter | None = None
    ) -> tuple[Sequence[Letter], bool]:
        """At most `limit` letters of a status behind `after`, and whether there are more.
        Eventually consistent.

        By `since`, the oldest first; those of one moment in an order of the store's own.
        """
        ...

    def outstanding(self) -> Outstanding:
        """Of all tenants. Eventually consistent."""
        ...


def letter_ref(letter: Letter) -> SagaRef:
    """The saga that a letter is about."""
    return SagaRef(letter.tenant, letter.saga)
