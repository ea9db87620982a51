"""The view of a user's money of a day, and of the tenant's.

What follows from it is decided in core/decide/spending.py.
"""

from __future__ import annotations

from typing import Any

from baton.core.decide.spending import SpendingLimits, end_of, shown
from baton.core.money import MICRO
from baton.core.times import iso


def budget_view(
    user: str, spent: int, reserved: int, terms: SpendingLimits, day: int, tenant: tuple[int, int] = (0, 0)
) -> dict[str, Any]:
    """What `GET /budget` shows. Where there is no limit nothing is counted.

    `tenant`: what its users together have told to be spent, and what they have drawn besides.
    """
    return {
        "user": user,
        "day": shown(day),
        **_sums(spent, reserved, terms.user_day, day),
        "saga_limit_usd": terms.saga / MICRO if terms.saga else None,
        "tenant": _sums(*tenant, terms.tenant_day, day) if terms.tenant_day else None,
    }


def _sums(spent: int, reserved: int, limit: int, day: int) -> dict[str, Any]:
    return {
        "spent_usd": spent / MICRO,
        "reserved_usd": reserved / MICRO,
        "limit_usd": limit / MICRO if limit else None,
        "left_usd": max(limit - spent - reserved, 0) / MICRO if limit else None,
        "blocked_until": iso(end_of(day)) if limit and spent >= limit else None,
    }
