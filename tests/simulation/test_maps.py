"""Maps through faults: a parent that is cancelled or undone while 50 children run, and lost and repeated words of their ends.

`make test` has 30 children of the 50, and fewer faults (`BATON_CRASH_POINTS=all`).
"""

from __future__ import annotations

import os
from functools import partial

import pytest

from baton.core.log.records import Child
from tests.kit.bugs import replaced
from tests.kit.corpus import Scenario, patiently, start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, EVERYTHING, Chaos, Plan
from tests.kit.map_scenarios import later, loans, loans_called_off
from tests.kit.oracles import CHILDREN, LIVENESS
from tests.kit.verdict import run

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
COUNT = 50 if IS_ALL else 30
SEEDS = range(24 if IS_ALL else 1)
APART, STEP = 18, 1 if IS_ALL else 18
"""A worker dies at every write of this distance in one run; the next run begins so many writes later: together they are every ninth write, or all."""
MOST_WRITES = 4_000
FAMILIES = {
    "undone-after": Scenario(
        "undone-after", partial(loans, start=start, patiently=patiently, count=COUNT), "rolled_back"
    ),
    "cancelled": Scenario(
        "cancelled",
        partial(loans_called_off, start=start, patiently=patiently, undo=False, count=COUNT),
        "cancelled",
    ),
    "undone": Scenario(
        "undone",
        partial(loans_called_off, start=start, patiently=patiently, undo=True, count=COUNT),
        "rolled_back",
    ),
    "late": Scenario("late", partial(later, start=start, patiently=patiently, last="value: 1"), "completed"),
}
LATE = {
    "late-undone": Scenario(
        "late-undone", partial(later, start=start, patiently=patiently, last="tool: refuses"), "rolled_back"
    ),
}
"""Of children that are stopped at once, one that is cut off twice while it acts asks a person: it does not end by itself."""
ALL = {**FAMILIES, **LATE}


@pytest.mark.parametrize("name", ALL)
def test_a_family_ends_as_it_should_with_nothing_in_its_way(name: str) -> None:
    verdict = run(ALL[name], Plan())
    assert (verdict.status, verdict.broken) == (ALL[name].expected, ())


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("name", ALL)
def test_a_family_ends_as_it_should_whatever_breaks(name: str, seed: int) -> None:
    verdict = run(ALL[name], Chaos(seed=seed, kinds=EVERYTHING))
    assert (verdict.status, verdict.broken) == (ALL[name].expected, ())


@pytest.mark.parametrize("first", range(1, APART + 1, STEP))
@pytest.mark.parametrize("name", FAMILIES)
def test_a_family_ends_as_it_should_where_parent_and_children_die_at_writes_all_the_way(
    name: str, first: int
) -> None:
    plan = Plan(
        {number: (CRASH_BEFORE, CRASH_AFTER)[number % 2] for number in range(first, MOST_WRITES, APART)}
    )
    verdict = run(FAMILIES[name], plan)
    assert len(plan.writes) > 18 * APART, "too little was written to prove anything"
    if (name, first) == ("undone", 12):
        # A worker died while a child's step may have run, and its parent has it undone: only a person knows whether it has happened.
        assert verdict.status == "compensating"
        assert {text.rpartition(": ")[2] for text in verdict.broken} == {"compensating", "suspended"}
        return
    assert (verdict.status, verdict.broken) == (FAMILIES[name].expected, ())


def test_children_of_items_that_are_not_stopped_would_be_seen() -> None:
    """A planted bug: what is dropped with its map leaves no child behind."""
    with replaced(Child, "orphan", property(lambda self: None)):
        verdict = run(FAMILIES["cancelled"], Plan())
    assert any(CHILDREN in text or LIVENESS in text for text in verdict.broken), verdict.broken
