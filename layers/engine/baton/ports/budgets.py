"""The money that users have spent on a day or reserved for calls under way: one item for each user and day.

Amounts are whole micro-dollars, times UTC epoch milliseconds. What a limit is, and what follows from a refusal, is
not decided here (core/decide/spending.py, runtime/ledger.py).
"""

from __future__ import annotations

from typing import Protocol

import msgspec


class Account(msgspec.Struct, frozen=True):
    """A user's money of one day; `day` counts UTC days since 1970."""

    tenant: str
    user: str
    day: int


class Reservation(msgspec.Struct, frozen=True):
    """An amount held for one attempt. After `until` its holder is dead, and it may be freed."""

    id: str
    amount: int
    until: int


class Sums(msgspec.Struct, frozen=True):
    """`held` is the sum of spent and reserved money, `open` the number of reservations."""

    spent: int = 0
    held: int = 0
    open: int = 0

    @property
    def reserved(self) -> int:
        return self.held - self.spent


class Held(msgspec.Struct, frozen=True):
    """It is reserved, now or since before; `sums` count it."""

    sums: Sums


class Refused(msgspec.Struct, frozen=True):
    """The reservation is refused. `is_busy`: reservations of others stand against it, and may be freed soon."""

    sums: Sums
    is_busy: bool


class Budgets(Protocol):
    """The accounts of users. Each change is one conditional write of one item."""

    def reserve(self, account: Account, reservation: Reservation, limit: int, now: int) -> Held | Refused:
        """Hold an amount if `held` stays at or below `limit`; whatever is past its time at `now` is freed first.

        Of any number of callers no two get the same money. A reservation with an id that is open changes nothing.
        More than the store keeps of one user at a time are refused as busy. One with an amount of 0 is never refused: to settle it counts
        what is spent already.
        """
        ...

    def settle(self, account: Account, reservation: Reservation, cost: int) -> Sums:
        """Replace the held amount by the spent one.

        Also of a reservation that was freed meanwhile, and also more than was held: spent is spent. One that is
        settled already, or was never held, changes nothing.
        """
        ...

    def expire(self, account: Account, now: int) -> Sums:
        """Free reservations past their time."""
        ...

    def read(self, account: Account) -> Sums:
        """The sums, eventually consistent; zeros for an account without any spending."""
        ...
