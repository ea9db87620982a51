"""@workflow: what a function says of itself, and the steps that its code names."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import partial
from typing import Any, NamedTuple

import pytest
from typing_extensions import TypedDict

from baton import WorkflowContext, tool, workflow
from baton.core.documents.compile import compile_document
from baton.testing import run
from baton.tools.define import Registry, ToolError
from baton.tools.functions import ApplicationFunctions
from baton.tools.functions.define import document_of, workflow_documents
from tests.kit.sentences import Says
from tests.tools import some_steps


def add(a: int, b: int) -> int:
    return a + b


async def double(a: int) -> int:
    return 2 * a


def untyped(a):  # type: ignore[no-untyped-def]  # the mistake of the test
    return a


async def _helps(context: WorkflowContext) -> int:
    return await context.step(double, 1)


def registry_of(*tools: str) -> Registry:
    registry = Registry()
    for name in tools:

        @tool(name, registry=registry)
        def declared(n: int) -> int:
            return n

    return registry


def calls_of(registry: Registry, name: str = "flow") -> tuple[str, ...]:
    calls = registry[name].spec.calls
    assert calls is not None
    return calls


@pytest.mark.parametrize("policy", ["ask_user", "escalate", {"permanent": ["ask_user"]}])
def test_it_asks_a_person_itself_and_not_by_its_policy(policy: Any, says: Says) -> None:
    with pytest.raises(ToolError) as error:

        @workflow("flow", registry=Registry(), on_failure=policy)
        async def flow(n: int) -> int:
            return n

    says(str(error.value).partition("; ")[0])


def test_its_document_has_one_node() -> None:
    registry = Registry()

    @workflow("flow", registry=registry, timeout="2d", on_failure="fail")
    async def flow(n: int, context: WorkflowContext) -> int:
        """Count.

        And more.
        """
        return n

    (document,) = workflow_documents(registry)
    assert document == document_of(registry["flow"])
    assert document["nodes"] == {"flow": {"function": "flow"}}
    assert (document["description"], document["timeout"], document["on_failure"]) == ("Count.", "2d", "fail")
    assert list(document["input"]["properties"]) == ["n"]


def test_ordinary_functions_of_a_module_are_steps() -> None:
    registry = Registry()

    @workflow("flow", registry=registry)
    async def flow(context: WorkflowContext) -> int:
        async def inner() -> int:
            return await context.step(some_steps.triple, 1)

        return await context.step(add, 1, 2) + await _helps(context) + await inner()

    names = ("tests.tools.some_steps.triple", "tests.tools.test_workflow_functions.add")
    assert calls_of(registry) == (*names, "tests.tools.test_workflow_functions.double")
    assert registry[names[1]].spec.effect == "idempotent"


def test_a_tool_is_known_by_its_function_and_by_its_name() -> None:
    registry = registry_of("by.name", "left.out")

    @tool("by.function", registry=registry)
    def one(n: int) -> int:
        return n

    @workflow("flow", registry=registry)
    async def flow(context: WorkflowContext) -> int:
        return int(await context.step(one, 1) + await context.step("by.name", 1))

    assert calls_of(registry) == ("by.function", "by.name")


def test_tools_out_of_a_table_are_said() -> None:
    registry = Registry()

    @tool("out.of_a_table", registry=registry)
    def one(n: int) -> int:
        return n

    table: dict[str, Callable[..., int]] = {"one": one}

    @workflow("flow", registry=registry, tools=[one])
    async def flow(which: str, context: WorkflowContext) -> int:
        return await context.step(table[which], 1)

    assert calls_of(registry) == ("out.of_a_table",)


def _declared(name: Any, function: Any, **options: Any) -> Registry:
    registry = Registry()
    workflow(name, registry=registry, **options)(function)
    registry.complete()
    return registry


async def _with_untyped(context: WorkflowContext) -> int:
    return int(await context.step(untyped, 1))


async def _flow(context: WorkflowContext) -> int:
    return 1


@pytest.mark.parametrize(
    ("name", "function", "options", "says"),
    [
        ("Order.Fulfil", _flow, {}, "write `order-fulfil`"),
        ("flow", add, {}, "write `async def add`"),
        ("flow", _with_untyped, {}, "parameter `a` has no type hint"),
        ("flow", _flow, {"tools": [add]}, "`add` is no tool"),
    ],
)
def test_a_mistake_says_what_would_be_right(name: str, function: Any, options: Any, says: str) -> None:
    with pytest.raises(ToolError, match=r"flow|Order") as error:
        _declared(name, function, **options)
    assert says in str(error.value)


def _release(*, is_newer: bool) -> Registry:
    """An application before and after its function names a further tool."""
    registry = Registry()

    @tool("a.one", registry=registry)
    async def one(n: int) -> int:
        return n

    @tool("a.two", registry=registry, undo="a.one")
    async def two(n: int) -> int:
        return n

    async def flow(context: WorkflowContext) -> int:
        return await context.step(one, 1)

    async def newer(context: WorkflowContext) -> int:
        return await context.step(one, 1) + await context.step(two, 2)

    newer.__name__ = "flow"
    workflow("flow", registry=registry)(newer if is_newer else flow)
    return registry


def test_a_running_saga_may_call_the_tools_that_newer_code_names() -> None:
    older, newer = _release(is_newer=False), _release(is_newer=True)
    graph = compile_document(json.dumps(document_of(older["flow"])), older.specs())
    assert ApplicationFunctions(older).complete(graph) is graph
    (node,) = ApplicationFunctions(newer).complete(graph).nodes
    assert node.function is not None
    assert [(call.tool, list(call.undo)) for call in node.function.calls] == [
        ("a.one", []),
        ("a.two", ["a.two"]),
    ]


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Card:
    number: str
    colour: Colour


@dataclass
class Cash:
    amount: Decimal


class Options(TypedDict, total=False):
    note: str


class Point(NamedTuple):
    x: int
    y: int


async def pay(how: Card | Cash, options: Options) -> Card | Cash:
    assert isinstance(how, Card | Cash)
    return how


def move(point: Point, colours: set[Colour]) -> Point | None:
    return Point(point.y, point.x) if colours else None


def test_values_of_steps_and_functions_have_the_types_of_their_hints() -> None:
    registry = Registry()

    @workflow("typed", registry=registry)
    async def typed(
        card: Card, how: Card | Cash, colour: Colour, context: WorkflowContext
    ) -> list[Card | Cash]:
        assert (colour, card.colour) == (Colour.BLUE, Colour.RED)
        assert isinstance(how, Cash)
        point = await context.step(move, Point(1, 2), {colour})
        assert isinstance(point, Point)
        assert await context.step(move, point, set()) is None
        return [await context.step(pay, one, {"note": "soon"}) for one in (card, how)]

    given = {"card": {"number": "1", "colour": "red"}, "how": {"amount": "1.5"}, "colour": "blue"}
    result = run(typed, given, tools=registry, kills={"pay": "after"})
    assert result.output == [given["card"], given["how"]]


class Session:
    async def pay(self, amount: int) -> int:
        return amount


def with_session(amount: int, session: Session) -> int:
    return amount


def with_any(**amounts: int) -> int:
    return 1


def without_hint(amount: int):  # type: ignore[no-untyped-def]  # the mistake of the test
    return amount


@pytest.mark.parametrize("step", [with_session, with_any, without_hint])
def test_a_step_that_no_log_can_hold_is_refused_with_its_place(step: Any, says: Says) -> None:
    registry = Registry()

    @workflow("flow", registry=registry)
    async def flow(context: WorkflowContext) -> int:
        return int(await context.step(step, 1))

    with says.raised(ToolError):
        calls_of(registry)


@pytest.mark.parametrize("step", [partial(add, 1), Session().pay, None])
def test_what_is_no_function_of_a_module_is_no_step(step: Any, says: Says) -> None:
    registry = Registry()

    @workflow("flow", registry=registry)
    async def flow(context: WorkflowContext) -> int:
        return int(await context.step(step or (lambda a: a), 1))

    result = run(flow, tools=registry)
    assert result.status == "parked"
    says(str(result.error))
