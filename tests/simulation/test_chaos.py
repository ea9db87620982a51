"""Schedules drawn from seeds: many faults at once, clocks that differ, outages, warm processes, messages lost, twice or late."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from tests.kit.corpus import Scenario
from tests.kit.long_scenarios import ALL
from tests.kit.schedule import Schedule, trial

pytestmark = pytest.mark.simulation

# Each third scenario meets one that is drawn (all of them in `make soak`), others in turn, and more if faults were few; `make soak` draws as many as wanted.
SEEDS, FEWEST_FAULTS = 16, 2
SOME = [*enumerate(ALL)][:: 1 if os.environ.get("BATON_CRASH_POINTS") else 5]


@pytest.mark.parametrize(("place", "scenario"), SOME, ids=[scenario.name for _, scenario in SOME])
def test_a_dozen_random_faults_change_nothing_but_the_time(place: int, scenario: Scenario) -> None:
    happened = 0
    for turn in range(SEEDS):
        found = trial(replace(Schedule.drawn((place + turn) % SEEDS), scenario=scenario.name))
        happened += len(found.schedule.faults or ())
        assert found.broken == (), found.schedule
        if happened >= FEWEST_FAULTS:
            break
    assert happened >= FEWEST_FAULTS, "the chaos was too quiet to prove anything"


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = (trial(replace(Schedule.drawn(7), scenario="chain", budget=12)) for _ in range(2))
    assert first == second
    assert first.schedule.faults


def test_what_was_drawn_can_be_run_again_fault_by_fault() -> None:
    drawn = trial(replace(Schedule.drawn(7), scenario="chain", budget=12))
    assert trial(drawn.schedule) == drawn
