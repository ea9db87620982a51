"""An agent that searches for tools finds its own, whatever its model asks for."""

from __future__ import annotations

import json
from typing import Any

from baton import pipeline, tool
from baton.core.effects.toolspec import Grants
from baton.tools.standard import with_standard
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.world import World
from tests.runtime.test_agents import ran

DOCUMENT = """
name: w
nodes:
  find: {agent: {model: m, prompt: Find one., tools: [std.search_tools, sum.*]}}
output: ${ctx.find.output}
"""


async def test_a_model_does_not_choose_among_which_tools_is_searched() -> None:
    world = World.start()
    searches: list[Any] = []

    @tool("std.search_tools", effect="pure", registry=world.registry)
    async def search(query: str, among: list[str] | None = None) -> str:
        searches.append((query, among))
        return "sum.add"

    @tool("sum.add", registry=world.registry)
    async def add(a: int) -> int:
        return a

    @tool("secret.tool", registry=world.registry)
    async def other() -> int:
        return 0

    world.tools = world.registry.specs()
    wide = ("std_search_tools", {"query": "add", "among": ["secret.tool"]})
    world.models = Scripted(by_turn(asks_for(wide), says("Found.")))
    saga = await start(world, DOCUMENT, {}, "w")
    await world.settle()
    assert (await world.queries().show(saga))["result"] == "Found."
    assert searches == [("add", ["std.search_tools", "sum.add"])]


async def test_a_pipeline_with_a_name_is_found_and_called_like_any_tool() -> None:
    world = World.start()
    steps = [{"op": "table_sort", "by": "price"}, {"op": "top_k", "k": 1}]
    pipeline("pipeline.cheapest", "The cheapest flight.", steps, inputs=["flights"], registry=world.registry)
    world.registry = with_standard(world.registry, grants=Grants.of("std.search_tools"))
    world.tools = world.registry.specs()
    data = {"flights": [{"price": 2}, {"price": 1}]}
    world.models = model = Scripted(
        by_turn(
            asks_for(("std_search_tools", {"query": "cheapest flight"})),
            asks_for(("pipeline_cheapest", {"data": data}), ("pipeline_cheapest", {"data": {}})),
            says("done"),
        )
    )
    text = """
name: w
nodes:
  find: {agent: {model: m, prompt: x, tools: [std.search_tools, pipeline.*]}}
  same: {after: find, tool: pipeline.cheapest, with: {data: {flights: "${input.flights}"}}}
output: ${ctx.same.output}
"""
    shown = await ran(world, text, data)
    assert (shown["status"], shown["result"]) == ("completed", [{"price": 1}]), shown
    found = json.loads(model.requests[1].messages[-1]["content"])
    assert [one["name"] for one in found["tools"]] == ["pipeline.cheapest"]
    told = [json.loads(one["content"]) for one in model.requests[2].messages if one["role"] == "tool"]
    assert told[1] == [{"price": 1}]
    assert told[2]["error"]["code"] == "input_invalid"
