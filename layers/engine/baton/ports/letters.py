"""Dead letters: the queues in which messages end that no function could handle, and the record of each.

The rules by which a record changes are in core/letters.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from baton.core.letters import DeadMessage, Letter
from baton.ports.log import SagaRef, Wake

MOST_COUNTED = 1_000
"""Pending letters that are counted; of more it is said that there are so many or more."""


class Outstanding(msgspec.Struct, frozen=True):
    """The pending letters of all tenants: how many, MOST_COUNTED at most, and since when the oldest is (epoch ms; 0: none is)."""

    count: int = 0
    oldest: int = 0


class DeadQueue(Protocol):
    """A queue of messages that a function could not handle. What is received and not deleted comes back after a while."""

    def count(self) -> int:
        """Approximate number of messages that could be received."""
        ...

    def receive(self, limit: int) -> Sequence[DeadMessage]:
        """At most `limit` (1-10) messages. None may mean that there are some that were not found this time."""
        ...

    def delete(self, receipts: Sequence[str]) -> None:
        """Delete messages that were received, at most ten. One that is not deleted comes back; one that is gone is no error."""
        ...


class Letters(Protocol):
    """The record of dead letters: one for each saga that has any, and one for each message that names no saga.

    Every change is one conditional write of the whole letter.
    """

    def read(self, tenant: str, id: str) -> Letter | None:
        """Strongly consistent. None, too, for one that has expired."""
        ...

    def write(self, letter: Letter, seen: int, wake: Wake | None = None) -> bool:
        """Put a letter in the place of the one whose `number` is `seen` (0: of none). False, and nothing written, if another is there.

        `wake` is passed on by the stream, for the letter's saga. A letter that is pending can be found by `outstanding`.
        Raises `ValueError` for a key that no store takes.
        """
        ...

    def listed(
        self, tenant: str, status: str, limit: int, after: Letter | None = None
    ) -> tuple[Sequence[Letter], bool]:
        """At most `limit` letters of a status behind `after`, and whether there are more. Eventually consistent.

        By `since`, the oldest first; those of one moment in an order of the store's own.
        """
        ...

    def outstanding(self) -> Outstanding:
        """Of all tenants. Eventually consistent."""
        ...


def ref_of(letter: Letter) -> SagaRef:
    """The saga that a letter is about."""
    return SagaRef(letter.tenant, letter.saga)
