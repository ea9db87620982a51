"""Money as people and tools say it, and as logs keep it: whole millionths of a dollar.

What anything costs, and who may spend it, is not decided here.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import ROUND_CEILING, Decimal, InvalidOperation
from typing import Any, Final

import msgspec
from msgspec.structs import replace

MICRO = 1_000_000
MOST_USD = 1_000_000


def amount_of(usd: Any) -> Decimal:
    """Return dollars exactly as they were written. Raises `ValueError` that names the right form."""
    if isinstance(usd, bool) or not isinstance(usd, Decimal | str | int | float):
        raise ValueError(f"`{str(usd)[:40]}` is not an amount of dollars; give for example Decimal('0.0123')")
    try:
        # By way of its text: the float 0.1 is meant as 0.1.
        amount = Decimal(str(usd))
    except InvalidOperation:
        raise ValueError(
            f"`{str(usd)[:40]}` is not an amount of dollars; give for example '0.0123'"
        ) from None
    if not (amount.is_finite() and 0 <= amount <= MOST_USD):
        raise ValueError(f"`{str(usd)[:40]}` must be between 0 and {MOST_USD:,} dollars")
    return amount


class Assumed(Decimal):
    """An amount that was not reported: the most that it can have been."""


def assumed_in(amounts: Collection[Decimal]) -> int:
    """Return the assumed part of the sum, in micro-dollars."""
    return micro_dollars([one for one in amounts if isinstance(one, Assumed)]) if amounts else 0


def micro_dollars(amounts: Collection[Decimal]) -> int:
    """Return the sum in micro-dollars. A fraction of a millionth is rounded up once, in the sum."""
    return int((sum(amounts, Decimal()) * MICRO).to_integral_value(ROUND_CEILING)) if amounts else 0


def usd(amount: float) -> str:
    """Write dollars as `$1,234.50`, `$0.05` or `$0.000894`: from a dollar on to the cent,
    below it to the billionth, as far as there are digits.
    """
    sign, amount = "-" if amount < 0 else "", abs(amount)
    if amount >= 1:
        return f"{sign}${amount:,.2f}"
    whole, _, rest = f"{amount:.9f}".rstrip("0").partition(".")
    return f"{sign}${whole}.{rest:0<2}"


def dollars(micro: int) -> str:
    """Write micro-dollars as dollars, such as `1.5`, `0.000001` or `2`."""
    text = f"{Decimal(micro) / MICRO:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


BLOCKED: Final = -1
"""In the place of a limit: nothing may be spent."""
LONGEST_NOTE: Final = 500


class UserRule(msgspec.Struct, frozen=True):
    """`version` counts the changes; 0: no operator has decided about the user. `limit`: micro-dollars a day,
    None: that of all users.

    `by`, `at` and `note` are of the last change.
    """

    version: int = 0
    is_blocked: bool = False
    limit: int | None = None
    by: str = ""
    at: int = 0
    note: str = ""

    @property
    def short(self) -> UserRule:
        """Part of the rule that the account of a day repeats: enough to spend by it."""
        limit = None if self.is_blocked else self.limit
        return UserRule(self.version, self.is_blocked, limit)

    def most(self, of_all: int) -> int:
        """Return the micro-dollars that the user may spend on a day if all users may spend `of_all`.

        `BLOCKED`: nothing. 0 for all: nothing is counted.
        """
        if not of_all:
            return 0
        if self.is_blocked:
            return BLOCKED
        return of_all if self.limit is None else self.limit


NO_RULE: Final = UserRule()


def newer_rule(one: UserRule, other: UserRule) -> UserRule:
    """Return the later of two rules; of one version the first."""
    return other if other.version > one.version else one


def blocked_rule(there: UserRule, by: str, note: str, now: int) -> UserRule:
    """Return the rule that blocks the user. A limit of the user is kept for afterwards."""
    return _next(there, by, note, now, is_blocked=True, limit=there.limit)


def unblocked_rule(there: UserRule, by: str, note: str, now: int) -> UserRule:
    """Return the rule without the block of the user."""
    return _next(there, by, note, now, is_blocked=False, limit=there.limit)


def limited_rule(there: UserRule, limit: int | None, by: str, note: str, now: int) -> UserRule:
    """Return the rule with the user's own limit, or (None) with that of all users.
    A blocked user stays blocked.
    """
    return _next(there, by, note, now, is_blocked=there.is_blocked, limit=limit)


def _next(there: UserRule, by: str, note: str, now: int, *, is_blocked: bool, limit: int | None) -> UserRule:
    if (is_blocked, limit) == (there.is_blocked, there.limit) and (note == there.note or not note):
        return there
    return replace(
        there, version=there.version + 1, is_blocked=is_blocked, limit=limit, by=by, at=now, note=note
    )
