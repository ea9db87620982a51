"""Deploys under sagas that are parked for a defect: each is tried once with each code, in time, whatever dies meanwhile."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from baton.runtime.reconcile import MENDED_A_MINUTE
from tests.kit import mending_bugs
from tests.kit.deploy_runs import MENDED, ONCE, TOLD, many, mending
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, NO_ANSWER, Plan

pytestmark = pytest.mark.simulation

SEEDS = range(6)
IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak`
CROWD = 10_000 if IS_ALL else 5_000
BUGS: tuple[tuple[Callable[[], Any], str], ...] = (
    (mending_bugs.a_worker_of_any_code_takes_the_message, MENDED),
    (mending_bugs.what_is_parked_during_a_deploy_is_left, MENDED),
    (mending_bugs.a_step_is_tried_with_any_other_code, ONCE),
    (mending_bugs.each_failure_opens_an_incident, TOLD),
)


@cache
def undisturbed(seed: int) -> tuple[list[str], Plan]:
    return mending(seed)


@pytest.mark.parametrize("seed", SEEDS)
def test_each_saga_is_tried_once_with_each_code_and_goes_on_with_the_one_that_mends(seed: int) -> None:
    assert undisturbed(seed)[0] == []


@pytest.mark.parametrize("fate", [CRASH_BEFORE, CRASH_AFTER, NO_ANSWER])
def test_whatever_dies_at_a_write(fate: str) -> None:
    _, plan = undisturbed(0)
    found = {
        number: broken
        for number in range(1, len(plan.writes) + 1, 5 if IS_ALL else 180)
        if (broken := mending(0, at={number: fate})[0])
    }
    assert found == {}


def test_whatever_message_is_lost() -> None:
    _, plan = undisturbed(0)
    for number in range(1, plan.messages + 1, 3 if IS_ALL else 60):
        assert mending(0, at_messages={number: "lost"})[0] == []


def test_thousands_of_sagas_and_a_deploy_that_mends_nothing() -> None:
    crowd = many(CROWD, minutes=60)
    assert len(crowd.tried) == CROWD
    twice = [ref for ref, times in crowd.taken.items() if times > 1]
    assert max(crowd.taken.values()) <= 2, (
        "once more, because a worker of the code before may have been the one"
    )
    assert len(twice) <= 16 * MENDED_A_MINUTE
    assert max(crowd.minutes) <= MENDED_A_MINUTE
    assert len(crowd.minutes) <= (CROWD + len(twice)) // MENDED_A_MINUTE + 5


@pytest.mark.parametrize(("bug", "oracle"), BUGS, ids=lambda one: getattr(one, "__name__", ""))
def test_a_planted_bug_is_found(bug: Callable[[], Any], oracle: str) -> None:
    with bug():
        found = any(text.startswith(f"{oracle}: ") for seed in SEEDS for text in mending(seed)[0])
    assert found, bug.__doc__
