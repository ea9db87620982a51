"""Limits of money where no message reaches a saga: its invocation died, stream and queue are silent, only the schedule runs."""

from __future__ import annotations

import asyncio

import pytest

from baton import Context, tool
from baton.core.decide.spending import SAGA_SPENT, USER_SPENT, day_of, end_of
from baton.core.log.events import NoticeDue, NoticesSent, StepSucceeded
from baton.ports import Sums
from tests.kit.faults import Crash
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import World
from tests.runtime.test_money import CENT, parked, start, status, sums, until_the_day_turns

# The first invocation of a saga is asked for by its start, which the stream carries: here the schedule does all of it.
SILENT = {"stream_on": False, "queue_on": False}


def add_tools(world: World) -> list[str]:
    """Tools that cost. Returns the calls of `model`, by node, in order."""
    calls: list[str] = []

    @tool("model", registry=world.registry, cost_usd="0.40")
    async def model(context: Context, usd: str = "0.40", dies: int = 0) -> None:
        calls.append(context.node)
        await asyncio.sleep(1)
        context.spend(usd)
        if calls.count(context.node) <= dies:
            world.running[context.saga, context.node].is_dead = True
            raise Crash

    world.tools = world.registry.specs()
    return calls


def told(world: World, saga: str) -> tuple[list[str], list[str]]:
    """Codes of the notices that are due, and keys of those that were sent."""
    events = world.events(saga)
    due = [event.notice.code for event in events if isinstance(event, NoticeDue)]
    return due, [key for event in events if isinstance(event, NoticesSent) for key in event.keys]


async def test_a_saga_that_spent_its_money_and_died_is_parked_by_the_schedule_and_its_user_is_told() -> None:
    world = World.start(**SILENT)
    calls = add_tools(world)
    steps = ", ".join(f"n{i}: {{tool: model{f', after: n{i - 1}' if i else ''}}}" for i in range(3))
    saga = await start(world, f"name: w\nnodes: {{{steps}, pause: {{wait: {{for: 1m}}, after: n1}}}}")
    await asyncio.sleep(600)
    assert calls == ["n0", "n1"], "a third would pass the limit of a dollar"
    assert [event.code for event in parked(world, saga)] == [SAGA_SPENT]
    due, sent = told(world, saga)
    assert due.count(SAGA_SPENT) == 1
    assert len(sent) == len(due)


async def test_reservations_of_the_dead_are_freed_and_a_day_that_is_spent_parks_who_had_died() -> None:
    world = World.start(**SILENT)
    calls = add_tools(world)
    died = await start(world, "name: d\nnodes: {dead: {tool: model, with: {dies: 1}}}")
    await asyncio.sleep(2)  # so that they are not woken by one message, and die together
    rich = await start(world, "name: r\nnodes: {rich: {tool: model, with: {usd: '5'}}}")
    while sums(world).spent < 500 * CENT:
        await asyncio.sleep(1)
    assert sums(world).reserved == 40 * CENT, "of the dead one, which no worker has found yet"
    await asyncio.sleep(180)
    assert await status(world, rich) == "completed"
    assert sums(world).reserved == 0
    assert [event.code for event in parked(world, died)] == [USER_SPENT]
    assert calls.count("dead") == 1, "its second attempt did not begin"
    assert set(told(world, died)[0]) | set(told(world, rich)[0]) >= {USER_SPENT}
    assert parked(world, died)[0].until == end_of(day_of(VirtualClock().now()))
    await until_the_day_turns()
    assert await status(world, died) == "completed"
    assert sums(world) == Sums(40 * CENT, 40 * CENT, 0)


@pytest.mark.parametrize("hours", [1, 30])
async def test_a_sleeping_saga_of_a_blocked_user_begins_nothing_before_the_day_turns(hours: int) -> None:
    world = World.start(**SILENT)
    calls = add_tools(world)
    asleep = await start(
        world, f"name: s\nnodes: {{z: {{wait: {{for: {hours}h}}}}, a: {{tool: model, after: z}}}}"
    )
    await asyncio.sleep(120)  # it is asleep now
    await start(world, "name: r\nnodes: {b: {tool: model, with: {usd: '5'}}}")
    await asyncio.sleep(hours * 3_600 + 300)
    turned = day_of(VirtualClock().now()) > day_of(world.entries(asleep)[0].at)
    assert calls == (["b", "a"] if turned else ["b"])
    end = end_of(day_of(world.entries(asleep)[0].at))
    # Looks leave it asleep: what wakes after the day has turned was never parked.
    assert [event.until for event in parked(world, asleep)] == ([] if turned else [end])
    await until_the_day_turns()
    assert await status(world, asleep) == "completed"
    assert calls == ["b", "a"]
    (begun,) = (event.started_at for event in world.events(asleep) if isinstance(event, StepSucceeded))
    assert begun >= end
