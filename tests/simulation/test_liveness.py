"""With stream and queue switched off entirely, the reconciler alone finishes every saga."""

from __future__ import annotations

import pytest

from tests.kit.corpus import CORPUS, Scenario
from tests.kit.faults import Chaos, Plan
from tests.kit.verdict import run
from tests.kit.world import World

pytestmark = pytest.mark.simulation


def nothing_but_the_reconciler(world: World) -> None:
    world.stream_on = world.queue_on = False


@pytest.mark.parametrize("scenario", CORPUS, ids=lambda scenario: scenario.name)
def test_the_reconciler_alone_finishes_every_saga(scenario: Scenario) -> None:
    expected = run(scenario, Plan())
    verdict = run(scenario, Plan(), nothing_but_the_reconciler)
    assert verdict.result == expected.result
    assert verdict.broken == ()


@pytest.mark.parametrize("scenario", CORPUS, ids=lambda scenario: scenario.name)
def test_the_reconciler_alone_finishes_every_saga_through_faults_too(scenario: Scenario) -> None:
    expected = run(scenario, Plan())
    for seed in range(15):
        verdict = run(scenario, Chaos(seed=seed), nothing_but_the_reconciler)
        assert verdict.result == expected.result, f"seed {seed}: {verdict.faults}"
        assert verdict.broken == (), f"seed {seed}: {verdict.faults}"
