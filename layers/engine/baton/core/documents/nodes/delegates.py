"""Syntax of the entries of an agent's `tools`: tools, and delegates: what else a model may call.

A delegate is a child saga (a workflow, a function, a graph of the document) or a question to a person. It is
a member of the agent as a call of a tool is; the kinds in core/nodes/ carry it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field, StringConstraints, model_validator

from baton.core.conditions.schemafaults import Schema as KnownSchema
from baton.core.documents.nodes.base import Words
from baton.core.documents.nodes.human import OptionModel
from baton.core.documents.parts.fields import (
    Duration,
    Given,
    Model,
    NodeName,
    Reads,
    WorkflowReference,
    no_text_of_many,
    refuse,
)
from baton.core.documents.parts.node import CallbackModel, Schema
from baton.core.documents.parts.people import Audience, Text
from baton.core.effects.toolspec import ToolSpec
from baton.core.expressions import expressions_in, nearest
from baton.core.failures.failover import matches_patterns
from baton.core.graph.graph import WORKFLOW_NAME, Asks, CallbackTimes, Node, inner_name
from baton.core.limits import DAY_MS
from baton.core.log.questions import DECISION, INPUT
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.nodes.base import Compiler

KINDS = ("tool", "workflow", "graph", "function", "ask")
_CHILDREN = ("workflow", "graph", "function")
_GOES: Mapping[str, tuple[str, ...]] = {
    "description": (*_CHILDREN, "ask"),
    "timeout": _CHILDREN,
    "callback": ("tool",),
    **dict.fromkeys(("to", "expires", "options", "schema"), ("ask",)),
}
MOST_TITLE = 500
ANY_INPUT: Mapping[str, Any] = {"type": "object"}
QUESTION: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "title": {
            "type": "string",
            "minLength": 1,
            "maxLength": MOST_TITLE,
            "description": "The question in a line.",
        },
        "message": {"type": "string", "description": "Information that the person needs to answer."},
    },
    "required": ["title"],
    "additionalProperties": False,
}
ANSWER: Mapping[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "minLength": 1}},
    "required": ["answer"],
    "additionalProperties": False,
}


class CallModel(Model):
    """One entry of an agent's `tools`: a tool, or what else the model may call as one."""

    short: ClassVar[str] = "tool"

    tool: Annotated[str | None, Given] = Field(
        default=None, description="A tool; `*` stands for any text.", examples=["table.*"]
    )
    workflow: Annotated[WorkflowReference | None, Given] = Field(
        default=None,
        description="A registered workflow: `NAME`, `NAME@VERSION` or `NAME@TAG`. A call starts a child saga.",
    )
    graph: Annotated[NodeName | None, Given] = Field(
        default=None, description="A graph of the document, with its `input`. A call starts a child saga."
    )
    function: Annotated[Annotated[str, StringConstraints(pattern=WORKFLOW_NAME)] | None, Given] = Field(
        default=None, description="A Python function under `@workflow`. A call starts a child saga."
    )
    ask: Annotated[NodeName | None, Given] = Field(
        default=None, description="The name of questions to people. The model says title and message."
    )
    description: Annotated[Text | None, Given] = Field(
        default=None, description="The text that tells the model when to call it."
    )
    timeout: Annotated[Duration | None, Given] = Field(
        default=None, description="Longest time of the child saga; then it is cancelled and undone."
    )
    callback: Annotated[CallbackModel | None, Given] = Field(
        default=None, description="The tool hands its work over, and the call waits for the report."
    )
    to: Audience = Field(
        default=None, description="Audience of the questions besides operators; without it, the starter."
    )
    expires: Duration = Field(
        default=DAY_MS,
        description="Time until a question expires; without it, 24 hours.",
        json_schema_extra={"default": "24h"},
    )
    options: Annotated[list[OptionModel] | None, Given] = Field(
        default=None, description="The answers to choose from; without them, the answer is a text."
    )
    schema_: Annotated[Schema | None, Given] = Field(
        default=None, alias="schema", description="JSON Schema of the answer, in place of a text."
    )

    @model_validator(mode="after")
    def _one(self) -> CallModel:
        given = {"schema" if name == "schema_" else name for name in self.model_fields_set}
        kinds = [kind for kind in KINDS if kind in given]
        if len(kinds) != 1:
            raise refuse(f"write exactly one of {', '.join(f'`{kind}`' for kind in KINDS)}")
        for name, kinds_of in _GOES.items():
            if name in given and kinds[0] not in kinds_of:
                known = " and ".join(f"`{kind}`" for kind in kinds_of)
                raise refuse(f"`{name}` goes with {known}, and not with `{kinds[0]}`")
        if {"options", "schema"} <= given:
            raise refuse("an answer is one of the `options`, or has a `schema`", "leave out one of the two")
        return self

    @property
    def name(self) -> str:
        """The name under which a model calls a delegate; empty for tools."""
        return (self.workflow or "").partition("@")[0] or self.graph or self.function or self.ask or ""

    @property
    def reference(self) -> str:
        """The workflow that a call starts, or the name of a graph; else empty."""
        return self.workflow or self.function or (inner_name("", self.graph) if self.graph else "")


