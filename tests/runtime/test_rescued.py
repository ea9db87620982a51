"""After a fault, what cannot be decided takes nothing else along: the log has what was spent, and what finished."""

from __future__ import annotations

import asyncio
from typing import Any

from baton import Context, tool
from baton.core.log.events import StepFailed, StepInterrupted, StepSucceeded
from baton.errors import CorruptLog, EngineFault
from baton.ports import Appended, Message, SagaRef
from tests.kit.corpus import start
from tests.kit.world import TENANT, World
from tests.runtime.test_hanging_stores import ALONE, FOREVER, add_tools, end
from tests.runtime.test_money import sums
from tests.runtime.test_refused_rows import refuse


def wake(saga: str) -> Message:
    return Message(str(SagaRef(TENANT, saga)), 1)


def done(world: World, saga: str) -> list[str]:
    return sorted(event.node for event in world.events(saga) if isinstance(event, StepSucceeded))


def cuts(world: World, saga: str) -> list[tuple[str, int, str]]:
    return [
        (event.node, event.cost, event.why)
        for event in world.events(saga)
        if isinstance(event, StepInterrupted)
    ]


async def is_even(world: World, saga: str) -> bool:
    """Whether the log has what the accounts have."""
    spent = (await world.queries().show(saga))["spent_usd"]
    return bool(spent) and sums(world).spent == round(spent * 1_000_000)


async def test_an_outcome_that_lacks_a_blob_takes_no_other_along() -> None:
    document = """
        name: w
        nodes:
          big: {tool: large, branch: {rules: [{if: 'output.text != ""', then: next}]}}
          next: {value: 1}
          quick: {tool: takes, with: {seconds: 1, usd: '0.2'}}
    """
    world = World.start(**ALONE)
    began = add_tools(world)

    @tool("large", registry=world.registry)
    async def large(context: Context) -> dict[str, Any]:
        await asyncio.sleep(1)
        context.spend("0.1")
        return {"text": "x" * 20_000}

    world.tools = world.registry.specs()
    saga = await start(world, document, {}, "w")
    work = asyncio.create_task(world.work([wake(saga)]))
    await asyncio.sleep(0.5)
    world.slow["get"] = FOREVER
    await work
    assert (done(world, saga), cuts(world, saga)) == (["quick"], [("big", 100_000, "fault")])
    del world.slow["get"]
    assert await is_even(world, saga)
    await asyncio.sleep(61)
    await world.work([wake(saga)])
    assert (end(world, saga), began["quick"]) == ("completed", 1)
    assert await is_even(world, saga)


async def test_an_outcome_behind_children_that_cannot_be_cancelled_is_kept() -> None:
    child = "name: kid\nnodes: {a: {wait: {for: 1h}}}"
    document = """
        name: w
        nodes:
          kid: {workflow: kid}
          fast: {tool: takes, with: {seconds: 1}}
          first: {value: 1, after: [fast, kid], join: any}
          paid: {tool: takes, with: {seconds: 2, usd: '0.2'}}
          more: {tool: takes, after: first, with: {seconds: 30}}
    """
    world = World.start(**ALONE)
    began = add_tools(world)
    await world.service().register(child, json_only=False)
    saga = await start(world, document, {}, "w")
    real = world.log.append

    def append(ref: SagaRef, *rest: Any) -> Appended | None:
        if ref.id != saga and began["paid"]:
            raise EngineFault("the child's partition is broken")
        return real(ref, *rest)

    work = asyncio.create_task(world.work([wake(saga)]))
    await asyncio.sleep(0.5)
    any_log: Any = world.log
    any_log.append = append
    world.slow["append"] = 1.3  # `paid` has finished when the child is to be cancelled
    await work
    assert done(world, saga) == ["fast", "paid"]
    assert await is_even(world, saga)


async def test_rows_that_are_refused_after_a_fault_fail_their_own_step_and_no_other() -> None:
    document = """
        name: w
        nodes:
          one: {tool: sits, with: {guest: ada}}
          two: {tool: sits, with: {guest: bob}}
          three: {tool: sits, with: {guest: cyd}}
          big: {tool: fill, with: {size: 20000}, branch: {rules: [{if: 'output.text != ""', then: next}]}}
          next: {value: 1}
          soon: {tool: takes, with: {seconds: 0}}
    """
    world = World.start(**ALONE)
    add_tools(world)

    @tool("sits", registry=world.registry)
    async def sits(context: Context, guest: str) -> None:
        await asyncio.sleep(0.1)
        context.put_row("guests", guest, {})

    def get(*_: Any) -> Any:
        raise EngineFault("broken")

    world.tools = world.registry.specs()
    asked = refuse(world, "bob")
    any_blobs: Any = world.blobs
    saga = await start(world, document, {}, "w")
    world.slow["append"] = 0.5  # all have finished when `soon` is in the log
    work = asyncio.create_task(world.work([wake(saga)]))
    await asyncio.sleep(0.2)
    any_blobs.get = get
    await work
    (failed,) = (event for event in world.events(saga) if isinstance(event, StepFailed))
    assert (failed.node, failed.failure.code) == ("two", "rows_refused")
    assert sorted({sort for _, _, sort in world.log.rows}) == ["ada", "cyd"]
    assert (done(world, saga), cuts(world, saga)) == (["one", "soon", "three"], [("big", 0, "fault")])
    assert asked


async def test_an_item_of_one_step_that_cannot_be_read_loses_nothing_of_the_others() -> None:
    document = """
        name: w
        nodes:
          once: {tool: card}
          long: {tool: takes, with: {seconds: 4, usd: '0.3'}}
    """
    world = World.start(**ALONE)
    add_tools(world)

    @tool("card", registry=world.registry, effect="once")
    async def card() -> str:
        return "by card"

    def claim(*_: Any) -> Any:
        raise CorruptLog("an effect that cannot be read")

    world.tools = world.registry.specs()
    any_effects: Any = world.effects
    any_effects.claim = claim
    saga = await start(world, document, {}, "w")
    for _ in range(2):
        await world.work([wake(saga)])
        await asyncio.sleep(3_601)
    assert ("long", 300_000, "fault") in cuts(world, saga)
    assert await is_even(world, saga)


async def test_an_account_has_what_a_faulty_attempt_spent_before_the_log_has() -> None:
    world = World.start(**ALONE)

    @tool("card", registry=world.registry, effect="once", cost_usd="0.30")
    async def card(context: Context) -> str:
        context.spend("0.20")
        return "by card"

    def change(*_: Any) -> Any:
        raise EngineFault("broken")

    world.tools = world.registry.specs()
    saga = await start(world, "name: w\nnodes: {a: {tool: card}}", {}, "w")
    real, seen = world.log.append, list[int]()

    def append(*args: Any) -> Appended | None:
        seen.append(sums(world).spent)
        return real(*args)

    any_log: Any = world.log
    any_effects: Any = world.effects
    any_log.append, any_effects.change = append, change
    await world.work([wake(saga)])
    assert cuts(world, saga) == [("a", 200_000, "fault")]
    assert seen[-1] == 200_000
