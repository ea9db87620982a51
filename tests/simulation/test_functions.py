"""Functions that were drawn come to the same, and do the same, as by plain asyncio: whatever happens to their workers."""

from __future__ import annotations

import os
from functools import partial

import pytest

from tests.kit.corpus import Scenario, patiently, start
from tests.kit.drawn_functions import done_in, draw, drawn, plainly
from tests.kit.faults import EVERYTHING, Chaos, Plan
from tests.kit.verdict import run
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

pytestmark = pytest.mark.simulation
SEEDS = range(int(os.environ.get("BATON_SCHEDULES", "24")))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_function_does_what_plain_asyncio_does(seed: int) -> None:
    program = draw(seed)
    status, result, done = run_virtual(plainly(program))
    for budget in (0, 2, 12):
        worlds: list[World] = []

        def furnish(world: World, seen: list[World] = worlds) -> None:
            seen.append(world)
            world.seed, world.timeout_s = seed, (6, 3, 20)[seed % 3]

        plan = Chaos(seed=seed, budget=budget, kinds=EVERYTHING) if budget else Plan()
        drive = partial(drawn, program=program, start=start, patiently=patiently)
        verdict = run(Scenario("drawn", drive, status), plan, furnish)
        assert verdict.broken == (), (budget, program)
        assert (verdict.status, verdict.output) == (status, result), (budget, program)
        assert done_in(worlds[0]) == done, (budget, program)
