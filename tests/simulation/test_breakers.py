"""A target that is down for a while, many sagas that call it, and everything that can go wrong with its circuit breaker.

`make soak` lets every fate at every write meet more sagas and a longer outage (`BATON_CRASH_POINTS=all`).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache

import pytest

from baton.core.failures.breakers import CLOSED, HALF_OPEN, OPEN
from tests.kit.breaker_bugs import BREAKER_BUGS
from tests.kit.breaker_runs import CALLS, PROBES, STATE, OfBreakers, endure
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, FREEZE, HANG, LATE, NO_ANSWER, STALL, THROTTLE, Plan
from tests.kit.found_at import first

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(240)]

FATES = (CRASH_BEFORE, CRASH_AFTER, NO_ANSWER, LATE, STALL, FREEZE, HANG, THROTTLE)
# The shorter outage has a probe that fails and one that closes the breaker.
IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
SAGAS, DOWN_S = (12, 300) if IS_ALL else (8, 100)


def test_few_calls_reach_a_target_that_is_down_and_every_saga_completes_after_it() -> None:
    ordeal = endure(sagas=60)
    assert ordeal.broken == []
    assert ordeal.breaker is not None
    assert (ordeal.breaker.moves[0].to, ordeal.breaker.state) == (OPEN, CLOSED)


@cache
def _writes() -> list[int]:
    plain = endure(SAGAS, DOWN_S)
    assert plain.broken == []
    assert plain.breaker is not None
    assert [move.to for move in plain.breaker.moves].count(HALF_OPEN) >= 2
    return [number for number, name in enumerate(plain.plan.writes, 1) if name == "write_breaker"]


@pytest.mark.parametrize("fate", FATES)
def test_whatever_becomes_of_each_write_of_the_breaker(fate: str) -> None:
    # A store that hangs holds nothing up: for five seconds calls go through.
    excused = {PROBES} if fate in (HANG, LATE) else ()
    turn = FATES.index(fate)  # each write meets one fate
    for number in _writes() if IS_ALL else _writes()[turn :: len(FATES)]:
        ordeal = endure(SAGAS, DOWN_S, plan=Plan({number: fate}), excused=excused)
        assert ordeal.broken == [], f"{fate} at write {number}: {ordeal.plan.at}"


@pytest.mark.parametrize("fate", [HANG, THROTTLE])
def test_a_store_without_an_answer_holds_no_call_up(fate: str) -> None:
    """Then there is no breaker: steps fail as they would without one, and a saga begun when the target is up is quick."""
    ordeal = endure(sagas=6, down_s=0, plan=OfBreakers(fate=fate))
    assert ordeal.broken == []
    assert "write_breaker" not in ordeal.plan.writes
    ordeal = endure(sagas=6, down_s=2, plan=OfBreakers(fate=fate), excused={CALLS, PROBES})
    assert ordeal.broken == []
    assert ordeal.breaker is None


@pytest.mark.parametrize("seed", range(4 if IS_ALL else 2))
def test_clocks_three_seconds_apart(seed: int) -> None:
    ordeal = endure(sagas=20, seed=seed, skew_ms=3_000)
    assert ordeal.broken == []


def test_processes_that_have_nothing_cached() -> None:
    ordeal = endure(sagas=20, is_warm=False)
    assert ordeal.broken == []


def test_those_that_wait_do_not_come_in_one_second() -> None:
    ordeal = endure(sagas=120, down_s=100)
    assert ordeal.broken == []
    by_second = Counter(int(until) for _, until in ordeal.held)
    assert max(by_second.values()) < len(ordeal.held) / 8
    assert STATE not in ordeal.oracles


Bug = Callable[[], AbstractContextManager[None]]


def found_by(bug: Bug) -> int:
    """The number of the run that shows a planted bug; -1 if none does."""
    plans = [Plan(), *(Plan({number: CRASH_AFTER}) for number in _writes())]
    with bug():
        shows = BREAKER_BUGS[bug]
        return first(bug.__name__, plans, lambda plan: shows in endure(SAGAS, DOWN_S, plan=plan).oracles)


@pytest.mark.parametrize("bug", BREAKER_BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(bug: Bug) -> None:
    assert found_by(bug) >= 0, bug.__doc__
