"""The runner's part in an early end: what runs is stopped and paid, children are cancelled, the parent hears of it."""

from __future__ import annotations

import asyncio

from baton.core.log.events import Failure, SagaEnded, StepFailed, StepInterrupted
from tests.kit.corpus import start
from tests.kit.world import World


async def test_an_early_end_stops_pays_and_cancels_what_is_under_way() -> None:
    document = """
name: early
nodes:
  quick: {tool: work, with: {n: 1, seconds: 1}}
  count: {tool: meter, with: {begins: 0.1}}
  child: {workflow: other}
  stop: {end: {result: {n: '${ctx.quick.output.n}'}}, after: quick}
"""
    world = World.start()
    await world.service().register("name: other\nnodes: {a: {wait: {for: 5d}}}", json_only=False)
    began = asyncio.get_running_loop().time()
    saga = await start(world, document, {}, "early")
    await world.settle()
    assert asyncio.get_running_loop().time() - began < 4, "the meter alone would run longer"
    view = await world.queries().show(saga)
    assert (view["status"], view["result"], view["error"]) == ("completed", {"n": 2}, None)
    assert view["spent_usd"] > 0
    (stopped,) = (event for event in world.events(saga) if isinstance(event, StepInterrupted))
    assert (stopped.node, stopped.cost > 0) == ("count", True)
    assert (await world.queries().show(f"{saga}.0.child"))["status"] == "cancelled"


async def test_a_parent_gets_the_result_of_an_early_end_and_the_code_of_a_fail() -> None:
    child = """
name: inner
nodes:
  good: {end: {result: enough}, when: input.good}
  bad: {fail: {code: out_of_stock, message: the wine is sold out}, when: '!input.good'}
  never: {wait: {signal: never}}
"""
    parent = """
name: outer
nodes:
  one: {workflow: inner, with: {good: true}}
  two: {workflow: inner, with: {good: false}, after: one, catch: [{code: child_failed, then: why}]}
  why: {end: {result: {one: '${ctx.one.output}', why: '${last_error.errors[0].code}'}}}
"""
    world = World.start()
    await world.service().register(child, json_only=False)
    saga = await start(world, parent, {}, "outer")
    await world.settle()
    view = await world.queries().show(saga)
    assert (view["status"], view["result"]) == ("completed", {"one": "enough", "why": "out_of_stock"})
    inner = await world.queries().show(f"{saga}.0.two")
    assert (inner["status"], inner["error"]["code"]) == ("failed", "out_of_stock")


async def test_what_may_have_happened_once_is_told_before_the_saga_completes() -> None:
    document = """
name: early
nodes:
  quick: {tool: work, with: {n: 1, seconds: 1}}
  haul: {tool: haul, with: {load: sand}}
  stop: {end: {}, after: quick}
"""
    world = World.start()
    saga = await start(world, document, {}, "early")
    await world.settle()
    events = world.events(saga)
    assert isinstance(events[-1], SagaEnded)
    assert events[-1].status == "completed"
    told = [event.notice.code for event in events if hasattr(event, "notice")]
    assert told == ["unknown_outcome"]


async def test_a_signal_with_a_failure_fails_the_wait_and_nothing_else_is_done_about_it() -> None:
    world = World.start()
    saga = await start(world, "name: w\nnodes: {a: {wait: {signal: go}}}", {}, "w")
    await world.settle()
    why = Failure("captcha_detected", "a captcha")
    await world.service().signal(saga, "go", None, "k", why)
    await world.settle()
    view = await world.queries().show(saga)
    assert (view["status"], view["error"]["code"], view["questions"]) == (
        "failed",
        "captcha_detected",
        [],
    )
    (failed,) = (event for event in world.events(saga) if isinstance(event, StepFailed))
    assert (failed.by, failed.node) == ("k", "a")
