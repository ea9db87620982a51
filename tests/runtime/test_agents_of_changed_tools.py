"""An agent whose tools a deploy changes between two turns: it is told where its calls would be refused now, and goes on."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from baton import tool
from baton.core.log.events import StepSucceeded
from baton.tools.define import Registry
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.sentences import Says
from tests.kit.world import World

DOCUMENT = """
name: w
nodes:
  a: {agent: {model: m, prompt: Refund., tools: [refund, rest], signal: go}}
"""


def deploy(world: World, done: list[Any], *, needs_reason: bool = False, more: bool = False) -> None:
    registry = Registry()

    @tool("rest", registry=registry, timeout="5m")
    async def rest() -> None:
        await asyncio.sleep(3)

    if needs_reason:

        @tool("refund", registry=registry)
        async def with_reason(order: str, reason: str) -> str:
            done.append((order, reason))
            return "done"

    elif more:

        @tool("refund", registry=registry)
        async def more_to_say(order: str, note: str = "") -> str:
            done.append((order, note))
            return "done"

    else:

        @tool("refund", registry=registry)
        async def refund(order: str) -> str:
            done.append(order)
            return "done"

    world.registry, world.tools = registry, registry.specs()
    world.limits = replace(world.limits, build=f"b{len(world.limits.build)}")


async def ran(second: Any, *, background: bool = False, **deployed: bool) -> tuple[World, str, list[Any]]:
    world, done = World.start(timeout_s=4.5), list[Any]()
    deploy(world, done)
    world.models = Scripted(
        by_turn(
            asks_for(("refund", {"order": "1"}), ("rest", {})), asks_for(("refund", second)), says("Done.")
        )
    )
    document = DOCUMENT.replace("model: m,", "model: m, background: true,") if background else DOCUMENT
    saga = await start(world, document, {}, "w")
    async with asyncio.timeout(600):
        while not done:
            await asyncio.sleep(0.5)
    deploy(world, done, **deployed)
    await world.settle()
    return world, saga, done


def asked(world: World) -> list[list[dict[str, Any]]]:
    models = world.models
    assert isinstance(models, Scripted)
    return [[dict(one) for one in request.messages] for request in models.requests]


def turns(world: World, saga: str) -> list[dict[str, Any]]:
    events = (event for event in world.events(saga) if isinstance(event, StepSucceeded))
    return [event.output.v for event in events if event.item in ("t1", "t2", "t3")]


@pytest.mark.parametrize("background", [False, True])
async def test_it_is_told_which_of_its_calls_would_be_refused_now_once(says: Says, background: bool) -> None:
    world, saga, done = await ran({"order": "2", "reason": "late"}, background=background, needs_reason=True)
    assert world.end(saga) is not None
    assert done == ["1", ("2", "late")]
    first, second, third = asked(world)[:3]
    assert second[: len(first)] == first
    assert second[-1]["role"] == "user"
    says(second[-1]["content"])
    assert third[: len(second)] == second, "the cache of its provider holds"
    assert [one["content"] for one in third if one["role"] == "user"].count(second[-1]["content"]) == 1
    found = turns(world, saga)
    assert [bool(one.get("changed")) for one in found] == [False, True, False]
    assert found[0]["offered"] != found[1]["offered"] == found[2]["offered"]


async def test_a_change_that_its_calls_fit_is_not_told() -> None:
    world, saga, done = await ran({"order": "2"}, more=True)
    assert done == ["1", ("2", "")]
    assert [message["role"] for message in asked(world)[1]][-1] == "tool"
    found = turns(world, saga)
    assert [one.get("changed") for one in found] == [None] * 3
    assert found[0]["offered"] != found[1]["offered"]
