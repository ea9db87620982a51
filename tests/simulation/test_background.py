"""An agent whose model is asked in the background, whatever fails: same answer, same effects, nothing lost, nothing paid for twice."""

from __future__ import annotations

import os
from functools import cache

import pytest

from tests.kit.corpus import CORPUS
from tests.kit.faults import (
    CRASH_AFTER,
    CRASH_BEFORE,
    DELAYED,
    FREEZE,
    HANG,
    LOST,
    STALL,
    THROTTLE,
    TWICE,
    Plan,
)
from tests.kit.schedule import Schedule, trial
from tests.kit.verdict import run

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak` draws twice as many seeds and places


@cache
def calls() -> dict[int, str]:
    """The numbers of the reads that are calls of the provider, and which they are."""
    plan = Plan()
    run(next(one for one in CORPUS if one.name == "ponders"), plan)
    return {number: read for number, read in enumerate(plan.reads, 1) if read in ("submit", "collect")}


def test_five_requests_are_handed_over_and_looked_at_no_more_often_than_they_must() -> None:
    found = list(calls().values())
    assert found.count("submit") == 5
    assert found.count("collect") <= 15


@pytest.mark.parametrize("fate", [CRASH_BEFORE, CRASH_AFTER, THROTTLE, HANG, STALL, FREEZE])
def test_a_provider_that_fails_or_dies_with_its_worker_changes_nothing(fate: str) -> None:
    for number in list(calls())[: 6 if IS_ALL else 2]:  # a request, and a look at it
        found = trial(Schedule("ponders", 0, faults=(("read", number, fate),)))
        assert found.broken == (), f"{fate} at read {number}: {calls()[number]}"


@pytest.mark.parametrize("fate", [LOST, TWICE, DELAYED])
def test_messages_that_are_lost_late_or_doubled_change_nothing(fate: str) -> None:
    for number in range(1, 7, 1 if IS_ALL else 3):
        assert trial(Schedule("ponders", 0, faults=(("message", number, fate),))).broken == ()


@pytest.mark.parametrize("seed", range(6 if IS_ALL else 1))
def test_a_dozen_faults_at_once_and_clocks_that_differ_change_nothing(seed: int) -> None:
    schedule = Schedule("ponders", seed, skew_ms=(0, 1_000, 3_000)[seed % 3], is_warm=bool(seed % 2))
    found = trial(schedule)
    assert found.broken == (), found.schedule
