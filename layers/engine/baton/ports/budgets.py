"""Accounts of the money that users spend on a day or hold for calls under way.

The store keeps one item for each user and day, one for their tenant and day, and an operator's rule about a
user. Amounts are whole micro-dollars, times UTC epoch milliseconds. Limits, and the consequences of a
refusal, are decided in core/decide/spending.py and runtime/money/ledger.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from baton.core.money import NO_RULE, UserRule


class Account(msgspec.Struct, frozen=True):
    """Account of one user for a day; `day`: UTC days since 1970. An empty `user`: the whole tenant."""

    tenant: str
    user: str
    day: int

    @property
    def of_tenant(self) -> Account:
        """The tenant's account of that day."""
        return Account(self.tenant, "", self.day)


class Reservation(msgspec.Struct, frozen=True):
    """Total that one invocation holds of an account.
    After `until` the invocation is dead, and the amount may be freed.

    `number` counts the invocation's requests, so that no two states of a reservation are equal. `is_freed`:
    the reservation expired and another caller freed it; its amount is 0. `billed`: the part of the amount, by
    purpose, for requests that are billed even if their answer is not heard; it is not freed, but spent. A
    reservation with a `number` below 0 is a mark: its holder leaves it, so that no reservation that arrives
    later takes anything. A store keeps an account's newest hundred marks for at least a quarter of an hour.
    """

    number: int
    amount: int
    until: int
    is_freed: bool = False
    billed: dict[str, int] = {}

    def freed(self) -> Reservation:
        """Return the reservation as it stands after it has expired: with an amount of 0."""
        return msgspec.structs.replace(self, amount=0, is_freed=True)

    @property
    def is_mark(self) -> bool:
        """True if it is a mark: its holder leaves it, so that no late reservation takes anything."""
        return self.number < 0


class Sums(msgspec.Struct, frozen=True):
    """Sums of an account.
    `held` adds up spent and reserved money; `open` is the number of invocations with a reservation.

    For a user whose tenant has a limit, `drawn` is the user's share of the tenant's day, and `told` the part
    of `spent` that the tenant's account has counted. A tenant's `held` is the sum that its users have drawn,
    its `spent` the sum that they have reported. `rule`: the operator's decision about the user, as far as
    this answer knows.
    """

    spent: int = 0
    held: int = 0
    open: int = 0
    drawn: int = 0
    told: int = 0
    rule: UserRule = NO_RULE

    @property
    def reserved(self) -> int:
        return self.held - self.spent


class ReservationChange(msgspec.Struct, frozen=True):
    """Change of the reservation of `holder` from `before` to `after`; None stands for no reservation.

    `spent` is counted with it; a change without `before` counts nothing. `limit`: the store refuses the
    change if more than that would then be held; None: no limit applies. `drawn`: the store refuses the change
    if the account has drawn less. `rule`: the version of the rule about the user that gave the limit; a
    change with a limit is refused if the account has a later rule.
    """

    holder: str
    before: Reservation | None
    after: Reservation | None
    spent: int = 0
    limit: int | None = None
    drawn: int = 0
    rule: int = 0

    @property
    def more(self) -> int:
        """Amount by which the held sum grows."""
        return _amount(self.after) - _amount(self.before) + self.spent

    @property
    def opened(self) -> int:
        """Number by which the open reservations grow: 1, 0 or -1."""
        return _is_open(self.after) - _is_open(self.before)


def _amount(one: Reservation | None) -> int:
    return one.amount if one is not None else 0


def _is_open(one: Reservation | None) -> bool:
    return one is not None and not one.is_freed


class BudgetAnswer(msgspec.Struct, frozen=True):
    """Outcome of a request. `is_done`: it made its change; `sums`, `there`: account, reservation now."""

    is_done: bool
    sums: Sums
    there: Reservation | None


class Drawn(msgspec.Struct, frozen=True):
    """Outcome of moving money. `is_done`: it was moved; `user` and `tenant`: both accounts now."""

    is_done: bool
    user: Sums
    tenant: Sums


class Budgets(Protocol):
    """Accounts of users and tenants. Each change of a reservation is one conditional write of one item."""

    def move(self, account: Account, change: ReservationChange, now: int) -> BudgetAnswer:
        """Change a reservation that is exactly `before`, if the account has room for it.

        Of any number of callers no two get the same money. Reservations that have expired at `now` are freed
        before a change is refused for want of room. The store also refuses a change with a `limit` that opens
        one more reservation than it keeps of a user at a time. A repeated change is not made twice, and finds
        its `after` stored.
        """
        ...

    def draw(self, account: Account, seen: Sums, drawn: int, limit: int | None = None) -> Drawn:
        """Set a user's share of its tenant's day to `drawn`, and report the spending in `seen` to the tenant:
        both accounts or none.

        Refused if the stored `drawn` and `told` differ from `seen`, if the user would be left with less than
        it holds, or if the tenant's users would then have drawn more than `limit`. So the tenant's `held` is
        the sum of its users' `drawn`, even if a request is lost, repeated or late.
        """
        ...

    def expire(self, account: Account, now: int, holder: str = "", *, is_dead: bool = False) -> BudgetAnswer:
        """Free the reservations that have expired, and that of `holder` if it `is_dead`.
        They stay, with an amount of 0, so that their spending can still be counted.

        Return the reservation of `holder`, which is kept for an hour after its end.
        """
        ...

    def read(self, account: Account) -> Sums:
        """Return the sums and the user's rule, eventually consistent; zeros without spending."""
        ...

    def write_rule(self, tenant: str, user: str, rule: UserRule) -> UserRule | None:
        """Write the rule about a user if the stored rule has the preceding version.

        Return None if the rule was written, else the stored rule. A repeated write finds itself and returns
        None. A rule is kept for good, so that versions never begin again.
        """
        ...

    def read_rule(self, tenant: str, user: str) -> UserRule:
        """Return the rule about a user, strongly consistent."""
        ...

    def tell_rule(self, account: Account, rule: UserRule) -> None:
        """Copy the rule to a day's account, unless it has a later one. Changes with a limit heed it."""
        ...

    def ruled(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[str]:
        """Return the users with a rule, even one being written, by name, eventually consistent."""
        ...
