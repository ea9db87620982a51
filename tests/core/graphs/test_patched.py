"""Random graphs, each changed on its way into another random graph: what is not refused comes to an end, whatever else happens.

No stuck token, no step twice in one round, nothing read that is not there, no other arguments than the document has: patched.py
says so. `make graphs EXAMPLES=100000 SEED=7` draws as many as wanted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from baton.core.decide import carrying
from baton.core.decide.program import Program
from baton.errors import InvalidDefinition
from tests.core.graphs import patched
from tests.core.graphs.pair import program_of
from tests.core.graphs.patched import Patched
from tests.core.graphs.patches import other_documents
from tests.core.graphs.shapes import Maker
from tests.core.graphs.test_random_graphs import SCALE, SEED, graphs
from tests.kit.bugs import replaced
from tests.kit.found_at import first

COUNTS = {3: 8, 4: 10, 5: 10, 6: 8, 7: 6, 8: 5, 9: 3}
"""Nodes: graphs. Each of them is a dozen changes, of which a third are refused."""
SEARCHED = [f"{SEED}patched/{size}/{number}" for number in range(300) for size in (4, 5, 6)]
RULES = (
    "the new graph lacks it",
    "which is of the kind",
    "other loops are around it now",
    "the new graph has no such edge",
    "is at work, and goes on with the",
    "may be running, and the new graph changes its",
    "has gone on before all edges into it have ended",
    "the saga has passed",
    "comes too late to lead to it",
    "which does not run any more",
    "from where it is nothing leads to it",
    "whose place the saga has passed",
)
"""The check, rule by rule."""
BEFORE = (0, 1, 2, 3, 5, 8)
HELD = 0.3

pytestmark = [pytest.mark.timeout(120 * SCALE), pytest.mark.no_cover]


def to_the_end(seed: str, document: Any, program: Program) -> Counter[str]:
    """Give a saga on its way some other graphs, each anew; how many of them it went on with, and how many were refused."""
    draw, found = random.Random(seed), Counter[str]()
    steps, is_held = draw.choice(BEFORE), draw.random() < HELD
    for number, (other, new) in enumerate(other_documents(draw, document)):
        saga = Patched(document, program, seed)
        saga.go()
        saga.carry_on(steps)
        if is_held:
            saga.hold()
        if saga.is_over:
            break
        if saga.problems(new):
            found["refused"] += 1
            continue
        saga.draw = random.Random(f"{seed}/{number}")
        try:
            saga.patch(other, new)
            saga.carry_on()
        except Exception as error:
            error.add_note(f"graph {seed}, changed into {other}")
            raise
        found["carried"] += 1
    return found


@pytest.mark.parametrize("size", COUNTS)
def test_a_saga_that_goes_on_with_another_graph_comes_to_its_end(size: int) -> None:
    found = Counter[str]()
    for seed, document, program in graphs("patched", size, round(COUNTS[size] * SCALE)):
        found += to_the_end(seed, document, program)
    assert found["carried"] > 0 < found["refused"]


def _without(rule: str) -> Callable[..., Any]:
    """The check, without what it says in these words."""
    real = carrying.carry_problems

    def carry_problems(*arguments: Any, **more: Any) -> Any:
        return [one for one in real(*arguments, **more) if rule not in one.message]

    return carry_problems


def _breaks(seed: str) -> bool:
    document = Maker(seed, int(seed.split("/")[1])).document()
    try:
        to_the_end(seed, document, program_of(document))
    except InvalidDefinition:
        return False
    except Exception:  # noqa: BLE001  whatever it is, it is what is looked for
        return True
    return False


def found_without(rule: str) -> int:
    """The number of the graph that shows it."""
    with replaced(patched, "carry_problems", _without(rule)):
        return first(f"carried although: {rule}", SEARCHED, _breaks)


@pytest.mark.parametrize("rule", RULES)
def test_a_check_without_one_of_its_rules_is_found(rule: str) -> None:
    assert found_without(rule) >= 0
