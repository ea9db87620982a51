"""Damaged sagas: whatever dies while they are repaired, each goes on, and nothing is done twice."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tests.kit import recovery_runs
from tests.kit.faults import CRASH_AFTER
from tests.kit.recovery_bugs import RECOVERY_BUGS
from tests.kit.recovery_runs import DAMAGE, FATES, Treated, treated

pytestmark = pytest.mark.simulation


IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak`


@cache
def undisturbed(damage: str) -> Treated:
    return treated(damage)


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_doctor_repairs_it_and_a_second_one_has_nothing_to_do(damage: str) -> None:
    assert undisturbed(damage).broken == []


@pytest.mark.parametrize("damage", DAMAGE)
def test_doctors_at_the_same_time_are_as_one(damage: str) -> None:
    assert treated(damage, doctors=4).broken == []


@pytest.mark.parametrize("fate", FATES)
@pytest.mark.parametrize("damage", DAMAGE)
def test_a_repair_that_dies_at_any_of_its_writes_is_finished_by_the_next(damage: str, fate: str) -> None:
    writes = undisturbed(damage).writes
    assert writes
    first, step = (1, 1) if IS_ALL else (1 + FATES.index(fate) % 2, 2)
    found = {at: treated(damage, fate, at).broken for at in range(first, len(writes) + 1, step)}
    assert not any(found.values()), found


@pytest.mark.parametrize("damage", ["a damaged entry", "a damaged entry in no index", "no graph"])
def test_workers_finish_a_repair_that_has_made_the_saga_due(damage: str) -> None:
    writes = undisturbed(damage).writes
    first = writes.index("arm") + 1
    for at in range(first, len(writes) + 1):
        assert treated(damage, CRASH_AFTER, at, by_itself=True).broken == []


@pytest.mark.parametrize("seed", [pytest.param(0, marks=pytest.mark.soak), 1])
def test_nothing_that_workers_and_callers_do_is_a_finding(seed: int) -> None:
    assert recovery_runs.busy(seed) == []


@pytest.mark.parametrize("run", ["forked", "cancelled", "ended", "newer", "held"])
def test_a_recovery_keeps_what_callers_and_releases_have_decided(run: str) -> None:
    promise: Callable[[], list[str]] = getattr(recovery_runs, run)
    assert promise() == []


@pytest.mark.parametrize("bug", RECOVERY_BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(bug: Callable[[], Any]) -> None:
    assert recovery_runs.found_by(bug) >= 0, bug.__doc__
