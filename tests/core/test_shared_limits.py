"""Limits of money that sagas share: which of them hold a step or a child, and what follows when one is reached."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.decide.decide import decide
from baton.core.decide.program import Program
from baton.core.decide.spending import (
    SpendingLimits,
    kept_until,
    limit_reached,
    limits_at,
    parked_notice,
    renewed_budget,
    tree_key,
)
from baton.core.graph.graph import AgentParts, Cap, Graph, Node
from baton.core.limits import DAY_MS
from baton.core.log import events as ev
from baton.core.log.folding.workflow_limits import left_to_child, used_of_caller, with_child_use
from baton.core.log.records import SharedLimit
from baton.core.log.scopes import Agent, Progress
from baton.core.log.slots import Slot
from baton.core.log.state import Money, Origin, State, Used
from baton.core.models.usage import Allowance
from baton.core.nodes.registry import KINDS
from tests.core.asked import steps_of
from tests.core.build import T0, Saga, task
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


# ---- tokens and turns

PARTS = AgentParts(turn=Node(name="lead", kind="agent"), turns=9, calls_in_a_turn=1, calls_in_all=9)
LEAD = Node(name="lead", kind="agent", limits={"tokens": Cap(most=900)}, agent=PARTS)
AT = Slot.parse("lead#t2-0")
WORK = Agent(given=ev.Value(), turn=2, used=Progress(tokens=300, turns=3))
USED = {"": Used(tokens=40, turns=1), "lead": Used(tokens=30)}
LIMITED = State(origin=Origin(tenant="t", saga="s", allowed=Allowance(tokens=100, turns=20)), used=USED)


@pytest.mark.parametrize(
    ("state", "node", "saga", "left"),
    [
        (State(), KIDS, {}, None),
        (State(), LEAD, {}, Allowance(tokens=900)),
        (State(open={"lead": WORK}), LEAD, {}, Allowance(tokens=900, turns=3)),
        (State(used=USED), KIDS, {"tokens": Cap(most=50)}, Allowance(tokens=10)),
        (State(used=USED), KIDS, {"tokens": Cap(most=30)}, Allowance(tokens=1)),
        (State(used=USED), KIDS, {"tokens": Cap(most=50, then="throttle")}, None),
        (LIMITED, KIDS, {}, Allowance(tokens=60, turns=19)),
        (replace(LIMITED, open={"lead": WORK}), LEAD, {}, Allowance(tokens=60, turns=3)),
        (
            State(open={"lead": WORK}),
            replace(LEAD, agent=replace(PARTS, tokens=310)),
            {},
            Allowance(tokens=10, turns=3),
        ),
    ],
)
def test_a_child_is_left_what_the_nearest_of_all_limits_leaves_and_at_least_one(
    state: State, node: Node, saga: dict[str, Cap], left: Allowance | None
) -> None:
    agent = WORK if state.open else None
    assert left_to_child(state, node, saga, agent) == left


def test_a_child_reports_what_counts_for_its_caller_and_no_more() -> None:
    assert used_of_caller(State(used=USED)) is None
    assert used_of_caller(LIMITED) == Allowance(tokens=40, turns=1)
    of_tokens = replace(LIMITED, origin=Origin(allowed=Allowance(tokens=5)))
    assert used_of_caller(of_tokens) == Allowance(tokens=40)


def test_what_a_child_has_used_counts_for_the_saga_the_node_and_the_agent() -> None:
    used = Allowance(tokens=5, turns=2)
    after = with_child_use(replace(LIMITED, open={"lead": WORK}), AT.text, used)
    work = after.open["lead"]
    assert isinstance(work, Agent)
    assert work.used == Progress(tokens=305, turns=5)
    assert after.used == {"": Used(tokens=45, turns=3), "lead": Used(tokens=35)}
    assert with_child_use(LIMITED, "lead", None) is LIMITED
    assert with_child_use(LIMITED, "lead", used).used == after.used
    assert with_child_use(State(used=USED), "lead", used).used[""] == Used(tokens=45, turns=1)


@pytest.mark.parametrize(("own", "most"), [(None, 100), (70, 70), (700, 100)])
def test_a_step_of_a_child_has_the_lower_limit_of_its_own_and_its_callers(own: int | None, most: int) -> None:
    limits = {} if own is None else {"tokens": Cap(most=own)}
    program = Program(Graph(name="w", nodes=(task("a"),), limits=limits), KINDS)
    saga = Saga(program, allowed=Allowance(tokens=100))
    (step,) = steps_of(decide(program, saga.state, T0))
    assert step.tokens == Cap(most=most)
