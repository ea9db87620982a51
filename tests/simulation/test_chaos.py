"""Many faults at once, drawn from seeds: crashes, lost answers, stalls, throttles, and messages lost, twice or late."""

from __future__ import annotations

import pytest

from tests.kit.corpus import CORPUS, Scenario
from tests.kit.faults import Chaos, Plan
from tests.kit.verdict import run
from tests.kit.world import World

pytestmark = pytest.mark.simulation

SEEDS = 60


@pytest.mark.parametrize("scenario", CORPUS, ids=lambda scenario: scenario.name)
def test_a_dozen_random_faults_change_nothing_but_the_time(scenario: Scenario) -> None:
    expected = run(scenario, Plan())
    happened = 0
    for seed in range(SEEDS):
        verdict = run(scenario, Chaos(seed=seed))
        happened += len(verdict.faults)
        assert verdict.result == expected.result, f"seed {seed}: {verdict.faults}"
        assert verdict.broken == (), f"seed {seed}: {verdict.faults}"
    assert happened > SEEDS, "the chaos was too quiet to prove anything"


@pytest.mark.parametrize("scenario", CORPUS, ids=lambda scenario: scenario.name)
def test_nor_does_a_deployment_that_always_starts_so_late_that_wakes_come_back_before_leases_end(
    scenario: Scenario,
) -> None:
    def late(world: World) -> None:
        world.start_late_s = 4

    expected = run(scenario, Plan())
    for seed in range(5):
        verdict = run(scenario, Chaos(seed=seed), late)
        assert verdict.result == expected.result, f"seed {seed}: {verdict.faults}"
        assert verdict.broken == (), f"seed {seed}: {verdict.faults}"


def test_the_same_seed_gives_the_same_run() -> None:
    first, second = (run(CORPUS[0], Chaos(seed=7)) for _ in range(2))
    assert first == second
    assert first.faults
