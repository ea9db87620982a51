"""Notes about calls in the code of a workflow function that do not belong there."""

from __future__ import annotations

import datetime as dt
import random
import subprocess
import time
import uuid
from datetime import datetime
from pathlib import Path
from time import sleep
from typing import Any

import pytest

from baton import StepFailure, WorkflowContext, tool, workflow
from baton.core.documents.compile import compile_document
from baton.tools.define import Registry
from baton.tools.functions.define import ADAPTED
from baton.tools.functions.notes import code_notes, function_notes, function_problems
from baton.tools.standard import with_standard
from tests.kit.sentences import Says

REGISTRY = Registry()


@tool("notes.work", registry=REGISTRY)
async def work(value: int) -> int:
    return value


def helper() -> None:
    sleep(1)


@workflow("good", registry=REGISTRY)
async def good(context: WorkflowContext) -> str:
    await context.step(work, 1)
    await context.sleep("1s")
    day = dt.date.fromisoformat("2026-11-29")
    return f"{uuid.UUID(int=3)} {day} {time.strftime('%Y')} {context.now()} {sorted([3, 1])}"


@workflow("bad", registry=REGISTRY)
async def bad(context: WorkflowContext) -> None:
    time.sleep(1)  # what the notes are for
    datetime.now(dt.UTC)
    dt.date.today()
    random.random()
    uuid.uuid4()
    subprocess.run(["ls"], check=False)
    open("x")
    await work(1)


@workflow("indirect", registry=REGISTRY)
async def indirect(context: WorkflowContext) -> None:
    helper()


def test_a_function_that_leaves_the_world_to_operations_has_none() -> None:
    assert function_notes(REGISTRY["good"], REGISTRY) == []


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        ("time.sleep", "`await context.sleep(…)`"),
        ("datetime.now", "`context.now()`"),
        ("dt.date.today", "`context.now()`"),
        ("random.random", "`context.random()`"),
        ("uuid.uuid4", "`context.uuid()`"),
        ("subprocess.run", "a tool, and call that by `context.step`"),
        ("open", "a tool, and call that by `context.step`"),
        ("work", "`context.step(work, …)`"),
    ],
)
def test_each_call_is_noted_with_its_line_and_what_to_write(call: str, instead: str) -> None:
    notes = function_notes(REGISTRY["bad"], REGISTRY)
    assert len(notes) == 8
    (note,) = [note for note in notes if f" `{call}(…)` " in note]
    line = next(
        number
        for number, text in enumerate(Path(__file__).read_text("utf-8").splitlines(), 1)
        if text.lstrip().startswith((f"{call}(", f"await {call}("))
    )
    assert note.startswith(f"tests/tools/test_function_notes.py:{line}: ")
    assert note.endswith(f"write {instead}")


def test_what_a_function_of_the_package_calls_counts_too() -> None:
    (note,) = function_notes(REGISTRY["indirect"], REGISTRY)
    assert "`sleep(…)`" in note


def _of(module: str, name: str) -> Any:
    """Return an object of a class with the name of one of another library."""
    return type(name, (), {"__module__": module, "run": helper, "ainvoke": helper, "override": helper})()


runner, sagas_own = type(_of("agents.run", "Runner")), type(_of("agents.run", "Runner"))
graph, bare = _of("langgraph.pregel.main", "Pregel"), _of("pydantic_ai.agent", "Agent")
ADAPTED[id(sagas_own)] = sagas_own, lambda: iter(())


@workflow("libraries", registry=REGISTRY)
async def libraries(context: WorkflowContext) -> None:
    await runner.run("hello")
    await graph.ainvoke({})
    await bare.run("hello")
    await sagas_own.run("hello")
    bare.override()


def test_an_agent_or_a_graph_of_a_library_that_records_nothing_is_noted() -> None:
    notes = function_notes(REGISTRY["libraries"], REGISTRY)
    assert [note.partition(" is no operation")[0].rpartition(" ")[2] for note in notes] == [
        "`runner.run(…)`",
        "`graph.ainvoke(…)`",
        "`bare.run(…)`",
    ]
    for note, said in zip(notes, ("openai_agents", "baton.compat.langgraph", "BatonDurability"), strict=True):
        assert said in note.partition("write ")[2]


class DeclinedError(Exception):
    pass


@tool("notes.pay", registry=REGISTRY, raises={DeclinedError: ("card_de" + "clined", "permanent")})
async def pay() -> None:
    raise StepFailure("out_of_stock", "there is none", kind="permanent")


DOCUMENT = """
name: shop
nodes:
  pay: {tool: notes.pay, catch: [{code: "%s", then: tell}]}
  work: {tool: notes.work, after: pay, with: {value: 1}, on_failure: {any: fail}}
  tell: {tool: notes.work, with: {value: 2}}
"""


@pytest.mark.parametrize("code", ["card_declined", "out_of_stock", "timeout"])
def test_a_code_that_a_tool_can_raise_has_no_note(code: str) -> None:
    assert list(code_notes(compile_document(DOCUMENT % code, REGISTRY.specs()), REGISTRY)) == []


