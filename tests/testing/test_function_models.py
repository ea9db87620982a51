"""Agents and models of a workflow function: what they answer has a type, and their nodes are those of documents."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest

from baton import Agent, WorkflowContext, tool, workflow
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.nodes.registry import KINDS
from baton.core.read.definition_views import foretold
from baton.errors import InvalidDefinition, NotFound
from baton.testing import call, run
from baton.testing.result import Result
from baton.tools.define import Registry, ToolError
from baton.tools.functions.define import document_of
from tests.kit.sentences import Says

REGISTRY = Registry()


@dataclass
class Ticket:
    kind: str
    urgent: bool = False


@tool("desk.book", registry=REGISTRY, undo="desk.free")
async def book(seat: int) -> dict[str, int]:
    """Book a seat."""
    return {"seat": seat}


@tool("desk.free", registry=REGISTRY)
async def free(seat: int) -> None:
    return None


def plain_count(text: str) -> int:
    """Count the letters."""
    return len(text)


seats = Agent("seats", model="gpt-5-mini", instructions="Book.", tools=[book, plain_count], turns=3)
sorts = Agent("sorts", model="gpt-5-mini", output=Ticket, limits={"hops": 9})
FUNCTION_TOOLS: dict[str, Agent[str]] = {}


@workflow("desk", registry=REGISTRY, on_failure="rollback")
async def desk(text: str, context: WorkflowContext) -> list[Any]:
    ticket = await context.agent(sorts, {"text": text})
    assert isinstance(ticket, Ticket)
    said = await context.agent(seats, f"Find a seat: {text}")
    reply = await context.model("gpt-5-mini", text, instructions="Be short.", max_output=90, name="reply")
    again = await context.model("gpt-5-mini", text, schema=Ticket, corrections=1, name="again")
    assert isinstance(again, Ticket)
    await context.step(book, 1)
    return [ticket.kind, said, reply, again.urgent]


MODELS: dict[str, Any] = {
    "sorts": [{"kind": "late"}],
    "seats": [[call("desk.book", seat=3)], "seat 3"],
    "reply": ["${soon}"],
    "again": [{"kind": 1}, {"kind": "late", "urgent": True}],
}


def asked(models: dict[str, Any] | None = None, **options: Any) -> Result:
    return run(desk, {"text": "where is ${it}?"}, tools=REGISTRY, models=MODELS | (models or {}), **options)


def test_agents_and_models_answer_with_their_types() -> None:
    result = asked()
    assert result.output == ["late", "seat 3", "${soon}", True]
    assert result.attempts("again") == 2


@pytest.mark.parametrize(("place", "moment"), [("book", "before"), ("book", "after"), ("seats", "after")])
def test_after_a_death_the_answers_are_those_of_the_log(place: str, moment: str) -> None:
    assert asked(kills={place: moment}).output == ["late", "seat 3", "${soon}", True]


def test_what_an_agent_has_done_is_undone_with_the_function() -> None:
    result = asked({"again": [{"kind": 1}] * 2})
    assert (result.status, result.error.partition(":")[0]) == ("rolled_back", "answer_invalid")
    assert result.undone == ["seats"]


def test_a_failed_agent_is_a_failed_child() -> None:
    result = asked({"seats": [[call("desk.book", seat=n)] for n in range(3)]})
    assert result.error.startswith("child_failed: ")
    assert "agent_exhausted" in result.error


def test_a_model_that_no_script_answers_is_named(says: Says) -> None:
    models = {name: said for name, said in MODELS.items() if name != "reply"}
    with says.raised(ValueError):
        run(desk, {"text": "x"}, tools=REGISTRY, models=models)
    with says.raised(ValueError):
        run(desk, {"text": "x"}, tools=REGISTRY, models={"sorts": [{"kind": "late"}]})


def defect(settings: dict[str, Any], prompt: Any = "Hello?") -> str:
    registry = Registry()

    @workflow("asks", registry=registry)
    async def asks(context: WorkflowContext) -> Any:
        return await context.model("gpt-5-mini", prompt, **settings)

    result = run(asks, tools=registry)
    assert result.status == "parked"
    return str(result.error)


def test_a_request_that_cannot_be_made_is_a_mistake_in_the_code() -> None:
    assert "no `max_outputs`" in defect({"max_outputs": 3})
    assert "max_output" in defect({"max_output": 0})
    assert "empty" in defect({}, "")
    assert "retry" in defect({"retry": 0})
    assert "schema" in defect({"schema": 3})


def test_an_agent_that_the_saga_does_not_have_is_a_mistake_in_the_code() -> None:
    registry = Registry()

    @workflow("asks", registry=registry)
    async def asks(context: WorkflowContext) -> Any:
        return await context.agent(FUNCTION_TOOLS["other"], "Hello?")

    FUNCTION_TOOLS["other"] = Agent("other", model="gpt-5-mini")
    assert "`other`" in str(run(asks, tools=registry).error)

    @workflow("names", registry=registry, tools=[FUNCTION_TOOLS["other"]])
    async def names(context: WorkflowContext) -> Any:
        return await context.agent(FUNCTION_TOOLS["other"], "Hello?")

    assert run(names, tools=registry, models={"other": ["Hi."]}).output == "Hi."


def test_an_agent_is_checked_as_that_of_a_document() -> None:
    registry = Registry()
    wrong = Agent("wrong", model="gpt-5-mini", tools=["desk.bok"], turnz=3)

    @workflow("asks", registry=registry)
    async def asks(context: WorkflowContext) -> Any:
        return await context.agent(wrong, "Hello?")

    with pytest.raises(InvalidDefinition) as caught:
        run(asks, tools=registry)
    assert any("turnz" in one.path or "turnz" in one.message for one in caught.value.problems)


def test_a_function_with_an_agent_is_no_node_of_another_document() -> None:
    with pytest.raises(InvalidDefinition) as caught:
        compile_document("name: other\nnodes: {a: {function: desk}}", REGISTRY.specs())
    assert [one.suggestion for one in caught.value.problems] == ["write `workflow: desk`"] * 2


@pytest.mark.parametrize(
    "settings", [{"name": "no name"}, {"name": "a", "prompt": "x"}, {"name": "a", "output": 3}]
)
def test_a_wrong_declaration_of_an_agent_is_refused(settings: dict[str, Any], says: Says) -> None:
    with says.raised(ToolError):
        Agent(model="gpt-5-mini", **settings)


def test_two_agents_of_one_name_are_refused(says: Says) -> None:
    registry = Registry()
    first, second = Agent("one", model="a"), Agent("one", model="b")

    @workflow("asks", registry=registry)
    async def asks(context: WorkflowContext) -> Any:
        await context.agent(first, "Hello?")
        return await context.agent(second, "Hello?")

    with says.raised(ToolError):
        document_of(registry["asks"])


@workflow("asks", registry=REGISTRY)
async def asks(text: str, context: WorkflowContext) -> list[Any]:
    first = await context.agent(seats, text)
    return [first, await context.agent(seats, "again"), await context.model("gpt-5-mini", text, name="reply")]


def test_the_turns_of_a_function_s_agent_are_found_by_its_name() -> None:
    script = {"seats": [[call("desk.book", seat=3)], "seat 3", "none"], "reply": ["hi"]}
    result = run(asks, {"text": "a seat"}, tools=REGISTRY, models=script)
    first, answered = result.turns("seats")
    assert ([made.arguments for made in first.calls], answered.answer) == ([{"seat": 3}], "seat 3")
    assert [turn.answer for turn in result.turns("seats#2")] == ["none"]
    assert [turn.answer for turn in result.turns("reply")] == ["hi"]
    assert [result.attempts(name) for name in ("seats", "seats#2", "reply")] == [2, 1, 1]
    assert result.tokens == sum(
        turn.tokens for name in ("seats", "seats#2", "reply") for turn in result.turns(name)
    )
    assert [(child["input"], child["result"]) for child in result.children] == [
        ({"prompt": "a seat"}, "seat 3"),
        ({"prompt": "again"}, "none"),
    ]
    assert "\n    turn 1: desk.book(seat=3) = {'seat': 3}\n" in repr(result)


@workflow("asks-many", registry=REGISTRY)
async def asks_many(text: str, context: WorkflowContext) -> list[Any]:
    async def one(seat: int) -> str:
        return await context.agent(seats, f"{text} {seat}", name="find")

    return await context.map(one, [1, 2])


def test_the_turns_of_agents_in_a_map_are_found_together_by_the_agent_s_name() -> None:
    result = run(asks_many, {"text": "seat"}, tools=REGISTRY, models={"seats": lambda asked: "found"})
    assert (len(result.turns("seats")), result.attempts("seats")) == (2, 2)
    assert len(result.turns("one[1]/find")) == 1
    with pytest.raises(NotFound, match="no node `seat`"):
        result.turns("seat")


@workflow("books", registry=REGISTRY)
async def books(text: str, context: WorkflowContext) -> None:
    await context.step(book, 1)


@workflow("books-only", registry=REGISTRY, on_failure="fail")
async def books_only(text: str, context: WorkflowContext) -> None:
    await context.step(book, 1)


CAUGHT = "name: c\nnodes: {a: {function: books, with: {text: x}, catch: b}, b: {value: 1}}\n"


@pytest.mark.parametrize("document", ["books", "books-only", "asks-many", CAUGHT])
def test_a_failed_step_of_a_function_asks_no_person(document: str, says: Says) -> None:
    text = document if document == CAUGHT else json.dumps(document_of(REGISTRY[document]))
    found = foretold(Program(compile_document(text, REGISTRY.specs()), KINDS))
    says([found.steps, *found.nodes.values()][-1])


@workflow("greet-late", registry=REGISTRY)
async def greet_late(name: str, context: WorkflowContext) -> str:
    """Greets after a day."""
    await context.sleep("1d")
    return f"Hello, {name}!"


finds = Agent("finds", model="gpt-5-mini", instructions="Find.", tools=[book])
leads = Agent(
    "leads", model="gpt-5-mini", tools=[finds, greet_late, {"ask": "boss", "options": [{"id": "yes"}]}]
)


@workflow("led", registry=REGISTRY)
async def led(context: WorkflowContext) -> str:
    return await context.agent(leads, "Lead.")


def test_an_agent_of_a_function_calls_agents_functions_and_people() -> None:
    models = {
        "leads": [
            [call("finds", prompt="A seat."), call("greet-late", name="Ada"), call("boss", title="May we?")],
            "ok",
        ],
        "finds": [[call("desk.book", seat=3)], "seat 3"],
    }
    result = run(led, tools=REGISTRY, models=models, answers={"leads": "yes"}, workflows=[greet_late])
    assert (result.status, result.output) == ("completed", "ok"), result.error
    document = document_of(REGISTRY["led"])
    assert document["graphs"]["leads"]["nodes"]["leads"]["agent"]["tools"] == [
        {"graph": "finds"},
        {"function": "greet-late"},
        {"ask": "boss", "options": [{"id": "yes"}]},
    ]
    assert len(result.turns("finds")) == 2
