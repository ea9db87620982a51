"""Long runs: what they say of a schedule that breaks a promise, and that it can be run again from what they say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.kit import bugs
from tests.kit.faults import TWICE
from tests.kit.oracles import DEEDS, LIVENESS, RESULT
from tests.kit.planted import PLANTED
from tests.kit.schedule import SCENARIOS, Schedule, minimised, trial, undisturbed
from tests.kit.sentences import Says
from tests.kit.soak import main, report, soak

pytestmark = pytest.mark.simulation


def test_a_short_run_counts_its_schedules_and_finds_nothing() -> None:
    count, found = soak(first=5, step=1, seconds=0.001)
    assert (count, found) == (20, "")


@pytest.mark.soak
def test_a_broken_promise_is_made_small_and_told_as_a_story(says: Says) -> None:
    undisturbed(SCENARIOS["chatter"])
    plain = Schedule(
        "chatter", 0, skew_ms=3_000, gap_s=1, killed_late_s=0.9, faults=(("message", 30, TWICE),)
    )
    drawn = [replace(plain, seed=seed) for seed in range(20)]
    with bugs.clocks_are_believed():
        found = next(one for one in map(trial, drawn) if DEEDS in one.oracles)
        smallest = minimised(found)
        again = trial(smallest.schedule)
    assert again.broken == smallest.broken
    assert smallest.schedule.faults == ()
    assert (smallest.schedule.killed_late_s, smallest.schedule.skew_ms) == (0, 3_000)
    text = report(7, found, smallest)
    assert text.startswith("seed 7 breaks ")
    assert f"trial({smallest.schedule})" in text
    says.within(text)
    assert "step_succeeded" in text


@pytest.mark.soak  # every scenario is run once, undisturbed, before the first schedule
def test_a_run_that_finds_something_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for scenario in SCENARIOS.values():
        undisturbed(scenario)
    with PLANTED["a_yield_leaves_the_due_index"].bug():
        assert main(["--seconds", "0.01", "--jobs", "1", "--seed", "3"]) == 1
    assert "broke a promise" in capsys.readouterr().out


@pytest.mark.soak
def test_what_goes_on_for_ever_is_found_and_says_what_went_round(says: Says) -> None:
    schedule = Schedule(
        "asked",
        10_000_008,
        skew_ms=3_000,
        gap_s=20,
        late_s=14,
        stall_s=12,
        start_late_s=4,
        killed_late_s=0.9,
        slow=(("release", 0.04),),
    )
    assert trial(schedule).broken == ()
    with bugs.a_yield_leaves_the_due_index():
        found = trial(schedule)
    assert found.oracles == {LIVENESS, RESULT}
    assert "no end after " in found.broken[0]
    says(found.broken[0])
    assert any("step_succeeded" in line or "saga_started" in line for line in found.verdict.story)
