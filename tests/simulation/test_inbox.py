"""A person with few places, under faults: never told of more open questions than that, told of each in turn, and no row is left."""

from __future__ import annotations

import asyncio

import pytest

from baton.core.limits import Limits
from baton.core.log.answers import Answer
from baton.errors import EngineFault, NotAllowedNow, NotFound
from tests.kit import oracles
from tests.kit.corpus import patiently
from tests.kit.faults import EVERYTHING, Chaos, Crash
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual import run_virtual
from tests.kit.world import World

pytestmark = pytest.mark.simulation

DOCUMENT = "name: w\nnodes: {ask: {human: {title: t, expires: 48h}}}"
SAGAS, PLACES = 9, 2


@pytest.mark.parametrize("seed", range(16))
def test_each_of_many_questions_has_its_turn_and_never_more_than_there_are_places(seed: int) -> None:
    async def main() -> tuple[int, int, list[str]]:
        books = Books()
        world = World(
            make_registry(books),
            books=books,
            plan=Chaos(seed=seed, rate=0.1, budget=25, kinds=EVERYTHING),
            seed=seed,
            limits=Limits(pending_per_person=PLACES),
        )
        world.switch_on()
        await patiently(world, lambda service: service.register(DOCUMENT, json_only=False))
        for n in range(SAGAS):
            await patiently(world, lambda service, n=n: service.start("w", n, f"key-{n}"))  # type: ignore[misc]  # bound now
        answered, most = set[str](), 0
        end = asyncio.get_running_loop().time() + 40 * 3_600
        while len(answered) < SAGAS and asyncio.get_running_loop().time() < end:
            await asyncio.sleep(20)
            told = {telling.saga for telling in world.notices.told}
            most = max(most, len(told - answered))
            for saga in sorted(told - answered)[:1]:
                try:
                    await world.service().answer(saga, Answer(ask="0.ask", action="approve"), "k")
                except (EngineFault, Crash, NotAllowedNow, NotFound):
                    continue
                answered.add(saga)
        await world.settle()
        return most, len(answered), list(oracles.of_world(world))

    assert run_virtual(main()) == (PLACES, SAGAS, [])
