"""Functions come to the same, and do the same, as plain asyncio and as documents: whatever happens to their workers.

`make test` draws a few, `make soak` many.
"""

from __future__ import annotations

import os
from functools import partial
from typing import Any

import pytest

from baton.core.money import micro_dollars
from tests.kit.assisted_functions import assisted
from tests.kit.corpus import Scenario, patiently, start
from tests.kit.drawn_functions import done_in, draw, drawn, plainly
from tests.kit.faults import EVERYTHING, Chaos, Plan, scripted
from tests.kit.verdict import run
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

pytestmark = pytest.mark.simulation
SEEDS = range(500 if os.environ.get("BATON_CRASH_POINTS") else 12)


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


@pytest.mark.parametrize("fate", ["", "crash before", "crash after", "no answer"])
def test_a_function_with_an_agent_and_models_does_what_its_document_does(fate: str) -> None:
    """The same effects, and the same bill where no worker dies. Both are killed at a few of their writes."""

    def ends(form: str, plan: Plan) -> tuple[str, Any, list[Any], int]:
        worlds: list[World] = []
        drive = partial(assisted, form=form, start=start, patiently=patiently)
        verdict = run(Scenario(form, drive, same_steps=False), plan, worlds.append)
        assert verdict.broken == (), form
        billed = micro_dollars([part for one in worlds[0].asked for part in one.bill])
        return verdict.status, verdict.output, done_in(worlds[0]), billed

    whole = ends("assisted-document", Plan())
    for form in ("assisted", "assisted-document"):
        for number in range(3, 45, 7) if fate else (0,):
            found = ends(form, scripted((("write", number, fate),)) if fate else Plan())
            assert found[:3] == whole[:3], number
            assert fate or found[3] == whole[3]