WORDS = Words(
    keys={
        "tool": "name",
        "workflow": "saga child_workflow sub_workflow pipeline",
        "graph": "subgraph",
        "function": "python",
        "ask": "human question person approval user_input human_in_the_loop",
        "description": "when prompt doc",
        "callback": "hand_over wait",
        "to": "audience assignee group user role",
        "expires": "expires_in deadline ttl",
        "options": "choices",
        "schema": "output_schema form fields",
    },
    said={
        "agent delegate handoff sub_agent": (
            "another agent is a graph with an `agent` node: write `graph: NAME`, and the graph under `graphs`"
        ),
        "operation api openapi": "list operations of APIs under `operations`, and write `std.openapi` here",
        "requires_approval": "write it under `agent.requires_approval`, by the name of the call",
    },
)


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, (str, dict)) else value


def _each_once(value: Any) -> Any:
    seen = list[Any]()
    for one in value if isinstance(value, list) else ():
        if one in seen:
            raise refuse(f"`{one if isinstance(one, str) else 'this'}` is there twice"[:80])
        seen.append(one)
    return value


Calls = Annotated[
    list[CallModel],
    BeforeValidator(_each_once),
    BeforeValidator(no_text_of_many),
    Reads(_one_or_many, lambda made: {"anyOf": [made["items"], {**made, "uniqueItems": True}]}),
]


def patterns_of(calls: Sequence[CallModel]) -> list[str]:
    """Return the patterns of tools."""
    return [one.tool for one in calls if one.tool is not None]


def handing_over(calls: Sequence[CallModel], tool: str) -> Iterator[CallbackTimes]:
    """Yield the times of the entries by which a tool hands its work over."""
    for one in calls:
        if one.callback is not None and one.tool is not None and matches_patterns(tool, (one.tool,)):
            yield CallbackTimes(timeout_ms=one.callback.timeout, heartbeat_ms=one.callback.heartbeat or 0)


def tool_problems(compiler: Compiler, place: str, calls: Sequence[CallModel]) -> Iterator[Problem]:
    """Yield the problems of the tools that the entries name, and of those that hand their work over."""
    for index, one in enumerate(calls):
        if one.tool is None:
            continue
        yield from (
            Problem(f"{place}/{index}", found.message, found.suggestion)
            for found in compiler.allows(place, [one.tool])
        )
        if one.callback is not None:
            for spec in compiler.matching([one.tool]):
                if not spec.sees_key:
                    message = (
                        f"`{spec.name}` takes no `Context`, so it cannot hand over the token of a callback"
                    )
                    hint = "give its function a parameter `context: Context`"
                    yield Problem(f"{place}/{index}/callback", message, hint)


def delegate_problems(
    compiler: Compiler, place: str, calls: Sequence[CallModel], taken: Mapping[str, Any]
) -> Iterator[Problem]:
    """Yield the problems of delegates. `taken`: the names of the agent's other calls."""
    names = {*taken}
    for index, one in enumerate(calls):
        if not one.name:
            continue
        at = f"{place}/{index}"
        if one.name in names:
            yield Problem(at, f"two calls of the agent have the name `{one.name}`", "rename one of them")
        names.add(one.name)
        yield from _existing(compiler, at, one)
        for key, value in (("to", one.to), ("options", one.options)):
            written = (
                [item.model_dump() for item in value]
                if isinstance(value, list)
                else value and value.model_dump()
            )
            if any(True for _ in expressions_in(written)):
                yield Problem(
                    f"{at}/{key}", "an entry of `tools` has no expressions", "write the value itself"
                )
        if one.schema_ is not None:
            yield from compiler.schema(f"{at}/schema", one.schema_)


