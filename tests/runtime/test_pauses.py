"""A person holds a saga back: it begins nothing, its time stands still, and it goes on where it was."""

from __future__ import annotations

import asyncio
from typing import TypeVar

import pytest

from baton import tool
from baton.core.log import events as ev
from baton.core.log.questions import Answer
from baton.errors import NotAllowedNow
from baton.ports import SWEEP, Head, SagaRef
from tests.kit.corpus import start
from tests.kit.world import TENANT, World

T = TypeVar("T")
DAY_S = 86_400
STEPS = """
name: w
nodes:
  a: {tool: work, with: {n: 1, seconds: 2}}
  b: {tool: work, after: a, with: {n: 2}}
output: '${ctx.b.output.n}'
"""
TIMED = "name: w\nnodes: {q: {wait: {signal: go, timeout: 1h}}}"
CHILD = "name: c\nnodes: {a: {wait: {for: 30s}}}"
PARENT = (
    "name: p\nlimits: {wall_time: 1h}\nnodes: {a: {workflow: c}, b: {tool: work, after: a, with: {n: 2}}}"
)


def head_of(world: World, saga: str) -> Head:
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    return head


async def status(world: World, saga: str) -> str:
    return str((await world.queries().show(saga))["status"])


def of(world: World, saga: str, kind: type[T]) -> list[T]:
    return [event for event in world.events(saga) if isinstance(event, kind)]


async def test_what_runs_ends_and_nothing_begins_until_it_is_resumed() -> None:
    world = World.start()
    saga = await start(world, STEPS, {}, "w")
    await asyncio.sleep(1)
    assert (await world.service().pause(saga, "the shop moves"))["changed"]
    await asyncio.sleep(600)
    assert [event.node for event in of(world, saga, ev.StepSucceeded)] == ["a"]
    view = await world.queries().show(saga)
    assert (view["status"], view["reason"]) == ("paused", "paused: the shop moves")
    assert (view["parked"]["code"], view["parked"]["by"]) == ("paused", "ann")
    assert head_of(world, saga).lane == SWEEP
    assert (await world.service().resume(saga))["changed"]
    await world.settle()
    assert await status(world, saga) == "completed"
    assert not of(world, saga, ev.NoticeDue), "no one is told"


async def test_pausing_and_resuming_again_changes_nothing() -> None:
    world = World.start()
    saga = await start(world, TIMED, {}, "w")
    for changed in (True, False):
        assert (await world.service().pause(saga, "so"))["changed"] is changed
    for changed in (True, False):
        assert (await world.service().resume(saga))["changed"] is changed
    await world.service().signal(saga, "go", {}, "k")
    await world.settle()
    with pytest.raises(NotAllowedNow):
        await world.service().pause(saga, "too late")


async def test_no_timeout_fires_for_the_pause() -> None:
    world = World.start()
    saga = await start(world, TIMED, {}, "w")
    await asyncio.sleep(1_800)
    await world.service().pause(saga, "")
    await asyncio.sleep(2 * DAY_S)
    assert await status(world, saga) == "paused"
    await world.service().resume(saga)
    await asyncio.sleep(1_700)
    assert await status(world, saga) == "waiting"
    await asyncio.sleep(200)
    assert len(of(world, saga, ev.WaitClosed)) == 1


async def test_a_signal_is_recorded_and_taken_when_it_goes_on() -> None:
    world = World.start()
    saga = await start(world, TIMED, {}, "w")
    await asyncio.sleep(10)
    await world.service().pause(saga, "")
    await world.service().signal(saga, "go", {}, "k")
    await asyncio.sleep(DAY_S)
    assert await status(world, saga) == "paused"
    await world.service().resume(saga)
    await world.settle()
    assert await status(world, saga) == "completed"


async def test_a_cancel_ends_a_paused_saga() -> None:
    world = World.start()
    saga = await start(world, TIMED, {}, "w")
    await world.service().pause(saga, "")
    await world.service().cancel(saga, "enough", 0)
    await world.settle()
    assert await status(world, saga) == "cancelled"


