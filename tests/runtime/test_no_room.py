"""A process that has no thread left for a plain function: its step waits, and pays for that with nothing."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from baton.core.log.events import StepInterrupted, StepSucceeded
from baton.ports import NoRoom, Performer, SagaRef, StepContext
from baton.runtime.engine.parts import Engine
from baton.tools.perform import Places, tenant_and_saga
from tests.kit.corpus import start
from tests.kit.documents import chain_of
from tests.kit.process import Process
from tests.kit.world import World


class Crowded:
    """A performer with so many places for `work`, and any number for other tools. Virtual time has no threads."""

    def __init__(self, inner: Performer, crowd: Crowd) -> None:
        self._inner, self._crowd = inner, crowd

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any:
        if tool != "work":
            return await self._inner.perform(tool, arguments, context)
        self._crowd.asked += 1
        if not self._crowd.of.take(tenant_and_saga(context), asyncio.get_running_loop().time()):
            raise NoRoom("full")
        self._crowd.most = max(self._crowd.most, self._crowd.of.taken)
        try:
            return await self._inner.perform(tool, arguments, context)
        finally:
            self._crowd.of.give_back(tenant_and_saga(context))


class Crowd:
    """The places of a world's processes, all together."""

    def __init__(self, world: World, places: int) -> None:
        self.of = Places(places)
        self.most = self.asked = 0
        real = world.engine

        def engine(process: Process) -> Engine:
            made = real(process)
            return replace(made, performer=Crowded(made.performer, self))

        any_world: Any = world
        any_world.engine = engine


def wide(width: int, seconds: float, timeout: str = "30s") -> str:
    nodes = "".join(
        f"  n{i}: {{tool: work, timeout: {timeout}, with: {{n: {i}, seconds: {seconds}}}}}\n"
        for i in range(width)
    )
    return f"name: wide\nnodes:\n{nodes}"


def interruptions(world: World, saga: str) -> int:
    return sum(isinstance(event, StepInterrupted) for event in world.events(saga))


async def test_steps_without_a_place_wait_for_one_and_their_time_begins_when_they_do() -> None:
    world = World.start(timeout_s=30)
    crowd = Crowd(world, 4)
    saga = await start(world, wide(30, 0.4, timeout="500ms"), {}, "wide")
    started = asyncio.get_running_loop().time()
    while world.end(saga) is None:
        await asyncio.sleep(0.05)
    assert (await world.queries().show(saga))["status"] == "completed"
    assert crowd.most == 4
    lasts = [
        event.ended_at - event.started_at for event in world.events(saga) if isinstance(event, StepSucceeded)
    ]
    assert len(lasts) == 30
    assert max(lasts) < 500
    assert asyncio.get_running_loop().time() - started < 6, "eight rounds of 0.4 s, and little more"
    assert (interruptions(world, saga), len(world.invocations)) == (0, 1)


async def test_a_saga_that_finds_no_place_at_all_is_handed_on_without_haste_and_not_parked() -> None:
    world = World.start()
    crowd = Crowd(world, 0)
    saga = await start(world, wide(5, 0.4), {}, "wide")
    await asyncio.sleep(120)
    view = await world.queries().show(saga)
    assert (view["status"], view["revivals"], interruptions(world, saga)) == ("running", 0, 0)
    assert len(world.invocations) < 40
    assert crowd.asked < 5 * 10 * len(world.invocations)
    crowd.of = Places(5)
    await asyncio.sleep(5)
    assert (await world.queries().show(saga))["status"] == "completed"


async def test_other_steps_go_on_while_one_waits_for_a_place() -> None:
    world = World.start()
    crowd = Crowd(world, 0)
    chain = "".join(
        f"  f{i}: {{tool: fill, {f'after: f{i - 1}, ' if i else ''}with: {{size: {i}}}}}\n" for i in range(4)
    )
    saga = await start(world, f"name: w\nnodes:\n{chain}  a: {{tool: work, with: {{n: 1}}}}\n", {}, "w")
    await asyncio.sleep(3)
    done = [event.node for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert done == ["f0", "f1", "f2", "f3"]
    crowd.of = Places(1)
    await asyncio.sleep(4)
    assert (await world.queries().show(saga))["status"] == "completed"


async def test_a_step_that_waits_for_a_place_does_not_begin_once_its_saga_is_cancelled() -> None:
    world = World.start(timeout_s=60)
    books = world.books
    crowd = Crowd(world, 0)
    saga = await start(world, wide(3, 0.4), {}, "wide")
    await asyncio.sleep(1)
    await world.service().cancel(saga, "enough", 60_000)
    crowd.of = Places(3)
    await asyncio.sleep(12)
    assert (await world.queries().show(saga))["status"] == "cancelled"
    assert (crowd.most, books.asked) == (0, [])


async def test_a_long_step_that_got_its_place_late_is_not_held_for_one_that_needs_more_than_a_budget() -> (
    None
):
    world = World.start()
    Crowd(world, 1)
    saga = await start(world, wide(6, 3.5), {}, "wide")
    await world.settle()
    view = await world.queries().show(saga)
    assert view["status"] == "completed"
    entries = [entry for entry in world.entries(saga) if entry.epoch]
    gaps = [b.at - a.at for a, b in itertools.pairwise(entries)]
    assert max(gaps) < 15_000


@pytest.mark.parametrize("tenant", ["acme", "globex"])
async def test_a_saga_with_many_steps_does_not_keep_a_neighbour_of_its_batch_from_a_place(
    tenant: str,
) -> None:
    """Whether that one is its own tenant's or another's."""
    world = World.start(timeout_s=60, batch=10)
    Crowd(world, 4)
    await world.service().register(wide(200, 0.5), json_only=False)
    neighbour = world.service(tenant=tenant)
    await neighbour.register(chain_of(5, 0.5), json_only=False)
    (crowding, _), (view, _) = await asyncio.gather(
        world.service().start("wide", {}, ""), neighbour.start("chain", {"n": 0}, "")
    )
    began, ref = asyncio.get_running_loop().time(), SagaRef(tenant, view["id"])
    while (head := world.log.read_head(ref)) is not None and head.group != "done":
        await asyncio.sleep(0.05)
    assert len(world.invocations) == 1, "they share it"
    assert world.end(crowding["id"]) is None, "it has 25 s to go"
    assert asyncio.get_running_loop().time() - began < 5 * (0.5 + 2), (
        "no step waits for longer than it pauses"
    )
