"""What an operator decides about one user, and what follows for that user's day."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.decide.spending import USER_BLOCKED, SpendingLimits, is_blocked, user_notices, user_parked
from baton.core.limits import DAY_MS
from baton.core.money import (
    BLOCKED,
    NO_RULE,
    UserRule,
    blocked_rule,
    limited_rule,
    newer_rule,
    unblocked_rule,
)
from baton.core.read.costs import budget_view, user_view
from baton.ports import Sums
from tests.kit.views import as_json

DOLLAR = 1_000_000
NOW, DAY = 20_700 * DAY_MS, 20_700
TERMS = SpendingLimits(user_day=5 * DOLLAR)


def test_a_block_and_a_limit_are_apart() -> None:
    limited = limited_rule(NO_RULE, 2 * DOLLAR, "op", "", NOW)
    blocked = blocked_rule(limited, "op", "a loop", NOW + 1)
    assert blocked == UserRule(2, True, 2 * DOLLAR, "op", NOW + 1, "a loop")
    raised = limited_rule(blocked, None, "eve", "", NOW + 2)
    assert (raised.is_blocked, raised.limit) == (True, None)
    assert unblocked_rule(blocked, "eve", "", NOW + 2) == UserRule(3, False, 2 * DOLLAR, "eve", NOW + 2)


@pytest.mark.parametrize("note", ["", "a loop"])
def test_what_changes_nothing_is_no_change(note: str) -> None:
    blocked = blocked_rule(NO_RULE, "op", "a loop", NOW)
    assert blocked_rule(blocked, "eve", note, NOW + 9) is blocked
    assert unblocked_rule(NO_RULE, "eve", "", NOW) is NO_RULE
    assert blocked_rule(blocked, "eve", "another reason", NOW + 9).note == "another reason"


@pytest.mark.parametrize(
    ("rule", "of_all", "most"),
    [
        (NO_RULE, 5, 5),
        (UserRule(1, limit=7), 5, 7),
        (UserRule(1, True, 7), 5, BLOCKED),
        (UserRule(1, True, 7), 0, 0),
    ],
)
def test_a_user_may_spend_by_the_own_rule_where_days_are_counted(
    rule: UserRule, of_all: int, most: int
) -> None:
    assert rule.most(of_all) == most
    assert replace(rule, by="op", note="x").short.most(of_all) == most, "as the account of a day says it"


def test_of_two_rules_the_later_counts() -> None:
    one, other = UserRule(1, True), UserRule(2)
    assert newer_rule(one, other) == newer_rule(other, one) == other
    assert newer_rule(UserRule(1, by="op"), UserRule(1)).by == "op"


def test_a_blocked_user_is_over_before_anything_is_spent_and_told_no_sums() -> None:
    terms = replace(TERMS, user_day=BLOCKED)
    assert is_blocked(Sums(), terms)
    assert not is_blocked(Sums(), SpendingLimits())
    parked = user_parked(Sums(), terms, DAY, "pay", DOLLAR, "card")
    assert (parked.code, parked.node, parked.until) == (USER_BLOCKED, "pay", (DAY + 1) * DAY_MS)
    assert user_notices("ada", Sums(spent=DOLLAR), terms, DAY, NOW) == ()


def test_an_operator_sees_what_was_decided_and_what_is_spent() -> None:
    rule = UserRule(3, True, 2 * DOLLAR, "op", NOW, "a loop")
    assert as_json(user_view("ada", 500_000, 250_000, rule, 5 * DOLLAR, DAY)) == {
        "user": "ada",
        "state": "blocked",
        "spent_usd": 0.5,
        "reserved_usd": 0.25,
        "limit_usd": 2.0,
        "left_usd": 0.0,
        "blocked_until": None,
        "blocked": True,
        "own_limit_usd": 2.0,
        "by": "op",
        "at": "2026-09-04T00:00:00.000Z",
        "note": "a loop",
    }
    free = as_json(user_view("ada", 0, 0, NO_RULE, 5 * DOLLAR, DAY))
    assert (free["state"], free["limit_usd"], free["by"], free["at"]) == ("open", 5.0, None, None)
    assert as_json(user_view("ada", 5 * DOLLAR, 0, NO_RULE, 5 * DOLLAR, DAY))["state"] == "spent"


def test_where_no_day_is_counted_a_rule_is_shown_and_counts_nothing() -> None:
    view = as_json(user_view("ada", 0, 0, UserRule(1, True, DOLLAR), 0, DAY))
    assert (view["state"], view["limit_usd"], view["own_limit_usd"]) == ("open", None, 1.0)


def test_a_user_sees_the_own_limit_and_the_block() -> None:
    view = as_json(budget_view("ada", DOLLAR, 0, TERMS, DAY, rule=UserRule(1, False, 2 * DOLLAR)))
    assert (view["limit_usd"], view["left_usd"], view["blocked"]) == (2.0, 1.0, False)
    assert as_json(budget_view("ada", DOLLAR, 0, TERMS, DAY, rule=UserRule(1, True)))["blocked"]