def _existing(compiler: Compiler, at: str, one: CallModel) -> Iterator[Problem]:
    """Yield the problem of a child that does not exist, or whose input a model cannot know."""
    if one.graph is not None:
        if inner_name("", one.graph) not in compiler.children:
            yield from compiler.no_such_graph(f"{at}/graph", one.graph)
        elif not isinstance(known := compiler.children[inner_name("", one.graph)], dict):
            message = f"the graph `{one.graph}` has no `input`, so the model cannot know what it takes"
            yield Problem(f"{at}/graph", message, "write `input: {type: object, properties: …}` in the graph")
        elif KnownSchema(known, known).resolved().types() != {"object"}:
            yield Problem(
                f"{at}/graph", f"the `input` of `{one.graph}` is no object", "arguments of calls are objects"
            )
    elif one.function is not None:
        spec = compiler.tools.get(one.function)
        if spec is None or spec.calls is None:
            known_names = [name for name, tool in compiler.tools.items() if tool.calls is not None]
            hint = nearest(one.function, known_names) or "write `@workflow` above an `async` function"
            yield Problem(f"{at}/function", f"there is no function `{one.function}`", hint)
    elif one.workflow is not None:
        if inner_name("", one.workflow) in compiler.children:
            message = f"`{one.workflow}` is a graph of this document"
            yield Problem(f"{at}/workflow", message, f"write `graph: {one.workflow}`")
        elif one.name == compiler.workflow:
            message = "its sagas could start each other without end"
            yield Problem(f"{at}/workflow", message, "name another workflow")


def delegate_nodes(compiler: Compiler, name: str, calls: Sequence[CallModel], *, stays: bool) -> list[Node]:
    """Return the nodes of an agent's delegates; `stays`: no effect of them is undone."""
    return [_node(compiler, name, one, stays=stays) for one in calls if one.name]


def _node(compiler: Compiler, name: str, one: CallModel, *, stays: bool) -> Node:
    common: dict[str, Any] = {"name": name, "tool": one.name}
    if one.ask is None:
        graph = inner_name(compiler.workflow, one.graph) if one.graph else ""
        child: dict[str, Any] = {
            "workflow": graph or one.reference,
            "timeout_ms": one.timeout or 0,
            "stays": stays,
        }
        return Node(kind="subgraph" if graph else "workflow", **child, **common)
    says: dict[str, Any] = {"to": {} if one.to is None else one.to.model_dump(exclude_unset=True)}
    if one.options:
        says["options"] = [option.model_dump(exclude_unset=True) for option in one.options]
    schema = None if one.options else one.schema_ or ANSWER
    asks = Asks(type=DECISION if one.options else INPUT, says=says, schema=schema, expires_ms=one.expires)
    return Node(kind="human", asks=asks, **common)


def delegate_offers(compiler: Compiler, calls: Sequence[CallModel]) -> dict[str, dict[str, Any]]:
    """Return the descriptions and parameters of delegates for a model, by name.

    The parameters of a workflow are those of its newest version when the model is asked.
    """
    return {one.name: _offer(compiler, one) for one in calls if one.name}


def _offer(compiler: Compiler, one: CallModel) -> dict[str, Any]:
    if one.ask is not None:
        who = f"the group {one.to.group}" if one.to is not None and one.to.group else "a person"
        return {
            "description": one.description or f"Asks {who}, and waits for the answer.",
            "parameters": QUESTION,
        }
    spec: ToolSpec | None = compiler.tools.get(one.function or "")
    about = one.description or (spec.description if spec is not None else "")
    parameters = compiler.children.get(one.reference) if one.graph else spec.parameters if spec else None
    what = "graph" if one.graph else "function" if one.function else "workflow"
    text = about or f"Runs the {what} `{one.name}`, and gives its result."
    return {"description": text, "parameters": parameters or ANY_INPUT}
