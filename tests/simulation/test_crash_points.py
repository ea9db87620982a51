"""A crash, a lost answer, a throttle or a stall at every single write of every shape of saga: same end, nothing lost."""

from __future__ import annotations

from functools import lru_cache

import pytest

from baton.core.events import KINDS
from tests.kit.corpus import CORPUS, Scenario
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, FREEZE, NO_ANSWER, STALL, THROTTLE, WRITES, Plan
from tests.kit.verdict import Verdict, run

pytestmark = pytest.mark.simulation


@lru_cache
def undisturbed(scenario: Scenario) -> Verdict:
    return run(scenario, Plan())


def test_the_corpus_has_every_kind_of_event_and_every_write() -> None:
    verdicts = [undisturbed(scenario) for scenario in CORPUS]
    assert set().union(*(verdict.kinds for verdict in verdicts)) == KINDS
    # A nudge needs a race (test_races.py), an invocation of its own a batch (runtime/test_killers.py).
    assert {write for verdict in verdicts for write in verdict.writes} >= WRITES - {"nudge", "invoke"}


@pytest.mark.parametrize("scenario", CORPUS, ids=lambda scenario: scenario.name)
def test_an_undisturbed_saga_ends_as_it_should(scenario: Scenario) -> None:
    verdict = undisturbed(scenario)
    assert verdict.status == scenario.expected
    assert verdict.broken == ()


@pytest.mark.parametrize("fate", [CRASH_BEFORE, CRASH_AFTER, NO_ANSWER, THROTTLE, STALL, FREEZE])
@pytest.mark.parametrize("scenario", CORPUS, ids=lambda scenario: scenario.name)
def test_whatever_happens_at_any_one_write_the_end_is_the_same(scenario: Scenario, fate: str) -> None:
    expected = undisturbed(scenario)
    for number, write in enumerate(expected.writes, 1):
        verdict = run(scenario, Plan({number: fate}))
        assert verdict.result == expected.result, f"{fate} at write {number}, {write}"
        assert verdict.broken == (), f"{fate} at write {number}, {write}"
