"""Limits where they meet the world: time with no worker running, steps that are stopped, pauses, blobs, money."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import msgspec
import pytest

from baton import Context, tool
from baton.core.decide.scheduling import PAUSE_MS
from baton.core.log.events import (
    LimitReached,
    NodeBegan,
    StepFailed,
    StepInterrupted,
    StepSucceeded,
)
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import TENANT, World


async def view_of(world: World, saga: str) -> dict[str, Any]:
    return await world.queries().show(saga)


def add_spender(world: World) -> None:
    @tool("buy", registry=world.registry, timeout="60s")
    async def buy(context: Context, usd: str = "0.25", seconds: float = 0, fail: bool = False) -> str:
        context.spend(usd)
        await asyncio.sleep(seconds)
        if fail:
            raise RuntimeError("no")
        context.spend(usd)
        return "bought"

    world.tools = world.registry.specs()


async def test_a_saga_ends_at_the_end_of_its_time_with_no_worker_at_work() -> None:
    world = World.start()
    document = "name: w\ntimeout: 40m\nnodes: {a: {wait: {signal: s}}, b: {workflow: other}}"
    await world.service().register("name: other\nnodes: {a: {wait: {for: 1d}}}", json_only=False)
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(39 * 60)
    shown = await view_of(world, saga)
    assert shown["status"] == "waiting"
    child = next(one["saga"] for one in shown["active"] if "saga" in one)
    await asyncio.sleep(70)
    shown = await view_of(world, saga)
    assert (shown["status"], shown["error"]["code"]) == ("failed", "limit_wall_time")
    entries = world.entries(saga)
    reached = next(one for one in entries if isinstance(one.events[0], LimitReached))
    assert 0 <= reached.at - entries[0].at - 40 * 60_000 <= 1_000
    assert (await view_of(world, child))["status"] == "cancelled"
    assert entries[-1].at > world.entries(child)[-1].at, "it ends after its child"


async def test_a_node_fails_at_the_end_of_its_time_while_its_step_runs_and_what_tolerates_it_goes_on() -> (
    None
):
    world = World.start(timeout_s=60)
    document = """
            name: w
            nodes:
              slow: {tool: work, with: {n: 1, seconds: 25}, limits: {wall_time: 2s}}
              z: {tool: work, with: {n: 1}, after: slow, join: {wait_for: all, tolerated_failures: 1}}
        """
    saga = await start(world, document, {}, "w")
    await world.settle()
    assert (await view_of(world, saga))["status"] == "completed"
    events = world.events(saga)
    (began,) = [event for event in events if isinstance(event, NodeBegan)]
    (failed,) = [event for event in events if isinstance(event, StepFailed)]
    assert failed.failure.code == "limit_wall_time"
    assert 2_000 <= failed.ended_at - began.at < 2_200


@pytest.mark.parametrize("scope", ["saga", "node"])
async def test_a_running_step_is_stopped_when_the_time_is_over_and_its_money_counts(scope: str) -> None:
    world = World.start(timeout_s=60)
    add_spender(world)
    limits = "timeout: 3s\n" if scope == "saga" else ""
    own = ", limits: {wall_time: 3s}" if scope == "node" else ""
    document = f"name: w\n{limits}nodes: {{a: {{tool: buy, with: {{seconds: 50}}{own}}}}}"
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(5)
    shown = await view_of(world, saga)
    assert (shown["status"], shown["error"]["code"]) == ("failed", "limit_wall_time")
    assert shown["spent_usd"] == 0.25
    events = world.events(saga)
    assert any(isinstance(event, LimitReached) for event in events) == (scope == "saga")
    (cut,) = [event for event in events if isinstance(event, StepInterrupted)]
    assert cut.cost == 250_000


@pytest.mark.parametrize(
    ("document", "code", "usd"),
    [
        ("name: w\nnodes: {a: {tool: buy, with: {seconds: 1}}}", None, 0.5),
        ("name: w\non_failure: [rollback]\nnodes: {a: {tool: buy, with: {fail: true}}}", "tool_error", 0.25),
        (
            "name: w\nlimits: {cost_usd: 0.6}\nnodes: {a: {tool: buy, with: {seconds: 20}}}",
            "limit_cost",
            0.75,
        ),
        (
            "name: w\non_failure: [rollback]\nnodes: {a: {tool: buy, timeout: 1s, with: {seconds: 2}}}",
            "timeout",
            0.25,
        ),
    ],
    ids=["succeeds", "fails", "is cut off", "takes too long"],
)
async def test_money_counts_whatever_becomes_of_an_attempt(
    document: str, code: str | None, usd: float
) -> None:
    world = World.start()
    add_spender(world)
    saga = await start(world, document, {}, "w")
    await world.settle()
    shown = await view_of(world, saga)
    assert (shown["error"] and shown["error"]["code"], shown["spent_usd"]) == (code, usd)


async def test_what_is_no_amount_is_the_tools_error(says: Says) -> None:
    world = World.start()
    add_spender(world)
    with_bad = "name: w\non_failure: [rollback]\nnodes: {a: {tool: buy, with: {usd: '-1'}}}"
    saga = await start(world, with_bad, {}, "w")
    await world.settle()
    shown = await view_of(world, saga)
    assert shown["error"]["code"] == "tool_error"
    says(shown["error"]["message"])


async def test_the_money_of_a_child_is_its_parents() -> None:
    world = World.start()
    add_spender(world)
    await world.service().register("name: other\nnodes: {a: {tool: buy}}", json_only=False)
    saga = await start(world, "name: w\nnodes: {k: {workflow: other}}", {}, "w")
    await world.settle()
    assert (await view_of(world, saga))["spent_usd"] == 0.5


async def test_throttled_steps_are_a_pause_apart_over_invocations_that_do_not_wait() -> None:
    world = World.start()
    nodes = ", ".join(f"n{number}: {{tool: work, with: {{n: 1}}}}" for number in range(6))
    document = f"name: w\nlimits: {{hops: {{max: 2, then: throttle}}}}\nnodes: {{{nodes}}}"
    saga = await start(world, document, {}, "w")
    await world.settle()
    shown = await view_of(world, saga)
    assert (shown["status"], shown["steps"]) == ("completed", 6)
    ran = sorted(
        (event.started_at, event.ended_at) for event in world.events(saga) if isinstance(event, StepSucceeded)
    )
    assert ran[1][0] < ran[0][1], "the first two run together"
    gaps = [later[0] - earlier[1] for earlier, later in itertools.pairwise(ran[1:])]
    assert all(PAUSE_MS <= gap <= PAUSE_MS + 1_100 for gap in gaps)
    assert shown["invocations"] == 5


async def test_fan_out_is_throttled_without_a_write() -> None:
    world = World.start()
    nodes = ", ".join(f"n{number}: {{tool: work, with: {{n: 1}}}}" for number in range(6))
    document = f"name: w\nlimits: {{fan_out: {{max: 2, then: throttle}}}}\nnodes: {{{nodes}}}"
    saga = await start(world, document, {}, "w")
    await world.settle()
    assert (await view_of(world, saga))["status"] == "completed"
    ran = [event for event in world.events(saga) if isinstance(event, StepSucceeded)]
    most = max(sum(o.started_at <= e.started_at < o.ended_at for o in ran) for e in ran)
    assert (len(ran), most) == (6, 2)
    assert len(world.entries(saga)) <= 1 + 6


async def test_a_summary_is_in_the_log_and_the_whole_is_in_the_bucket() -> None:
    world = World.start()
    document = """
            name: w
            limits: {bytes: {max: 2000, then: summarise}}
            nodes:
              small: {tool: fill, with: {size: 4000}}
              large: {tool: fill, with: {size: 30000}, after: small}
              value: {value: {all: ["${ctx.small.output.text}"]}, after: large}
            output: {large: "${ctx.large.output}", value: "${ctx.value.output}"}
        """
    saga = await start(world, document, {}, "w")
    await world.settle()
    shown = await view_of(world, saga)
    assert shown["status"] == "completed"
    ran = {event.node: event for event in world.events(saga) if isinstance(event, StepSucceeded)}
    for node, size in (("small", 4_000), ("large", 30_000)):
        full = ran[node].full
        assert full is not None
        whole = msgspec.json.decode(world.blobs.get(TENANT, full.ref))
        assert whole == {"text": "x" * size}
        assert ran[node].output.v["$summary"]["ref"] == full.ref.partition("@")[0]
        assert ran[node].output.v["$summary"]["bytes"] == full.size == size + 11
    assert shown["result"]["large"]["text"].endswith("… (30000 characters)")
    assert shown["limits"][0]["used"] <= 2_000
