"""An agent that searches for tools finds its own, whatever its model asks for."""

from __future__ import annotations

from typing import Any

from baton import tool
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.toolbox import Books
from tests.kit.world import World
from tests.runtime.conftest import Stage

DOCUMENT = """
name: w
nodes:
  find: {agent: {model: m, prompt: Find one., tools: [std.search_tools, sum.*]}}
output: ${ctx.find.output}
"""


def test_a_model_does_not_choose_among_which_tools_is_searched(stage: Stage) -> None:
    async def story(world: World, books: Books) -> None:
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

    stage(story)
