"""The views of a user's money of a day, of the tenant's, and of what an operator has decided about a user.

What follows from it is decided in core/decide/spending.py.
"""

from __future__ import annotations

from typing import Any

from baton.core.decide.spending import SpendingLimits, end_of, shown
from baton.core.money import MICRO
from baton.core.times import iso
from baton.core.user_rules import NO_RULE, UserRule


def budget_view(
    user: str,
    spent: int,
    reserved: int,
    terms: SpendingLimits,
    day: int,
    tenant: tuple[int, int] = (0, 0),
    rule: UserRule = NO_RULE,
) -> dict[str, Any]:
    """What `GET /budget` shows. Where there is no limit nothing is counted.

    `tenant`: what its users together have told to be spent, and what they have drawn besides.
    """
    return {
        "user": user,
        "day": shown(day),
        **_of_user(spent, reserved, rule, terms.user_day, day),
        "saga_limit_usd": terms.saga / MICRO if terms.saga else None,
        "tenant": _sums(*tenant, terms.tenant_day, day) if terms.tenant_day else None,
    }


def user_view(user: str, spent: int, reserved: int, rule: UserRule, of_all: int, day: int) -> dict[str, Any]:
    """A row of `GET /users`: one user's day, and what an operator has decided. `of_all`: what each user may spend on a day."""
    view = _of_user(spent, reserved, rule, of_all, day)
    is_spent = bool(view["blocked_until"])
    return {
        "user": user,
        "state": "blocked" if view["blocked"] else "spent" if is_spent else "open",
        **view,
        "own_limit_usd": None if rule.limit is None else rule.limit / MICRO,
        "by": rule.by or None,
        "at": iso(rule.at) if rule.at else None,
        "note": rule.note or None,
    }


def _of_user(spent: int, reserved: int, rule: UserRule, of_all: int, day: int) -> dict[str, Any]:
    """A rule counts where there is a limit of all users."""
    limit = rule.limit if of_all and rule.limit is not None else of_all
    if rule.is_blocked and of_all:
        return {**_sums(spent, reserved, limit, day), "left_usd": 0.0, "blocked_until": None, "blocked": True}
    return {**_sums(spent, reserved, limit, day), "blocked": False}


def _sums(spent: int, reserved: int, limit: int, day: int) -> dict[str, Any]:
    return {
        "spent_usd": spent / MICRO,
        "reserved_usd": reserved / MICRO,
        "limit_usd": limit / MICRO if limit else None,
        "left_usd": max(limit - spent - reserved, 0) / MICRO if limit else None,
        "blocked_until": iso(end_of(day)) if limit and spent >= limit else None,
    }
