"""The money that users have spent on a day or hold for calls under way: one item for each user and day, and
one of their tenant. Besides, an operator's rule about one user.

Amounts are whole micro-dollars, times UTC epoch milliseconds. What a limit is, and what follows from a
refusal, is not decided here (core/decide/spending.py, runtime/money/ledger.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from baton.core.money import NO_RULE, UserRule


class Account(msgspec.Struct, frozen=True):
    """A user's money of one day; `day` counts UTC days since 1970. Without a user: that of the whole tenant."""

    tenant: str
    user: str
    day: int

    @property
    def of_tenant(self) -> Account:
        """The tenant's account of that day."""
        return Account(self.tenant, "", self.day)


class Reservation(msgspec.Struct, frozen=True):
    """All that one invocation holds of an account.
    After `until` the invocation is dead, and the amount may be freed.

    `number` counts the invocation's requests, so that no two states of a reservation are equal. `is_freed`:
    its time was over, and another has freed it; its amount is 0. `billed`: what of the amount is for requests
    that are billed even if their answer is not heard, by what they are for. It is not freed, but spent. With
    a number below 0 it is a mark: its holder leaves it, so that no reservation that lands later takes
    anything. A store keeps an account's newest hundred marks for a quarter of an hour at least.
    """

    number: int
    amount: int
    until: int
    is_freed: bool = False
    billed: dict[str, int] = {}

    def freed(self) -> Reservation:
        """What is left of it when its time is over."""
        return msgspec.structs.replace(self, amount=0, is_freed=True)

    @property
    def is_mark(self) -> bool:
        return self.number < 0


class Sums(msgspec.Struct, frozen=True):
    """`held` is the sum of spent and reserved money, `open` the number of invocations with a reservation.

    Of a user whose tenant has a limit: `drawn` is what it has of the tenant's day, `told` what the tenant's
    account counts of its `spent`. A tenant's `held` is what its users have drawn together, its `spent` what
    they have told. `rule`: what an operator has decided about the user, as far as this answer knows.
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


class Change(msgspec.Struct, frozen=True):
    """What becomes of the reservation of `holder`: from `before` to `after`, None where there is none.

    `spent` is counted with it; a change without `before` counts nothing. `limit`: it is refused if more than
    that would then be held; None: the room is not asked about. `drawn`: it is refused if the account has
    drawn less. `rule`: the version of the rule about the user by which the limit was found; one with a limit
    is refused if a later rule stands on the account.
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
        """So much more is held afterwards."""
        return _amount(self.after) - _amount(self.before) + self.spent

    @property
    def opened(self) -> int:
        """So many more reservations are open afterwards: 1, 0 or -1."""
        return _is_open(self.after) - _is_open(self.before)


def _amount(one: Reservation | None) -> int:
    return one.amount if one is not None else 0


def _is_open(one: Reservation | None) -> bool:
    return one is not None and not one.is_freed


class Answer(msgspec.Struct, frozen=True):
    """Whether this request made its change, and what the account and the holder's reservation are now."""

    is_done: bool
    sums: Sums
    there: Reservation | None


class Drawn(msgspec.Struct, frozen=True):
    """Whether this request moved money between a tenant's day and a user's, and what both accounts are now."""

    is_done: bool
    user: Sums
    tenant: Sums


class Budgets(Protocol):
    """The accounts of users and tenants. Each change of a reservation is one conditional write of one item."""

    def move(self, account: Account, change: Change, now: int) -> Answer:
        """Change a reservation that is exactly `before`, if there is room for it.

        Of any number of callers no two get the same money.
        What is past its time at `now` is freed before a change is refused for want of room.
        A change with a `limit` that opens one more reservation than the store keeps of a user at a time
        is refused, too. A change that is made again is not done again, and finds its `after` there.
        """
        ...

    def draw(self, account: Account, seen: Sums, drawn: int, limit: int | None = None) -> Drawn:
        """Let a user's account have `drawn` of its tenant's day, and tell that
        what `seen` has spent: both accounts or none.

        Refused if `drawn` and `told` are not as `seen`, if it would be left with less than it
        holds, or if the tenant's users would then have drawn more than `limit`. So the tenant's
        `held` is the sum of its users' `drawn`, whatever is lost, made twice or lands late.
        """
        ...

    def expire(self, account: Account, now: int, holder: str = "") -> Answer:
        """Free reservations past their time.
        They stay, with nothing held, so that what was spent can be counted.

        Returns what is there of the `holder`'s, for an hour after its time.
        """
        ...

    def read(self, account: Account) -> Sums:
        """The sums and the rule about the user, eventually consistent; zeros
        for an account without any spending.
        """
        ...

    def write_rule(self, tenant: str, user: str, rule: UserRule) -> UserRule | None:
        """Put the rule about a user if what is there has the version before its own.

        Returns what is there instead: None if it was written. A write that is repeated because its
        answer was lost finds itself there. A rule is kept for good, so that versions never begin again.
        """
        ...

    def read_rule(self, tenant: str, user: str) -> UserRule:
        """The rule about a user, strongly consistent."""
        ...

    def tell_rule(self, account: Account, rule: UserRule) -> None:
        """Let the account of a day say the rule, unless it says a later one:
        each change with a limit heeds it from then on.
        """
        ...

    def ruled(self, tenant: str, after: str = "", limit: int = 100) -> Sequence[str]:
        """The users about whom there is a rule, or is about to be one, in the
        order of their names, eventually consistent.
        """
        ...
