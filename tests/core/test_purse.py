"""Limits of money: what begins, waits or parks, and what people are told. Amounts are micro-dollars."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.spending import (
    BEGINS,
    WAITS,
    SpendingLimits,
    ask_for,
    ask_money,
    day_of,
    day_text,
    end_of,
    is_blocked,
    is_tenant_blocked,
    is_told,
    parked_notice,
    renewed_budget,
    saga_key,
    saga_notice,
    tenant_notices,
    tenant_parked,
    total_of,
    user_notices,
    user_parked,
)
from baton.core.graph.graph import Node
from baton.core.limits import DAY_MS, Limits
from baton.core.log import events as ev
from baton.core.log.state import Money, Origin, Outbox, State
from baton.core.read.costs import budget_view
from tests.kit.sentences import Says
from tests.kit.views import as_json

DOLLAR = 1_000_000
TERMS = SpendingLimits(saga=DOLLAR, user_day=5 * DOLLAR)
DAY = 20_717
NOW = DAY * DAY_MS + 1


def node(cost: int = 0) -> Node:
    return Node(name="think", kind="task", tool="llm", cost=cost)


def state(spent: int = 0, budget: int = 0, **more: Any) -> State:
    return State(version=1, origin=Origin(saga="s1"), money=Money(spent=spent, budget=budget), **more)


@dataclass
class Day:
    spent: int = 0


def test_a_deployment_says_its_terms_in_dollars() -> None:
    assert SpendingLimits.of(Limits()) == TERMS
    limits = Limits(saga_budget_usd="0", user_day_budget_usd="12.345678", budget_warning_percent=50)
    assert SpendingLimits.of(limits) == SpendingLimits(saga=0, user_day=12_345_678, warn_percent=50)


# ---- what a saga may begin


@pytest.mark.parametrize("cost", [0, 1, DOLLAR])
def test_what_fits_begins(cost: int) -> None:
    assert ask_money(state(), TERMS, node(cost), 0) == BEGINS


def test_what_is_under_way_counts_as_if_it_were_spent() -> None:
    assert ask_money(state(spent=300_000), TERMS, node(200_000), 500_000) == BEGINS
    assert ask_money(state(spent=300_000), TERMS, node(200_001), 500_000) == WAITS


def test_what_does_not_fit_parks_the_saga_once_nothing_is_under_way(says: Says) -> None:
    parked = ask_money(state(spent=980_000), TERMS, node(50_000), 0)
    says(parked)


def test_once_all_is_spent_nothing_begins_whatever_it_says_that_it_costs(says: Says) -> None:
    assert ask_money(state(spent=999_999), TERMS, node(), 0) == BEGINS
    assert ask_money(state(spent=DOLLAR), TERMS, node(), 1) == WAITS
    parked = ask_money(state(spent=1_200_000), TERMS, node(), 0)
    assert isinstance(parked, ev.Parked)
    says(parked.message)


def test_a_call_is_asked_for_with_what_is_spent_though_the_log_does_not_say_so_yet(says: Says) -> None:
    assert ask_for(state(spent=1), TERMS, "think", "llm", 500_000, 300_000, 200_000) == BEGINS
    assert ask_for(state(spent=1), TERMS, "think", "llm", 500_000, 300_000, 200_001) == WAITS
    assert ask_for(state(), SpendingLimits(), "think", "llm", 10**12, 10**12, 10**12) == BEGINS
    parked = ask_for(state(spent=1), TERMS, "think", "llm", 900_000, 0, 200_000)
    assert isinstance(parked, ev.Parked)
    says(parked.message)
    assert parked.node == "think"


def test_without_a_limit_everything_begins() -> None:
    assert ask_money(state(spent=10**12, budget=5), SpendingLimits(), node(10**12), 10**12) == BEGINS


def test_a_saga_that_was_given_more_has_more() -> None:
    assert total_of(state(budget=3 * DOLLAR), TERMS) == 3 * DOLLAR
    assert ask_money(state(spent=2 * DOLLAR, budget=3 * DOLLAR), TERMS, node(DOLLAR), 0) == BEGINS


def test_a_limit_that_was_raised_since_holds_for_sagas_that_were_given_less() -> None:
    assert total_of(state(budget=3 * DOLLAR), SpendingLimits(saga=10 * DOLLAR)) == 10 * DOLLAR


@pytest.mark.parametrize(
    ("spent", "budget", "total"),
    [(980_000, 0, 2 * DOLLAR), (1_500_000, 0, 2_500_000), (1_990_000, 2 * DOLLAR, 3 * DOLLAR)],
)
def test_a_saga_that_is_let_go_on_may_spend_as_much_again(spent: int, budget: int, total: int) -> None:
    parked = ev.Parked(code="budget_saga", message="")
    assert renewed_budget(state(spent, budget, parked=parked), TERMS) == total


def test_a_step_that_costs_more_than_a_limit_can_be_paid_for_in_the_end() -> None:
    of, large = state(), node(3 * DOLLAR)
    for _ in range(2):
        parked = ask_money(of, TERMS, large, 0)
        assert isinstance(parked, ev.Parked)
        of = replace(of, money=Money(budget=renewed_budget(replace(of, parked=parked), TERMS)))
    assert ask_money(of, TERMS, large, 0) == BEGINS


def test_a_saga_parked_for_something_else_is_given_nothing() -> None:
    assert renewed_budget(state(DOLLAR, parked=ev.Parked(code="worker_killed", message="")), TERMS) == 0
    assert renewed_budget(state(DOLLAR), TERMS) == 0


# ---- what is said of a saga


def test_at_four_fifths_of_its_money_there_is_a_warning(says: Says) -> None:
    assert saga_notice(state(spent=799_999), TERMS, NOW) is None
    says(saga_notice(state(spent=800_000), TERMS, NOW))


def test_the_share_can_be_another() -> None:
    terms = SpendingLimits(saga=DOLLAR, warn_percent=50)
    assert saga_notice(state(spent=499_999), terms, NOW) is None
    notice = saga_notice(state(spent=500_000), terms, NOW)
    assert notice is not None
    assert notice.key == "budget50/saga/s1/1000000"


def test_a_user_is_warned_once_and_of_a_new_limit_once_more() -> None:
    of = state(spent=900_000)
    notice = saga_notice(of, TERMS, NOW)
    assert notice is not None
    assert saga_notice(replace(of, outbox=Outbox(due=(notice,))), TERMS, NOW) is None
    told = replace(of, outbox=Outbox(sent=(notice.key,)))
    assert saga_notice(told, TERMS, NOW) is None
    assert is_told(told, notice.key)
    more = saga_notice(replace(told, money=Money(spent=1_700_000, budget=2 * DOLLAR)), TERMS, NOW)
    assert more is not None
    assert more.key == "budget80/saga/s1/2000000"


def test_without_a_limit_there_is_nothing_to_warn_of() -> None:
    assert saga_notice(state(spent=10**12), SpendingLimits(), NOW) is None


def test_a_user_is_told_that_a_saga_waits_for_money() -> None:
    of = state(spent=DOLLAR)
    parked = ask_money(of, TERMS, node(5), 0)
    assert isinstance(parked, ev.Parked)
    notice = parked_notice(saga_key(of, TERMS), parked, NOW)
    assert (notice.key, notice.code, notice.message, notice.node) == (
        "budget100/saga/s1/1000000",
        "budget_saga",
        parked.message,
        "think",
    )


# ---- a user's day


def test_a_day_is_that_of_utc() -> None:
    assert (day_of(NOW), day_of(end_of(DAY) - 1), day_of(end_of(DAY))) == (DAY, DAY, DAY + 1)
    assert day_text(DAY) == "2026-09-21"


def test_a_user_who_has_spent_it_all_is_blocked_for_the_day() -> None:
    assert not is_blocked(Day(5 * DOLLAR - 1), TERMS)
    assert is_blocked(Day(5 * DOLLAR), TERMS)
    assert not is_blocked(Day(10**12), SpendingLimits())


def test_a_saga_of_theirs_goes_on_by_itself_when_the_day_turns(says: Says) -> None:
    assert user_parked(Day(5 * DOLLAR), TERMS, DAY) == ev.Parked(
        code="budget_user_day",
        message="5 of the user's 5 dollars of 2026-09-21 are spent",
        until=end_of(DAY),
    )
    parked = user_parked(Day(4_990_000), TERMS, DAY, "think", 50_000)
    assert parked.until == end_of(DAY)
    says(parked.message)


def test_an_attempt_that_no_day_has_room_for_waits_for_a_person(says: Says) -> None:
    says(user_parked(Day(), TERMS, DAY, "think", 6 * DOLLAR))


def test_the_user_is_warned_and_then_told_that_it_is_over(says: Says) -> None:
    assert user_notices("ada", Day(3_999_999), TERMS, DAY, NOW) == ()
    (warning,) = user_notices("ada", Day(4 * DOLLAR), TERMS, DAY, NOW)
    assert warning == ev.Notice(
        key=f"budget80/user/ada/{DAY}",
        to="user",
        code="budget_warning",
        message="4 of the 5 dollars of ada for 2026-09-21 are spent",
        at=NOW,
    )
    again, over = user_notices("ada", Day(5_100_000), TERMS, DAY, NOW)
    assert again.key == warning.key
    assert (over.key, over.code, over.severity) == (f"budget100/user/ada/{DAY}", "budget_user_day", "high")
    says(over.message)


def test_without_a_limit_the_user_is_told_nothing() -> None:
    assert user_notices("ada", Day(10**12), SpendingLimits(), DAY, NOW) == ()


def test_a_users_day_can_be_looked_at() -> None:
    assert as_json(budget_view("ada", 4_500_000, 300_000, TERMS, DAY)) == {
        "user": "ada",
        "day": "2026-09-21",
        "spent_usd": 4.5,
        "reserved_usd": 0.3,
        "limit_usd": 5.0,
        "left_usd": 0.2,
        "blocked_until": None,
        "blocked": False,
        "saga_limit_usd": 1.0,
        "tenant": None,
    }
    over = as_json(budget_view("ada", 5_500_000, 0, TERMS, DAY))
    assert (over["left_usd"], over["blocked_until"]) == (0, "2026-09-22T00:00:00.000Z")
    free = as_json(budget_view("ada", 0, 0, SpendingLimits(), DAY))
    of_tenant = SpendingLimits(tenant_day=10_000_000)
    assert as_json(budget_view("ada", 0, 0, of_tenant, DAY, (10_000_000, 500_000)))["tenant"] == {
        "spent_usd": 10.0,
        "reserved_usd": 0.5,
        "limit_usd": 10.0,
        "left_usd": 0,
        "blocked_until": "2026-09-22T00:00:00.000Z",
    }
    assert (free["limit_usd"], free["left_usd"], free["saga_limit_usd"], free["blocked_until"]) == (None,) * 4


def test_of_a_tenants_day_those_on_call_are_told_once_each(says: Says) -> None:
    terms = SpendingLimits(tenant_day=10_000_000)
    assert tenant_notices(Day(7_999_999), terms, DAY, NOW) == ()
    warning, spent = tenant_notices(Day(10_000_000), terms, DAY, NOW)
    assert (warning.key, warning.to, warning.code) == (f"budget80/tenant/{DAY}", "on_call", "budget_warning")
    assert (spent.key, spent.code) == (f"budget100/tenant/{DAY}", "budget_tenant_day")
    says(spent.message)
    assert tenant_notices(Day(10**12), SpendingLimits(), DAY, NOW) == ()


def test_a_saga_waits_for_the_tenants_next_day_or_for_an_operator(says: Says) -> None:
    terms = SpendingLimits(tenant_day=10_000_000)
    assert is_tenant_blocked(Day(10_000_000), terms)
    assert not is_tenant_blocked(Day(9_999_999), terms)
    assert not is_tenant_blocked(Day(10**12), SpendingLimits())
    parked = tenant_parked(Day(9_900_000), terms, DAY, "ask", 200_000)
    assert (parked.code, parked.until) == ("budget_tenant_day", end_of(DAY))
    says(parked.message)
    never = tenant_parked(Day(0), terms, DAY, "ask", 10_000_001)
    assert never.until == 0
    says(never.message)


def test_days_count_where_either_limit_is_set() -> None:
    assert SpendingLimits(user_day=1).counts_days
    assert SpendingLimits(tenant_day=1).counts_days
    assert not SpendingLimits(saga=1).counts_days
