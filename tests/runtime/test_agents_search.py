"""An agent that searches for tools finds its own, whatever its model asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest

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
    assert searches == [("add", ["std.search_tools", "sum.add"])], "also where an application has its own"


MANY = """
name: w
nodes:
  find:
    agent:
      model: m
      prompt: Find one.
      tools: [std.search_tools, std.openapi, crm.*, {graph: scout, description: Looks for customers.}, {ask: boss}]
      operations: {shop: [listOrders, refundOrder]}
output: ${ctx.find.output}
graphs:
  scout:
    input: {type: object, required: [name], properties: {name: {type: string}}}
    nodes: {a: {value: "${input.name}"}}
    output: ${ctx.a.output}
"""


def with_many(world: World, count: int = 30) -> list[str]:
    """Add so many tools of a customer database; the list has each call."""
    called: list[str] = []

    def declare(number: int) -> None:
        @tool(f"crm.record_{number}", registry=world.registry)
        async def record(customer: str) -> str:
            called.append(f"crm.record_{number}")
            return "kept"

    for number in range(count):
        declare(number)

    @tool("secret.customer", registry=world.registry)
    async def secret() -> str:
        """Customers, orders and records."""
        raise AssertionError("no agent may call it")

    world.registry = with_standard(world.registry, grants=Grants.of("std.search_tools std.openapi"))
    world.tools = world.registry.specs()
    return called


async def test_an_agent_with_many_calls_searches_for_them_and_calls_what_it_has_found() -> None:
    world = World.start()
    called = with_many(world)
    call = {"customer": "ada"}
    world.models = model = Scripted(
        by_turn(
            asks_for(
                ("std_search_tools", {"query": "record 7"}), ("std_search_tools", {"query": "customer"})
            ),
            asks_for(("crm_record_7", call), ("scout", {"name": "ada"}), ("secret_customer", {})),
            asks_for(("crm_record_8", call)),
            says("done"),
        )
    )
    assert (await ran(world, MANY, {}))["result"] == "done"
    first, second, third, last = [[one.name for one in request.tools] for request in model.requests]
    assert first == ["std_search_tools"]
    assert {*second} == {"std_search_tools", "crm_record_7", "scout"} | {*second}
    assert {"secret_customer", "crm_record_8"}.isdisjoint(second), "it is no better than ten others"
    assert third == second
    assert {*last} - {*third} == {"crm_record_8"}, "it may call what it has not found, and is then told of it"
    assert called == ["crm.record_7", "crm.record_8"]
    offer = next(one for one in model.requests[1].tools if one.name == "crm_record_7")
    assert offer.parameters["required"] == ["customer"], "its whole schema"


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("refund an order", ["shop:refundOrder", "shop:listOrders"]),
        ("customers", ["scout"]),
        ("person", ["boss"]),
        ("secret", []),
    ],
)
async def test_a_search_finds_operations_graphs_and_people_and_nothing_else(
    query: str, names: list[str]
) -> None:
    world = World.start()
    with_many(world, 0)
    world.models = model = Scripted(by_turn(asks_for(("std_search_tools", {"query": query})), says("done")))
    await ran(world, MANY.replace("crm.*, ", ""), {})
    found = json.loads(model.requests[1].messages[-1]["content"])["tools"]
    assert [one["name"] for one in found if one["name"] != "std.search_tools"] == names
    assert len(model.requests[0].tools) == 5, "so few are offered at once"
    (offer,) = [one for one in model.requests[0].tools if one.name == "std_search_tools"]
    assert {*offer.parameters["properties"]} == {"query", "limit"}


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