def test_a_code_that_no_tool_can_raise_has_a_note_with_the_nearest() -> None:
    wrong = "card_" + "declind"
    (note,) = code_notes(compile_document(DOCUMENT % wrong, REGISTRY.specs()), REGISTRY)
    assert f"`{wrong}`" in note
    assert "card_declined" in note


@tool("notes.refuse", registry=REGISTRY)
async def refuse(value: int) -> int:
    raise StepFailure("no_room", "it is full", kind="permanent")


@workflow("catches", registry=REGISTRY)
async def catches(context: WorkflowContext) -> None:
    try:
        await context.step(refuse, 1)
    except StepFailure as failure:
        if failure.code in ("no_room", "timeout", "no_rome"):
            return
        raise


@workflow("reported", registry=REGISTRY)
async def reported(context: WorkflowContext) -> None:
    try:
        await context.step(refuse, 1)
        await context.callback()
    except StepFailure as failure:
        if failure.code != "jammed":
            raise


def test_a_code_that_a_function_looks_for_and_none_of_its_tools_raises_has_a_note(says: Says) -> None:
    (note,) = function_notes(REGISTRY["catches"], REGISTRY)
    assert note.startswith("tests/tools/test_function_notes.py:")
    says(note.partition(": ")[2])


def test_a_code_that_comes_from_outside_has_none() -> None:
    assert function_notes(REGISTRY["reported"], REGISTRY) == []


MISTAKES = Registry()


@tool("mistakes.charge", registry=MISTAKES, raises={DeclinedError: "declined"})
async def charge(order: str, cents: int = 0) -> str:
    return order


class LostError(Exception):
    pass


class BlockedError(DeclinedError):
    pass


def reserve(order: str, name: str) -> str:
    raise LostError(order)


@workflow("wrong", registry=MISTAKES)
async def wrong(order: str, context: WorkflowContext) -> None:
    context.step(charge, order)
    context.sleep("1d")
    receipt = context.step(charge, order)  # noqa: F841  # it is what is found
    await context.step(charge, ordr=order)
    await context.step(charge)
    await context.step(charge, order, 1, 2)
    await context.step(charge, order, order=order)
    await context.step(reserve, order)
    await context.step("std.htp", order)
    await context.step("std.http", ulr="https://example.com")
    await context.step("wrong", order)
    await context.ask("ok?", expire="2d")  # type: ignore[call-arg]
    await context.sleep()  # type: ignore[call-arg]
    await context.call("wrng", {"order": order})
    await context.start("elsewhere@2")


@workflow("right", registry=MISTAKES)
async def right(order: str, given: dict[str, Any], context: WorkflowContext) -> None:
    tool_, places = (charge, (order,)) if given else (reserve, (order, order))
    await context.step(tool_, order, anything=1)
    await context.step(charge if given else reserve, *places)
    await context.step(charge, **given)
    await context.step(charge, order, cents=2, name="again", retry=2, timeout="2s")
    await context.step(reserve, order, name="mine")
    await context.step("std.http", url="https://example.com")
    later = context.sleep("1d")
    await context.call(order, {"order": order})
    await context.call("right", timeout="1d")
    await context.model("gpt-5-mini", order, temperature=0)
    context.publish("progress", 1)

    async def nested(charge: str, context: WorkflowContext) -> None:
        await context.step(charge, any_of_them=1)

    await context.map(lambda one: nested(one, context), [order])
    await later


@workflow("excepts", registry=MISTAKES)
async def excepts(order: str, context: WorkflowContext) -> None:
    try:
        await context.step(charge, str(order))
        await context.step(reserve, order, order)
    except (DeclinedError, LostError):
        return
    try:
        await context.step(charge, order)
    except BlockedError:
        return
    except (TimeoutError, subprocess.CalledProcessError):
        return
    except (StepFailure, LostError):
        return
    try:
        await context.step(charge, uuid.UUID(order).hex)
        raise BlockedError
    except BlockedError:
        order = ""
    try:
        uuid.UUID(order)
    except LostError:
        order = ""


@workflow("looks-for", registry=MISTAKES)
async def looks_for(order: str, context: WorkflowContext) -> None:
    try:
        await context.step(reserve, order, order)
    except StepFailure as failure:
        if failure.code in ("lo" + "st", "lost"):
            return
        raise


@pytest.mark.parametrize("name", ["wrong", "right", "excepts", "looks-for"])
def test_what_cannot_be_right_is_a_problem_or_has_a_note(name: str, says: Says) -> None:
    registry = with_standard(MISTAKES)
    problems = function_problems(registry[name], registry)
    assert bool(problems) == (name == "wrong")
    for note in [*problems, *function_notes(registry[name], registry, ["right", "wrong"])]:
        place, _, said = note.partition(": ")
        assert place.startswith("tests/tools/test_function_notes.py:")
        line = Path(__file__).read_text("utf-8").splitlines()[int(place.rpartition(":")[2]) - 1]
        says(f"{line.partition('#')[0].strip()}  # {said}")
