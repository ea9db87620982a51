"""A fork in the middle of a turn, after the graph or a tool was changed: what may be called, and with what, is judged anew.

A fork takes no other graph by itself. What changes it gives the workers another program for the same saga, and so do these tests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from baton import tool
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log.events import StepSucceeded
from baton.core.log.questions import Answer
from baton.core.nodes.registry import KINDS
from baton.runtime.engine.parts import Engine
from baton.tools.define import Registry
from tests.kit.corpus import start
from tests.kit.process import Process
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.world import TENANT, World

TEXT = """
name: w
nodes:
  before: {tool: sum.add, with: {a: 0, b: 0}}
  find: {after: before, agent: {model: m, prompt: "Old prompt.", tools: [sum.add, sum.slow, sum.sign]}}
output: ${ctx.find.output}
"""
Call = tuple[str, dict[str, int]]
ADD: Call = ("sum_add", {"a": 1, "b": 2})
SLOW: Call = ("sum_slow", {"n": 7})
SIGN: Call = ("sum_sign", {})


class Edited(World):
    """Its workers run sagas by another program, once there is one."""

    program: Program | None = None

    def engine(self, process: Process) -> Engine:
        engine = super().engine(process)
        if self.program is not None:
            for head in self.log.heads():
                engine.catalog._programs[TENANT, head.graph] = self.program
        return engine

    def edit(self, change: Callable[[str], str]) -> None:
        self.program = Program(compile_document(change(TEXT), self.tools), KINDS)


def with_tools(world: World, made: list[Any]) -> None:
    @tool("sum.add", registry=world.registry)
    async def add(a: int, b: int) -> int:
        made.append(("add", a, b))
        return a + b

    @tool("sum.slow", registry=world.registry)
    async def slow(n: int) -> int:
        made.append(("slow", n))
        await asyncio.sleep(3)
        return n

    @tool("sum.sign", registry=world.registry, requires_approval=True)
    async def sign() -> str:
        made.append(("sign",))
        return "signed"

    world.tools = world.registry.specs()


async def until_called(world: World, saga: str, made: list[Any], what: str) -> int:
    """The version at which this call has begun and the first one is done."""
    while not (what in [one[0] for one in made] or await asked(world, saga)) or not _added(world, saga):
        await asyncio.sleep(0.2)
    return world.entries(saga)[-1].version


def _added(world: World, saga: str) -> bool:
    return any(isinstance(one, StepSucceeded) and one.item == "t1-0" for one in world.events(saga))


async def asked(world: World, saga: str) -> list[Any]:
    found: list[Any] = (await world.queries().show(saga))["questions"]
    return found


def results(model: Scripted, request: int) -> list[Any]:
    return [json.loads(one["content"]) for one in model.requests[request].messages if one["role"] == "tool"]


async def test_a_call_under_way_whose_tool_was_taken_off_the_list_is_not_made_again() -> None:
    world = Edited.start()
    assert isinstance(world, Edited)
    made: list[Any] = []
    with_tools(world, made)
    world.models = model = Scripted(by_turn(asks_for(ADD, SLOW), says("done")))
    saga = await start(world, TEXT, {}, "w")
    cut = await until_called(world, saga, made, "slow")
    world.edit(lambda text: text.replace("sum.slow, ", "").replace("Old prompt.", "New prompt."))
    await world.service().fork(saga, cut, "edited")
    await world.settle()
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", "done")
    assert made == [("add", 0, 0), ("add", 1, 2), ("slow", 7)], "neither is made again"
    kept, refused = results(model, 1)
    assert (kept, refused["error"]["code"]) == (3, "call_not_allowed")
    assert [offer.name for offer in model.requests[1].tools] == ["sum_add", "sum_sign"]
    assert model.requests[1].messages[0]["content"] == "Old prompt.", "what was answered is kept"


async def test_a_call_that_a_person_was_asked_about_is_not_made_once_its_tool_is_off_the_list() -> None:
    world = Edited.start()
    assert isinstance(world, Edited)
    made: list[Any] = []
    with_tools(world, made)
    world.models = model = Scripted(by_turn(asks_for(ADD, SIGN), says("done")))
    saga = await start(world, TEXT, {}, "w")
    cut = await until_called(world, saga, made, "sign")
    world.edit(lambda text: text.replace(", sum.sign", ""))
    await world.service().fork(saga, cut, "edited")
    await asyncio.sleep(30)
    for question in await asked(world, saga):
        await world.service().answer(saga, Answer(ask=question["id"], action="approve"), "k")
    await world.settle()
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", "done")
    assert ("sign",) not in made, "no yes of a person widens the list"
    assert results(model, 1)[1]["error"]["code"] == "call_not_allowed"


async def test_another_model_and_prompt_hold_for_an_agent_that_begins_behind_the_fork() -> None:
    world = Edited.start()
    assert isinstance(world, Edited)
    made: list[Any] = []
    with_tools(world, made)
    world.models = model = Scripted(by_turn(asks_for(ADD, SLOW), says("done")), known=("m", "n"))
    saga = await start(world, TEXT, {}, "w")
    cut = await until_called(world, saga, made, "slow")
    world.edit(lambda text: text.replace("Old prompt.", "New prompt.").replace("model: m", "model: n"))
    await world.service().fork(saga, cut, "in the middle")
    await world.settle()
    assert [one.model for one in model.requests] == ["m", "m"], "an agent goes on as it began"
    assert (await world.queries().show(saga))["result"] == "done"
    await world.service().fork(saga, 1, "before it")
    await world.settle()
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", "done")
    assert [one.model for one in model.requests[2:]] == ["n", "n"]
    assert model.requests[2].messages[0]["content"] == "New prompt."


@pytest.mark.parametrize("restricted", [True, False])
async def test_only_a_call_that_the_edited_list_still_has_is_done_again(restricted: bool) -> None:

    world = Edited.start()
    assert isinstance(world, Edited)
    made: list[Any] = []
    with_tools(world, made)
    world.models = model = Scripted(by_turn(asks_for(ADD, SLOW), says("done")))
    saga = await start(world, TEXT, {}, "w")
    cut = await until_called(world, saga, made, "slow")
    if restricted:
        world.edit(lambda text: text.replace("[sum.add, sum.slow, sum.sign]", "[sum.a*]"))
    await world.service().fork(saga, cut, "edited")
    await world.settle()
    assert made.count(("slow", 7)) == (1 if restricted else 2), "without an edit it is done again"
    assert ("error" in str(results(model, 1)[1])) is restricted


async def test_arguments_that_a_new_version_of_the_tool_does_not_take_are_told_to_the_model() -> None:
    world = Edited.start()
    made: list[Any] = []
    with_tools(world, made)
    world.models = model = Scripted(by_turn(asks_for(ADD, SLOW), says("done")))
    saga = await start(world, TEXT, {}, "w")
    cut = await until_called(world, saga, made, "slow")
    world.registry = registry = Registry()

    @tool("sum.slow", registry=registry, version="2")
    async def slow(name: str) -> str:
        raise AssertionError("the arguments are those of version 1")

    @tool("sum.add", registry=registry)
    async def add(a: int, b: int) -> int:
        raise AssertionError("it was done before")

    @tool("sum.sign", registry=registry)
    async def sign() -> str:
        raise AssertionError("no call of it was asked for")

    world.tools = registry.specs()
    world._idle.clear()  # a deploy ends the processes of the old code
    await world.service().fork(saga, cut, "a new version")
    await world.settle()
    shown = await world.queries().show(saga)
    assert (shown["status"], shown["result"]) == ("completed", "done")
    kept, refused = results(model, 1)
    assert (kept, refused["error"]["code"]) == (3, "input_invalid")
