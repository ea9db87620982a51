"""An agent calls those operations of APIs that its document lists, and no others, whatever its model asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton import tool
from baton.tools.standard.openapi import Listed
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.world import World
from tests.runtime.test_agents import ran

AGENT = """
name: w
nodes:
  tend: {agent: {model: m, prompt: p, tools: [std.openapi, sum.add], operations: {shop: [listOrders, getOrder], mail: send}}}
output: ${ctx.tend.output}
"""


def declared(world: World) -> list[tuple[str, str]]:
    """The calls that the tool gets."""
    called: list[tuple[str, str]] = []

    @tool("std.openapi", registry=world.registry)
    async def openapi(api: str, operation: str, operations: Listed = None) -> str:
        assert operations == {"shop": ["listOrders", "getOrder"], "mail": ["send"]}
        called.append((api, operation))
        return "done"

    @tool("sum.add", registry=world.registry)
    async def add(a: int) -> int:
        return a

    world.tools = world.registry.specs()
    return called


@pytest.mark.parametrize(
    "asked",
    [
        {"api": "shop", "operation": "restart"},
        {"api": "mail", "operation": "listOrders"},
        {"api": "other", "operation": "listOrders"},
        {"api": "shop", "operation": "listorders"},
    ],
)
async def test_an_operation_that_is_not_listed_is_refused_to_the_model(asked: Any) -> None:
    world = World.start()
    called = declared(world)
    listed = ("std_openapi", {"api": "shop", "operation": "getOrder"})
    world.models = model = Scripted(by_turn(asks_for(("std_openapi", asked), listed), says("ok")))
    shown = await ran(world, AGENT, {})
    assert (shown["status"], called) == ("completed", [("shop", "getOrder")])
    told = [
        json.loads(one["content"])
        for one in model.requests[1].messages
        if one["role"] == "tool" and one["content"][0] == "{"
    ]
    (error,) = [one["error"] for one in told]
    assert error["code"] == "call_not_allowed"
    assert "`shop:listOrders`, `shop:getOrder`" in error["message"]


async def test_a_model_cannot_bring_a_list_of_its_own() -> None:
    world = World.start()
    called = declared(world)
    wide = {"api": "shop", "operation": "restart", "operations": {"shop": ["restart"]}}
    more = {"api": "shop", "operation": "getOrder", "operations": {"shop": ["restart"]}}
    asks = asks_for(("std_openapi", wide), ("std_openapi", more))
    world.models = model = Scripted(by_turn(asks, says("ok")))
    shown = await ran(world, AGENT, {})
    assert (shown["status"], called) == ("completed", [])
    offer = next(one for one in model.requests[0].tools if one.name == "std_openapi")
    assert set(offer.parameters["properties"]) == {"api", "operation"}
    assert offer.parameters["properties"]["operation"]["enum"] == ["send", "listOrders", "getOrder"]


async def test_a_step_that_a_model_does_another_way_keeps_to_its_list() -> None:
    world = World.start()
    called = declared(world)

    @tool("broken", registry=world.registry)
    async def broken() -> str:
        raise ValueError("no")

    world.tools = world.registry.specs()
    merits = {
        "reliability": 0.9,
        "cost": 1,
        "latency": 1,
        "fit": 1,
        "preference": 0.5,
        "why": "",
        "trade_offs": "",
    }
    steps = [
        {"tool": "std.openapi", "arguments": {"api": "shop", "operation": name}}
        for name in ("restart", "getOrder")
    ]
    answer = {"alternatives": [{"steps": [step], **merits} for step in steps]}
    world.models = Scripted(by_turn(says(json.dumps(answer))))
    text = """
name: w
nodes:
  a:
    tool: broken
    on_failure: [replan, fail]
    replan: {model: m, tools: std.openapi, operations: {shop: [listOrders, getOrder], mail: send}}
output: ${ctx.a.output}
"""
    shown = await ran(world, text, {})
    assert (shown["status"], shown["result"], called) == ("completed", "done", [("shop", "getOrder")]), shown
