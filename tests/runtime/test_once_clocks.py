"""Once-only effects where the clocks of two processes differ, by as much as they may (`clock_skew_ms`) in both directions."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import pytest

from baton.core.effects.keys import Key
from baton.core.log.events import AttemptFailed
from baton.core.log.questions import Answer
from tests.kit.process import Process
from tests.kit.world import World
from tests.runtime.restaurant import Killed, Place, killed, raising
from tests.runtime.test_once_in_doubt import INVOICE, ask_of, bank, bills, hangs
from tests.runtime.test_once_in_sagas import begin, view_of

SKEWS = [-3_000, -500, 500, 3_000]


@pytest.mark.parametrize("skew", SKEWS)
async def test_verify_is_not_called_before_the_time_of_an_attempt_is_over_by_every_clock(skew: int) -> None:
    """The claim's holder acts up to the end of its own time, while `verify` of the other still finds nothing."""
    place = Place()
    place.seconds = 30 + place.limits.effect_grace_ms / 1_000 - 0.1
    first = asyncio.create_task(place.invocation().run(key=Key.request()))
    await asyncio.sleep(0.5)
    other = place.invocation(skew).run("s2", key=Key.request(), verify=place.finds, lasts=90_000)
    assert (await other).value == (await first).value
    assert place.booked.total() == 1


@pytest.mark.parametrize("skew", SKEWS)
async def test_a_claim_that_its_holder_has_left_is_looked_at_when_its_time_is_over_by_every_clock(
    skew: int,
) -> None:
    place = Place()
    began = place.clock.now()
    await killed(place.invocation().run(key=Key.request(), lasts=10_000, act=raising(Killed())))
    done = await place.invocation(skew).run("s2", key=Key.request(), verify=place.finds, lasts=60_000)
    assert not done.is_recorded
    waited = place.clock.now() - began
    margin = place.limits.clock_skew_ms - skew
    assert 0 <= waited - 10_000 - place.limits.effect_grace_ms - margin <= 1_200


def set_clocks(world: World, *skews: int) -> None:
    """The clocks of the workers that are born from now on, one after the other, and of all others none."""
    real, ahead = world.process, _then_none(skews)

    def process(role: str, *more: str) -> Process:
        born = real(role, *more)
        born.clock.skew = next(ahead) if role == "worker" else 0
        return born

    world_: Any = world
    world_.process = process


def _then_none(skews: tuple[int, ...]) -> Iterator[int]:
    return chain(skews, repeat(0))


@pytest.mark.parametrize("skew", SKEWS)
async def test_an_answer_covers_no_claim_of_another_saga_however_their_clocks_differ(skew: int) -> None:
    """Both sagas are in doubt about one claim. What is said of it does not hold for the one that the other makes then."""
    world = World.start()
    moved = bank(world, hangs(1, 2), key=INVOICE)
    first = await begin(world, bills("x"))
    await asyncio.sleep(20)
    set_clocks(world, *([skew] * 4))  # of those who meet the claim for the second saga
    second = await begin(world, bills("y"))
    while (await view_of(world, second))["status"] != "suspended":
        await asyncio.sleep(0.01)
    set_clocks(world)
    for saga in (first, second):
        answer = Answer(ask=await ask_of(world, saga), action="retry")
        await world.service().answer(saga, answer, "")
        await asyncio.sleep(20)
    assert moved["bill"] == 2

    assert (await view_of(world, second))["status"] == "suspended", "and is asked about that claim"


async def test_no_view_shows_who_has_claimed_what_is_asked_about() -> None:
    """It names a try within an invocation: of use to the engine, and to no reader."""
    world = World.start()
    bank(world, hangs(1))
    saga = await begin(world, bills())
    await asyncio.sleep(20)
    (effect,) = world.effects.stored.values()
    claims = [event.failure.claim for event in world.events(saga) if isinstance(event, AttemptFailed)]
    assert claims == ["", effect.owner]
    queries = world.queries()
    for shown in (await queries.show(saga), await queries.explain(saga, "a")):
        assert effect.owner not in str(shown)
