"""Limits of money that sagas share: which of them hold a step or a child, and what follows when one is reached."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.decide.spending import (
    SpendingLimits,
    kept_until,
    limit_reached,
    limits_at,
    parked_notice,
    renewed_budget,
    tree_key,
)
from baton.core.graph.graph import Cap, Node
from baton.core.limits import DAY_MS
from baton.core.log import events as ev
from baton.core.log.records import SharedLimit
from baton.core.log.state import Money, Origin, State
from tests.kit.sentences import Says

DOLLAR = 1_000_000
TERMS = SpendingLimits(saga=DOLLAR)
DAY = 20_000
ROOT = State(origin=Origin(tenant="t", saga="r"))
OF_ROOT = SharedLimit(saga="r", most=DOLLAR, day=DAY)
OF_NODE = SharedLimit(saga="r", most=50_000, day=DAY, node="kids")
CHILD = State(origin=Origin(tenant="t", saga="r.0.kids", depth=1, shared_limits=(OF_NODE, OF_ROOT)))
KIDS = Node(name="kids", kind="workflow", workflow="other", limits={"cost": Cap(most=50_000)})
STEP = Node(name="step", kind="task", tool="t", limits={"cost": Cap(most=7)})


def test_a_saga_that_starts_none_and_has_none_above_it_has_no_account() -> None:
    assert limits_at(ROOT, STEP, Cap(most=5), TERMS, DAY, shares=False) == ()


def test_a_root_has_its_own_limits_the_nearest_first() -> None:
    of_saga = SharedLimit(saga="r", most=9, day=DAY, node="")
    assert limits_at(ROOT, KIDS, Cap(most=9), TERMS, DAY, shares=True) == (OF_NODE, of_saga, OF_ROOT)
    assert [one.account for one in (OF_NODE, of_saga, OF_ROOT)] == ["r/kids", "r/", "r"]


def test_a_limit_that_ends_nothing_or_is_of_a_step_is_not_shared() -> None:
    slow = replace(KIDS, limits={"cost": Cap(most=5, then="throttle")})
    assert limits_at(ROOT, slow, Cap(most=5, then="summarise"), TERMS, DAY, shares=True) == (OF_ROOT,)
    assert limits_at(ROOT, STEP, None, TERMS, DAY, shares=True) == (OF_ROOT,)
    assert limits_at(ROOT, None, None, TERMS, DAY, shares=True) == (OF_ROOT,)


def test_a_child_is_held_by_those_above_it_and_opens_no_account_for_the_deployments_limit() -> None:
    assert limits_at(CHILD, STEP, None, TERMS, DAY, shares=True) == (OF_NODE, OF_ROOT)
    assert limits_at(CHILD, None, None, SpendingLimits(), DAY, shares=False) == (OF_NODE,), "switched off"
    assert limits_at(ROOT, KIDS, None, SpendingLimits(), DAY, shares=True) == (OF_NODE,)


@pytest.mark.parametrize(
    ("state", "terms", "most"),
    [
        (CHILD, SpendingLimits(saga=3 * DOLLAR), 3 * DOLLAR),
        (replace(CHILD, money=Money(budget=2 * DOLLAR)), TERMS, 2 * DOLLAR),
        (CHILD, SpendingLimits(saga=DOLLAR // 2), DOLLAR),
    ],
)
def test_who_raises_the_limit_raises_it_for_children_that_are_there(
    state: State, terms: SpendingLimits, most: int
) -> None:
    assert limits_at(state, STEP, None, terms, DAY, shares=False)[-1] == replace(OF_ROOT, most=most)


def test_a_child_that_is_resumed_may_go_on_beyond_what_was_raised_above_it() -> None:
    raised = replace(OF_ROOT, most=4 * DOLLAR)
    child = replace(CHILD, origin=replace(CHILD.origin, shared_limits=(raised,)))
    parked = replace(child, parked=ev.Parked(code="budget_saga", message="m"))
    assert renewed_budget(parked, TERMS) == 5 * DOLLAR


def test_a_limit_of_a_document_fails_the_call_and_that_of_the_deployment_parks_the_saga(says: Says) -> None:
    failure = limit_reached(OF_NODE, TERMS, 40_000, 40_000, "step", "model")
    assert isinstance(failure, ev.Failure)
    assert (failure.code, failure.node) == ("limit_cost", "step")
    assert "node `kids` is 0.05 dollars" in failure.message
    parked = limit_reached(OF_ROOT, TERMS, 900_000, 400_000, "step", "model")
    assert isinstance(parked, ev.Parked)
    says(parked.message)
    assert limit_reached(OF_ROOT, TERMS, DOLLAR, 0, "step", "step").message.startswith("1 of the 1 dollars")
    assert parked_notice(tree_key(OF_ROOT), parked, 5).key == "budget100/tree/r/1000000"


def test_an_account_is_kept_for_its_saga_and_one_that_begins_at_its_end() -> None:
    of = replace(ROOT, origin=replace(ROOT.origin, started_at=100 * DAY_MS + 5, ends_by=130 * DAY_MS + 5))
    assert kept_until(of) == 160
    assert kept_until(replace(ROOT, origin=replace(ROOT.origin, started_at=100 * DAY_MS))) == 832, (
        "an old log"
    )
