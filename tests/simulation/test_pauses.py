"""Pauses, resumes, wakes, cancels, answers and retries at drawn moments: a paused saga begins nothing, and none is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit import pause_bugs
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, NO_ANSWER
from tests.kit.pause_runs import BEGINS, RESULT, TWICE, paused

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak`
SEEDS = range(60 if IS_ALL else 4)
BUGS: tuple[tuple[Callable[[], Any], str], ...] = (
    (pause_bugs.a_paused_saga_schedules_on, BEGINS),
    (pause_bugs.time_goes_on_in_a_pause, RESULT),
    (pause_bugs.a_resume_ends_all_pauses, BEGINS),
    (pause_bugs.a_retry_forgets_its_key, TWICE),
    (pause_bugs.a_start_does_not_read_the_pause, BEGINS),
)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_paused_saga_begins_nothing_and_goes_on_where_it_was(seed: int) -> None:
    assert paused(seed)[0] == []


@pytest.mark.parametrize("fate", [CRASH_BEFORE, CRASH_AFTER, NO_ANSWER])
def test_whatever_dies_at_a_write(fate: str) -> None:
    _, plan = paused(0, at={10_000: fate})
    step = 7 if IS_ALL else len(plan.writes) // 2
    found = {
        number: broken
        for number in range(3, len(plan.writes) + 1, step)
        if (broken := paused(0, at={number: fate})[0])
    }
    assert found == {}


@pytest.mark.parametrize(("bug", "oracle"), BUGS, ids=lambda one: getattr(one, "__name__", ""))
def test_a_planted_bug_is_found(bug: Callable[[], Any], oracle: str) -> None:
    with bug():
        found = any(
            text.startswith(f"{oracle}: ") for seed in range(12) for text in paused(seed, at={10_000: ""})[0]
        )
    assert found, bug.__doc__
