"""A fault at every single write of every shape of saga: a crash, a lost answer, a hang, a late landing, a freeze: same end, nothing lost."""

from __future__ import annotations

import pytest

from baton.core.log.codec import KINDS
from tests.kit.corpus import CORPUS, Scenario
from tests.kit.faults import EVERYTHING, WRITES
from tests.kit.schedule import Schedule, trial, undisturbed

pytestmark = pytest.mark.simulation


def test_the_corpus_has_every_kind_of_event_and_every_write() -> None:
    verdicts = [undisturbed(scenario) for scenario in CORPUS]
    assert set().union(*(verdict.kinds for verdict in verdicts)) == KINDS
    # An invocation of its own needs a batch (runtime/test_killers.py), what is postponed a head that cannot be read.
    assert {write for verdict in verdicts for write in verdict.writes} >= WRITES - {"invoke", "postpone"}


@pytest.mark.parametrize("scenario", CORPUS, ids=lambda scenario: scenario.name)
def test_an_undisturbed_saga_ends_as_it_should(scenario: Scenario) -> None:
    verdict = undisturbed(scenario)
    assert verdict.status == scenario.expected
    assert verdict.broken == ()


@pytest.mark.parametrize("fate", EVERYTHING)
@pytest.mark.parametrize("scenario", CORPUS, ids=lambda scenario: scenario.name)
def test_whatever_happens_at_any_one_write_the_end_is_the_same(scenario: Scenario, fate: str) -> None:
    for number, write in enumerate(undisturbed(scenario).writes, 1):
        found = trial(Schedule(scenario.name, 0, faults=(("write", number, fate),)))
        assert found.broken == (), f"{fate} at write {number}, {write}"
