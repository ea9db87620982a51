"""Agents side by side under a limit of tokens or dollars: whatever goes wrong, by the books of their provider it is not passed."""

from __future__ import annotations

import os
from itertools import cycle

import pytest

from tests.kit.faults import CRASH_AFTER, EVERYTHING, TWICE, Plan
from tests.kit.schedule import SCENARIOS, Schedule, trial, undisturbed
from tests.kit.shared_limit import LIMITS
from tests.kit.verdict import run

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
EVERY = 1 if IS_ALL else 8


def answers(scenario: str) -> list[int]:
    """The numbers of the reads that are requests to the model."""
    run(SCENARIOS[scenario], plan := Plan())
    return [number for number, read in enumerate(plan.reads, 1) if read == "answer"]


@pytest.mark.parametrize("scenario", LIMITS)
def test_a_saga_ends_at_its_limit_with_the_code_of_it(scenario: str) -> None:
    verdict = undisturbed(SCENARIOS[scenario])
    assert (verdict.status, verdict.broken) == ("failed", ())
    assert len(answers(scenario)) > 10, "three agents have several turns each"


@pytest.mark.parametrize("scenario", LIMITS)
def test_no_limit_is_passed_whatever_happens_at_one_write(scenario: str) -> None:
    fates = cycle(EVERYTHING)
    for number in range(1, len(undisturbed(SCENARIOS[scenario]).writes) + 1, EVERY):
        for fate in EVERYTHING if IS_ALL else (next(fates),):
            found = trial(Schedule(scenario, 0, faults=(("write", number, fate),)))
            assert found.broken == (), f"{fate} at write {number}"


@pytest.mark.parametrize("scenario", LIMITS)
def test_no_limit_is_passed_whatever_happens_to_one_request(scenario: str) -> None:
    fates = cycle(fate for fate in EVERYTHING if fate != "no answer")
    for number in answers(scenario)[:: EVERY // 2 or 1]:
        for fate in EVERYTHING if IS_ALL else (next(fates),):
            found = trial(Schedule(scenario, 0, faults=(("read", number, fate),)))
            assert found.broken == (), f"{fate} at read {number}"


@pytest.mark.parametrize("scenario", LIMITS)
def test_what_every_worker_has_asked_for_when_it_died_counts(scenario: str) -> None:
    first, second, *_ = answers(scenario)[3::4]
    faults = (("read", first, CRASH_AFTER), ("message", 2, TWICE), ("read", second + 9, CRASH_AFTER))
    found = trial(Schedule(scenario, 0, faults=faults))
    assert found.broken == ()
    assert sum("crash after at a model's answer" in fault for fault in found.verdict.faults) >= 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("scenario", LIMITS)
def test_a_dozen_faults_at_once_pass_no_limit(scenario: str, seed: int) -> None:
    schedule = Schedule(scenario, seed, skew_ms=(0, 1_000, 3_000)[seed % 3], is_warm=bool(seed % 2))
    assert trial(schedule).broken == ()
