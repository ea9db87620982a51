"""An operator's rule about one user: blocked, or a limit of the day in the place of that of all users.

It is kept by the store (ports/budgets.py); a limit of all users, and what follows from a day that is spent, is in decide/spending.py.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec.structs import replace

BLOCKED: Final = -1
"""In the place of a limit: nothing may be spent."""
LONGEST_NOTE: Final = 500


class UserRule(msgspec.Struct, frozen=True):
    """`version` counts the changes; 0: no operator has decided about the user. `limit`: micro-dollars a day, None: that of all users.

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
        """The part of the rule that the account of a day repeats: enough to spend by it."""
        limit = None if self.is_blocked else self.limit
        return UserRule(self.version, self.is_blocked, limit)

    def most(self, of_all: int) -> int:
        """Micro-dollars that the user may spend on a day, where all users may spend `of_all`; `BLOCKED`: nothing. 0 for all: nothing is counted."""
        if not of_all:
            return 0
        if self.is_blocked:
            return BLOCKED
        return of_all if self.limit is None else self.limit


NO_RULE: Final = UserRule()


def newer(one: UserRule, other: UserRule) -> UserRule:
    """The later of two; of one version the first."""
    return other if other.version > one.version else one


def blocking(there: UserRule, by: str, note: str, now: int) -> UserRule:
    """The user is blocked. A limit of the user is kept for afterwards."""
    return _next(there, by, note, now, is_blocked=True, limit=there.limit)


def unblocking(there: UserRule, by: str, note: str, now: int) -> UserRule:
    """The user is not blocked any more."""
    return _next(there, by, note, now, is_blocked=False, limit=there.limit)


def limiting(there: UserRule, limit: int | None, by: str, note: str, now: int) -> UserRule:
    """The user has a limit of its own, or (None) that of all users. One that is blocked stays so."""
    return _next(there, by, note, now, is_blocked=there.is_blocked, limit=limit)


def _next(there: UserRule, by: str, note: str, now: int, *, is_blocked: bool, limit: int | None) -> UserRule:
    if (is_blocked, limit) == (there.is_blocked, there.limit) and (note == there.note or not note):
        return there
    return replace(
        there, version=there.version + 1, is_blocked=is_blocked, limit=limit, by=by, at=now, note=note
    )
