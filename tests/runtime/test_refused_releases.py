"""A store that refuses what its indexes show and appends all the same: nothing of that is a death."""

from __future__ import annotations

import asyncio

import pytest

from baton.core.log.events import GaveUp, Parked, Revived
from tests.kit.corpus import start
from tests.kit.documents import chain_of
from tests.kit.process import HANGS, INDEX, REFUSES, Outage
from tests.kit.world import World


@pytest.mark.parametrize("end_s", [30, 120, 900])
async def test_a_saga_whose_lease_could_not_be_given_back_is_not_taken_for_dead(end_s: float) -> None:
    world = World.start(outages=(Outage(INDEX, REFUSES, 0.1, end_s),))
    saga = await start(world, chain_of(6, 1.5), {"n": 0}, "chain")
    await world.settle()
    kinds = [type(event) for event in world.events(saga)]
    assert kinds.count(GaveUp) == 1
    assert Revived not in kinds
    assert Parked not in kinds
    ended = world.end(saga)
    assert ended is not None
    assert ended.status == "completed"


async def test_a_saga_that_has_ended_has_nothing_said_behind_its_end() -> None:
    world = World.start(outages=(Outage(INDEX, REFUSES, 0.1, 60),))
    saga = await start(world, chain_of(1), {"n": 0}, "chain")
    await world.settle()
    assert not {GaveUp, Revived} & {type(event) for event in world.events(saga)}
    head = world.log.heads()[0]
    assert (head.owner, head.status) == ("", "completed")


async def test_a_saga_that_waits_gives_up_too_and_waits_on() -> None:
    world = World.start(outages=(Outage(INDEX, REFUSES, 0.1, 60),))
    document = "name: w\nnodes: {s: {tool: work, with: {n: 0}}, a: {wait: {for: 10m}, after: s}}"
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(300)
    assert GaveUp in {type(event) for event in world.events(saga)}
    await world.settle()
    assert Revived not in {type(event) for event in world.events(saga)}


async def test_an_invocation_that_dies_after_it_was_refused_once_is_a_death_still() -> None:
    """The word holds for the lease under which it was said, and for no later one."""
    world = World.start(outages=(Outage(INDEX, REFUSES, 0.1, 30),))
    work = "{tool: work, with: {n: 0, seconds: 3}}"
    document = f"name: w\nnodes: {{a: {work}, b: {work[:-1]}, after: a}}, k: {{tool: kill, after: b}}}}"
    saga = await start(world, document, {}, "w")
    await world.settle()
    kinds = [type(event) for event in world.events(saga)]
    assert kinds.count(GaveUp) == 1
    assert kinds.index(GaveUp) < kinds.index(Revived)
    assert kinds.count(Revived) == world.limits.max_deaths


async def test_an_invocation_that_could_not_load_the_saga_either_has_not_died() -> None:
    world = World.start(outages=(Outage("s3", HANGS, 0.024, 60), Outage(INDEX, REFUSES, 2, 60)))
    saga = await start(world, chain_of(1), {"n": 0}, "chain")
    await world.settle()
    kinds = [type(event) for event in world.events(saga)]
    assert kinds.count(GaveUp) == 1
    assert Revived not in kinds


async def test_one_that_has_not_told_of_the_death_before_it_does_not_say_that_it_gives_up() -> None:
    """Else the death would be taken for told, and what the dead one has begun for not begun."""
    world = World.start(outages=(Outage("s3", HANGS, 5, 60), Outage(INDEX, REFUSES, 12, 60)))
    saga = await start(world, "name: w\nnodes: {a: {tool: kill}}", {}, "w")
    await asyncio.sleep(40)
    assert GaveUp not in {type(event) for event in world.events(saga)}
    await asyncio.sleep(80)
    revived = [event for event in world.events(saga) if isinstance(event, Revived)]
    assert revived
