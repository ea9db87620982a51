"""Limits of retries in whole sagas: across hand-overs, items, calls of agents, operations of functions; children count for themselves."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import StepFailure, WorkflowContext, tool, workflow
from baton.core.log import events as ev
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, in_turn, says
from tests.kit.world import World
from tests.runtime.functions import Application

RULES = "limits: {retries: 4}\nretry: {max_attempts: 9, backoff: fixed, base: 3s, on: down}\n"


def world_of_a_service_that_is_down(**options: Any) -> World:
    world = World.start(**options)

    @tool("call", registry=world.registry)
    async def call(n: int = 0) -> int:
        raise StepFailure("down", "nothing answers", kind="transient")

    world.tools = world.registry.specs()
    return world


def retries(world: World, saga: str) -> int:
    return sum(
        isinstance(event, ev.StrategyChosen) and event.strategy == "retry" for event in world.events(saga)
    )


async def ran(world: World, document: str) -> tuple[str, str, int]:
    """How a saga has ended: status, code; and its retries."""
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(300)
    await world.settle()
    view = await world.queries().show(saga)
    return view["status"], (view["error"] or {}).get("code", ""), retries(world, saga)


async def test_items_of_a_map_share_it() -> None:
    nodes = "nodes: {a: {map: [1, 2, 3], tool: call, with: {n: '${item}'}}}"
    world = world_of_a_service_that_is_down()
    status, _, count = await ran(world, f"name: w\non_failure: fail\n{RULES}{nodes}")
    assert (status, count) == ("failed", 4)
    failed = [
        event.failure.code
        for event in world.events(world.log.heads()[0].ref.id)
        if isinstance(event, ev.StepFailed)
    ]
    assert "limit_retries" in failed


async def test_steps_beside_each_other_share_it() -> None:
    nodes = "nodes: {a: {tool: call}, b: {tool: call}}"
    assert await ran(world_of_a_service_that_is_down(), f"name: w\non_failure: fail\n{RULES}{nodes}") == (
        "failed",
        "limit_retries",
        4,
    )


async def test_a_child_counts_for_itself() -> None:
    world = world_of_a_service_that_is_down()
    inner = "graphs: {inner: {nodes: {a: {tool: call}}, limits: {retries: 2}}}"
    text = f"name: w\n{RULES}nodes: {{one: {{graph: inner}}}}\n{inner}"
    await start(world, text, {}, "w")
    await asyncio.sleep(300)
    counts = sorted(retries(world, head.ref.id) for head in world.log.heads())
    assert counts == [0, 2]


async def test_calls_of_an_agent_count() -> None:
    world = world_of_a_service_that_is_down()
    world.models = Scripted(in_turn(asks_for(("call", {"n": 1})), says("gone")))
    agent = "nodes: {a: {agent: {model: m, prompt: Go., tools: [call]}}}"
    _, _, count = await ran(world, f"name: w\n{RULES}{agent}")
    assert count == 4


def test_operations_of_a_function_count() -> None:
    app = Application()

    @workflow("w", limits={"retries": 2}, on_failure="fail", registry=app.registry)
    async def w(context: WorkflowContext) -> str:
        try:
            await context.step("break")
        except StepFailure as failure:
            return failure.code
        return "done"

    @tool("break", registry=app.registry)
    async def broken() -> None:
        raise StepFailure("down", "nothing answers", kind="transient")

    found = app.run("w")
    assert (found.status, found.output) == ("completed", "limit_retries")


@pytest.mark.parametrize("seconds", [1.0, 30.0])
async def test_invocations_do_not_count_anew(seconds: float) -> None:
    world = world_of_a_service_that_is_down(timeout_s=seconds)
    assert (await ran(world, f"name: w\non_failure: fail\n{RULES}nodes: {{a: {{tool: call}}}}"))[1:] == (
        "limit_retries",
        4,
    )
