"""Three reconcilers that race for the ticks of schedules, with clocks three seconds apart, and everything that can go wrong at a write.

`make soak` lets every fate meet every write (`BATON_CRASH_POINTS=all`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache

import pytest

from tests.kit.faults import (
    CRASH_AFTER,
    CRASH_BEFORE,
    FREEZE,
    HANG,
    LATE,
    NO_ANSWER,
    STALL,
    THROTTLE,
    Chaos,
    Plan,
)
from tests.kit.found_at import first
from tests.kit.schedule_bugs import SCHEDULE_BUGS
from tests.kit.schedule_runs import WRITES, endure

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(240)]

FATES = (CRASH_BEFORE, CRASH_AFTER, NO_ANSWER, LATE, STALL, FREEZE, HANG, THROTTLE)
ALL = bool(os.environ.get("BATON_CRASH_POINTS"))


@pytest.mark.parametrize("seed", range(3))
def test_every_tick_is_started_once(seed: int) -> None:
    assert endure(10, seed=seed).broken == []


@cache
def _writes() -> list[int]:
    plain = endure(2)
    assert plain.broken == []
    return [number for number, name in enumerate(plain.plan.writes, 1) if name in WRITES]


@pytest.mark.parametrize("fate", FATES)
def test_whatever_becomes_of_each_write_of_a_tick(fate: str) -> None:
    writes = _writes()
    chosen = writes if ALL else writes[FATES.index(fate) + 2 :: 44]
    for number in chosen:
        ordeal = endure(2, plan=Plan({number: fate}))
        assert ordeal.broken == [], f"{fate} at write {number}, {ordeal.plan.writes[number - 1]}"


@pytest.mark.parametrize("seed", range(40 if ALL else 1))
def test_a_dozen_faults_at_once(seed: int) -> None:
    ordeal = endure(4, plan=Chaos(seed=seed, rate=0.03, budget=12, kinds=FATES), seed=seed)
    assert ordeal.broken == [], ordeal.plan.at


Bug = Callable[[], AbstractContextManager[None]]


def found_by(bug: Bug) -> int:
    """The number of the run that shows a planted bug; -1 if none does."""
    fates = (CRASH_AFTER, STALL, LATE)
    faults = [{}, *({number: fate} for number in _writes() for fate in fates)]

    def shows(run: tuple[int, dict[int, str]]) -> bool:
        seed, at = run
        return SCHEDULE_BUGS[bug] in endure(3, plan=Plan(at), seed=seed).oracles

    with bug():
        return first(bug.__name__, [*enumerate(faults)], shows)


@pytest.mark.parametrize("bug", SCHEDULE_BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    assert found_by(bug) >= 0, bug.__doc__