async def test_a_failure_of_what_runs_waits_for_the_resume() -> None:
    world = World.start()
    undone = []

    @tool("book", undo="unbook", registry=world.registry)
    async def book() -> str:
        return "b"

    @tool("unbook", registry=world.registry)
    async def unbook() -> None:
        undone.append(1)

    @tool("breaks", registry=world.registry)
    async def breaks() -> None:
        await asyncio.sleep(2)
        raise ValueError

    world.tools = world.registry.specs()
    document = "name: w\non_failure: {any: [rollback]}\nnodes: {a: {tool: book}, b: {tool: breaks, after: a}}"
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(1)
    await world.service().pause(saga, "")
    await asyncio.sleep(60)
    assert (await status(world, saga), undone) == ("paused", [])
    await world.service().resume(saga)
    await world.settle()
    assert (await status(world, saga), undone) == ("rolled_back", [1])


async def test_a_saga_that_was_parked_is_parked_again_after_the_pause() -> None:
    world = World.start()
    saga = await start(
        world, "name: w\non_failure: escalate\nnodes: {a: {tool: refuse}, q: {wait: {signal: go}}}", {}, "w"
    )
    await world.settle()
    asked = (await world.queries().show(saga))["questions"][0]["id"]
    await world.service().pause(saga, "wait")
    await asyncio.sleep(DAY_S)
    view = await world.queries().show(saga)
    assert (view["status"], view["parked"]["code"]) == ("paused", "paused")
    await world.service().answer(saga, Answer(ask=asked, action="fail"), "k")
    await asyncio.sleep(600)
    assert await status(world, saga) == "paused", "the answer waits, too"
    assert (await world.service().resume(saga))["changed"]
    await world.settle()
    assert await status(world, saga) == "failed"


async def test_a_defect_of_what_runs_parks_it_behind_the_pause() -> None:
    world = World.start()

    @tool("wrong", registry=world.registry)
    async def wrong() -> None:
        await asyncio.sleep(2)
        raise KeyError("k")

    world.tools = world.registry.specs()
    saga = await start(world, "name: w\nnodes: {a: {tool: wrong}}", {}, "w")
    await asyncio.sleep(1)
    await world.service().pause(saga, "")
    await asyncio.sleep(60)
    assert await status(world, saga) == "paused"
    await world.service().resume(saga)
    await asyncio.sleep(60)
    assert await status(world, saga) == "parked"


async def test_children_go_on_and_the_parents_time_stands_still() -> None:
    world = World.start(timeout_s=60)
    await world.service().register(CHILD, json_only=False)
    saga = await start(world, PARENT, {}, "p")
    await asyncio.sleep(10)
    await world.service().pause(saga, "")
    await asyncio.sleep(DAY_S)
    view = await world.queries().show(saga)
    assert view["status"] == "paused"
    assert {head.status for head in world.log.heads()} == {"paused", "completed"}
    await world.service().resume(saga)
    await world.settle()
    assert await status(world, saga) == "completed"


async def test_a_paused_child_stops_the_time_of_its_parent() -> None:
    world = World.start(timeout_s=60)
    await world.service().register(CHILD, json_only=False)
    saga = await start(world, PARENT, {}, "p")
    await asyncio.sleep(10)
    child = next(head.ref.id for head in world.log.heads() if head.ref.id.startswith(f"{saga}."))
    await world.service().pause(child, "")
    await asyncio.sleep(DAY_S)
    assert await status(world, saga) in {"waiting", "parked"}
    await world.service().resume(child)
    await asyncio.sleep(3 * 3_600)
    assert await status(world, saga) == "completed"


async def test_a_wake_has_a_worker_look_now_whatever_the_due_time_is() -> None:
    world = World.start()
    saga = await start(world, TIMED, {}, "w")
    await asyncio.sleep(600)
    epoch = head_of(world, saga).epoch
    for more in (1, 2):
        assert (await world.service().wake(saga))["changed"]
        await asyncio.sleep(10)
        assert head_of(world, saga).epoch == epoch + more
    assert await status(world, saga) == "waiting"
    await world.service().signal(saga, "go", {}, "k")
    await world.settle()
    with pytest.raises(NotAllowedNow):
        await world.service().wake(saga)
