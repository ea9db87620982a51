"""Events from outside that come twice at once and again, with everything that can go wrong at a write of a caller or a worker.

`make soak` lets every fate meet every write (`BATON_CRASH_POINTS=all`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache

import pytest

from tests.kit.event_bugs import EVENT_BUGS
from tests.kit.event_runs import WRITES, endure
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, HANG, LATE, NO_ANSWER, THROTTLE, Chaos, Plan
from tests.kit.found_at import first

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(240)]

FATES = (CRASH_BEFORE, CRASH_AFTER, NO_ANSWER, LATE, HANG, THROTTLE)
ALL = bool(os.environ.get("BATON_CRASH_POINTS"))


@cache
def _writes(*names: str) -> list[int]:
    plain = endure()
    assert plain.broken == []
    return [number for number, name in enumerate(plain.plan.writes, 1) if name in (names or WRITES)]


@pytest.mark.parametrize("fate", FATES)
def test_whatever_becomes_of_each_write(fate: str) -> None:
    writes = _writes()
    for number in writes if ALL else writes[FATES.index(fate) * 8 :: len(FATES) * 8]:
        ordeal = endure(Plan({number: fate}))
        assert ordeal.broken == [], f"{fate} at write {number}, {ordeal.plan.writes[number - 1]}"


@pytest.mark.parametrize("seed", range(40 if ALL else 2))
def test_a_dozen_faults_at_once(seed: int) -> None:
    ordeal = endure(Chaos(seed=seed, rate=0.05, budget=12, kinds=FATES), seed=seed)
    assert ordeal.broken == [], ordeal.plan.at


Bug = Callable[[], AbstractContextManager[None]]


def found_by(bug: Bug) -> int:
    """The number of the run that shows a planted bug; -1 if none does."""
    late = [Plan({number: LATE}) for number in _writes("unsubscribe")]
    plans = [Plan(), *late, *(Plan({number: CRASH_AFTER}) for number in _writes())]
    with bug():
        return first(bug.__name__, plans, lambda plan: EVENT_BUGS[bug] in endure(plan).oracles)


@pytest.mark.parametrize("bug", EVENT_BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    assert found_by(bug) >= 0, bug.__doc__
