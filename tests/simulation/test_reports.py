"""Children report to an inbox: no report is lost, none waits for the sweep, and none is taken for another."""

from __future__ import annotations

import os

import pytest

from tests.kit.planted import REPORTS
from tests.kit.reports import ACTS, report_race, storm

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak` has all moments, and more storms
SEEDS = range(12 if IS_ALL else 3)


def test_a_child_that_ends_at_any_moment_of_its_parents_lease_is_heard_within_a_second() -> None:
    assert {
        moment: took for moment in REPORTS[:: 1 if IS_ALL else 2] if (took := report_race(moment)) > 1
    } == {}


def test_a_parent_that_is_busy_hears_of_its_child_when_it_looks_for_news() -> None:
    assert 1 < report_race(20) <= 5.1


@pytest.mark.parametrize("act", ACTS)
def test_a_parent_comes_to_its_end_whatever_the_stream_makes_of_its_records(act: str) -> None:
    for seed in SEEDS:
        found = storm(seed, act)
        assert found.broken == (), f"seed {seed}"
        ends = {"completed", "cancelled"} if act.endswith("cancel") else {"completed"}
        assert found.status in ends, f"seed {seed}"
