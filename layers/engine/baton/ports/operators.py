"""Records of circuit breakers and dead letters, and the ports to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from baton.core.failures.breakers import Breaker
from baton.core.letters import DeadMessage, Letter
from baton.ports.log import SagaRef, Wake


class Breakers(Protocol):
    """Records of breakers, one for each tenant and target."""

    def read_breaker(self, tenant: str, target: str) -> Breaker | None:
        """Return the record, eventually consistent; None if there is none, or it has expired."""
        ...

    def write_breaker(self, tenant: str, target: str, breaker: Breaker, now: int) -> Breaker | None:
        """Write the record if the stored one has the preceding version; for version 1, if none is stored.

        Return None if it was written, else the stored record. A repeated write finds itself and returns None.
        The record is kept for 30 days from `now` on; a breaker that is open until it is reset, for good.
        """
        ...

    def all(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[tuple[str, Breaker]]:
        """Return a tenant's records with their targets, by target, eventually consistent."""
        ...


MOST_COUNTED = 1_000
"""Highest count of pending letters; a result of this size means "this many or more"."""


class Outstanding(msgspec.Struct, frozen=True):
    """Pending letters of all tenants: number, at most MOST_COUNTED; time of the oldest (ms; 0: none)."""

    count: int = 0
    oldest: int = 0


class DeadQueue(Protocol):
    """Queue of messages that a function could not handle. What is not deleted comes back."""

    def count(self) -> int:
        """Return the approximate number of messages that could be received."""
        ...

    def receive(self, limit: int) -> Sequence[DeadMessage]:
        """Receive at most `limit` (1-10) messages. An empty result does not mean that the queue is empty."""
        ...

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete received messages, at most ten. What stays comes back; a missing one is no error."""
        ...


class Letters(Protocol):
    """Record of dead letters: one for each saga that has any, and one for each message that names no saga.

    Every change is one conditional write of the whole letter.
    """

    def read(self, tenant: str, id: str) -> Letter | None:
        """Read a letter, strongly consistent. Return None also for one that has expired."""
        ...

    def write(self, letter: Letter, seen: int, wake: Wake | None = None) -> bool:
        """Replace the letter whose `number` is `seen` (0: create it).
        Return false, and write nothing, if the stored one has another number.

        The stream passes `wake` on, for the letter's saga. `outstanding` finds a letter that is pending.
        Raises `ValueError` for a key that no store accepts.
        """
        ...

    def listed(
        self, tenant: str, status: str, limit: int, after: Letter | None = None
    ) -> tuple[Sequence[Letter], bool]:
        """Return at most `limit` letters of a status after `after`, and true if more follow.
        Eventually consistent.

        Sorted by `since`, the oldest first; those of one moment in an order of the store's own.
        """
        ...

    def outstanding(self) -> Outstanding:
        """Count the pending letters of all tenants. Eventually consistent."""
        ...


def letter_ref(letter: Letter) -> SagaRef:
    """Return the saga that a letter is about."""
    return SagaRef(letter.tenant, letter.saga)
