"""Inputs and outputs of every step, attempts included, from the log and the graph."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.core.log.questions import Answer
from baton.errors import UserError
from baton.ports import StepFailure
from baton.tools.define import Registry, tool
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import World

TWICE = """
name: twice
nodes:
  first: {value: {word: "${input.word}", password: hunter22}}
  call:
    tool: t.flaky
    after: first
    with: {word: "${ctx.first.output.word}", password: "${ctx.first.output.password}"}
    compensate: {tool: t.back, with: {word: "${step.input.word}"}}
    on_failure: rollback
  last: {tool: t.last, after: call, with: {given: "${ctx.call.output}"}, on_failure: rollback}
output: "${ctx.last.output}"
"""
LONG = "x" * 9_000  # kept outside of its entry


def world_of_flaky_tools(*, fails: bool = False) -> World:
    registry = Registry()
    called: list[str] = []

    @tool("t.back", registry=registry)
    def back(word: str) -> None:
        """Take it back."""

    @tool("t.flaky", registry=registry)
    def flaky(word: str, password: str) -> dict[str, str]:
        called.append(word)
        if len(called) == 1:
            raise StepFailure("service_unavailable", "not now", kind="transient")
        return {"word": word + "!"}

    @tool("t.last", registry=registry)
    def last(given: dict[str, str]) -> str:
        if fails:
            raise StepFailure("sold_out", "nothing left", kind="permanent")
        return given["word"]

    world = World(registry)
    world.switch_on()
    return world


async def runs(world: World, saga: str, node: str) -> list[dict[str, Any]]:
    (one,) = (await world.queries().explain(saga, node))["iterations"]
    found: list[dict[str, Any]] = one["runs"]
    return found


def short(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["node"], run["attempt"], run["outcome"], run["input"], run["output"]


async def test_each_attempt_is_shown_with_its_input_and_its_output() -> None:
    world = world_of_flaky_tools()
    saga = await start(world, TWICE, {"word": "hello"}, "twice")
    await world.settle()
    given = {"word": "hello", "password": "[redacted]"}
    first, second = await runs(world, saga, "call")
    assert short(first) == ("call", 1, "attempt_failed", given, None)
    assert short(second) == ("call", 2, "succeeded", given, {"word": "hello!"})
    assert (first["error"]["code"], second["error"]) == ("service_unavailable", None)
    assert (second["tool"], second["started_at"] is not None) == ("t.flaky", True)
    (passed,) = await runs(world, saga, "first")
    assert short(passed) == ("first", 0, "succeeded", given, given)


async def test_a_saga_shows_its_own_input_and_the_version_of_its_document() -> None:
    world = world_of_flaky_tools()
    saga = await start(world, TWICE, {"word": "hello"}, "twice")
    await world.settle()
    view = await world.queries().show(saga)
    assert (view["input"], view["large_input"], view["workflow_version"]) == ({"word": "hello"}, None, 1)


async def test_an_input_made_of_a_value_outside_of_the_log_is_shown() -> None:
    world = world_of_flaky_tools()
    saga = await start(world, TWICE, {"word": LONG}, "twice")
    await world.settle()
    _, done = await runs(world, saga, "call")
    assert done["input"]["word"] == LONG[:500] + "…"
    assert (done["output"], done["large_output"]["size"] > 9_000) == (None, True)
    (last,) = await runs(world, saga, "last")
    assert last["input"]["given"]["word"] == LONG[:500] + "…"


async def test_a_step_that_waits_for_its_next_attempt_is_shown_with_its_input() -> None:
    world = world_of_flaky_tools()
    later = TWICE.replace("    compensate", "    retry: {base: 1h}\n    compensate")
    saga = await start(world, later, {"word": "hello"}, "twice")
    await asyncio.sleep(30)
    tried, waiting = await runs(world, saga, "call")
    assert (tried["outcome"], waiting["outcome"]) == ("attempt_failed", "open")
    assert waiting["input"] == tried["input"]
    page = await world.queries().steps(saga, 0, 50)
    assert [run["outcome"] for run in page["steps"]] == ["succeeded", "attempt_failed", "open"]


@pytest.mark.parametrize("limit", [1, 2, 50])
async def test_the_attempts_of_a_saga_are_a_list_in_pages(limit: int) -> None:
    world = world_of_flaky_tools(fails=True)
    saga = await start(world, TWICE, {"word": "hello"}, "twice")
    await world.settle()
    found: list[dict[str, Any]] = []
    after: int | None = 0
    while after is not None:
        page = await world.queries().steps(saga, after, limit)
        found, after = [*found, *page["steps"]], page["next"]
    assert [(run["node"], run.get("item", ""), run["attempt"], run["outcome"]) for run in found] == [
        ("first", "", 0, "succeeded"),
        ("call", "", 1, "attempt_failed"),
        ("call", "", 2, "succeeded"),
        ("last", "", 1, "failed"),
        ("call", "undo", 1, "succeeded"),
    ]


async def test_the_attempts_of_inverses_are_a_list() -> None:
    world = world_of_flaky_tools(fails=True)
    saga = await start(world, TWICE, {"word": "hello"}, "twice")
    await world.settle()
    page = await world.queries().steps(saga, 0, 50, "undo")
    assert [(run["node"], run["tool"], run["outcome"]) for run in page["steps"]] == [
        ("call", "t.back", "succeeded")
    ]
    assert (await world.queries().steps(saga, 0, 50, "alternative"))["steps"] == []


ASKS = """
name: asks
nodes:
  ask: {human: {type: approval, title: "Pay?"}}
"""


async def test_past_answers_of_people_are_a_list() -> None:
    world = world_of_flaky_tools()
    saga = await start(world, ASKS, {}, "asks")
    await world.settle()
    (asked,) = (await world.queries().questions(saga=saga))["questions"]
    await world.service().answer(saga, Answer(ask=asked["id"], action="approve", comment="Fine."), "")
    await world.settle()
    assert (await world.queries().questions(saga=saga))["questions"] == []
    (closed,) = (await world.queries().questions(saga=saga, answered="true"))["questions"]
    assert (closed["id"], closed["title"]) == (asked["id"], "Pay?")
    answer = closed["answer"]
    assert (answer["action"], answer["by"], answer["comment"]) == ("approve", "ann", "Fine.")


async def test_answers_are_listed_by_saga(says: Says) -> None:
    with says.raised(UserError):
        await world_of_flaky_tools().queries().questions(answered="true")


async def test_the_attempt_of_a_child_names_its_saga() -> None:
    world = world_of_flaky_tools()
    text = "name: p\nnodes: {c: {graph: c}}\ngraphs: {c: {nodes: {w: {wait: {for: 1s}}}}}\n"
    saga = await start(world, text, {}, "p")
    await asyncio.sleep(0.5)
    (before,) = (await world.queries().steps(saga, 0, 10))["steps"]
    await world.settle()
    (after,) = (await world.queries().steps(saga, 0, 10))["steps"]
    assert [(one["outcome"], one["child"]) for one in (before, after)] == [
        ("open", f"{saga}.0.c"),
        ("succeeded", f"{saga}.0.c"),
    ]
