"""Calls of agents besides tools, as documents write them, and each mistake at its place."""

from __future__ import annotations

from typing import Any

import pytest

from baton import Context, WorkflowContext, tool, workflow
from baton.core.decide.program import Program
from baton.core.documents.compile import children_of, compile_document, notes_of
from baton.core.graph.graph import Graph
from baton.core.nodes.registry import KINDS
from baton.errors import InvalidDefinition
from baton.tools.define import Registry
from baton.tools.standard.openapi import Listed

REGISTRY = Registry()


@tool("note", registry=REGISTRY)
def note(text: str) -> str:
    return text


@tool("ship", registry=REGISTRY)
async def ship(what: str, context: Context) -> None:
    return None


@workflow("greet", registry=REGISTRY)
async def greet(name: str, context: WorkflowContext) -> str:
    """Greets a guest."""
    return name


DOCUMENT = """
name: w
nodes:
  before: {value: 1}
  lead: {agent: {model: m, prompt: p, tools: TOOLS}, after: before}
output: "${ctx.lead.output}"
graphs:
  scout:
    input: {type: object, required: [topic], properties: {topic: {type: string}}}
    nodes: {find: {agent: {model: m, prompt: "Scout ${input.topic}.", tools: [note]}}}
    output: "${ctx.find.output}"
"""


def compiled(tools: str, document: str = DOCUMENT) -> Graph:
    return compile_document(document.replace("TOOLS", tools), REGISTRY.specs())


def agent_of(graph: Graph) -> Any:
    return next(node.agent for node in graph.nodes if node.agent is not None)


def test_each_entry_becomes_a_call_with_a_schema_from_its_input() -> None:
    tools = "[note, {graph: scout}, {workflow: other@2, timeout: 1h}, {function: greet}, {ask: boss}, {tool: ship, callback: 1d}]"
    graph = compiled(tools)
    calls = {call.tool: call for call in agent_of(graph).calls}
    assert {name: call.kind for name, call in calls.items()} == {
        "note": "agent",
        "ship": "agent",
        "scout": "subgraph",
        "other": "workflow",
        "greet": "workflow",
        "boss": "human",
    }
    assert calls["scout"].workflow == "w.scout"
    assert (calls["other"].workflow, calls["other"].timeout_ms) == ("other@2", 3_600_000)
    assert calls["ship"].callback.timeout_ms == 86_400_000
    arguments = agent_of(graph).turn.arguments
    assert (arguments["tools"], arguments["workflows"]) == (["note", "ship"], {"other": "other@2"})
    offers = arguments["offers"]
    assert offers["scout"]["parameters"]["required"] == ["topic"]
    assert (offers["greet"]["description"], offers["greet"]["parameters"]["required"]) == (
        "Greets a guest.",
        ["name"],
    )
    assert offers["boss"]["parameters"]["additionalProperties"] is False
    assert children_of(graph) == ("other@2", "greet")
    (note,) = notes_of(graph, REGISTRY.specs(), invocation_ms=60_000, unknown={"other@2": "gone"})
    assert ("`lead`" in note, note.endswith("gone")) == (True, True)


def test_a_person_who_is_asked_has_the_answers_of_the_entry() -> None:
    graph = compiled("[{ask: boss, options: [{id: buy}, {id: sell}]}]")
    (call,) = agent_of(graph).calls
    assert [one["id"] for one in call.asks.says["options"]] == ["buy", "sell"]
    assert call.asks.schema is None


@pytest.mark.parametrize(
    ("tools", "place", "says"),
    [
        ("[{graph: scot}]", "/0/graph", "did you mean `scout`?"),
        ("[{function: gret}]", "/0/function", "greet"),
        ("[{function: note}]", "/0/function", "no function"),
        ("[{workflow: scout}]", "/0/workflow", "write `graph: scout`"),
        ("[{workflow: w}]", "/0/workflow", "without end"),
        ("[note, {ask: note}]", "/1", "two calls"),
        ("[{ask: boss}, {graph: scout}, {workflow: boss}]", "/2", "two calls"),
        ("[{agent: scout}]", "/0/agent", "write `graph: NAME`"),
        ("[{human: boss}]", "/0/human", "did you mean `ask`?"),
        ("[{question: boss}]", "/0/question", "did you mean `ask`?"),
        ("[{graph: scout, to: {group: x}}]", "/0", "`to` goes with `ask`"),
        ("[{ask: boss, callback: 1d}]", "/0", "`callback` goes with `tool`"),
        ("[{graph: scout, ask: boss}]", "/0", "exactly one"),
        ("[{ask: boss, options: [{id: a}], schema: {type: object}}]", "/0", "`options`"),
        ("[{ask: boss, options: [{id: a}], to: starter}, {graph: scot}]", "/1/graph", "scout"),
        ("[{ask: boss, schema: {type: objct}}]", "/0/schema/type", "objct"),
        ("[{ask: boss, to: {user: '${input.x}'}}]", "/0/to", "no expressions"),
        ("[{tool: note, callback: 1d}]", "/0/callback", "takes no `Context`"),
        ("[{tool: nte}]", "/0", "there is no tool `nte`"),
        ("[note, 'nte']", "/1", "there is no tool `nte`"),
        ("[note, note]", "", "twice"),
        ("['note, ship']", "", "[note, ship]"),
    ],
)
def test_a_mistake_is_told_at_its_place(tools: str, place: str, says: str) -> None:
    with pytest.raises(InvalidDefinition) as caught:
        compiled(tools)
    found = {one.path: f"{one.message} {one.suggestion}" for one in caught.value.problems}
    assert says in found[f"/nodes/lead/agent/tools{place}"], found


@pytest.mark.parametrize(
    ("old", "new", "path", "says"),
    [
        ("Scout ${input.topic}", "Scout ${ctx.before.output}", "/nodes/lead/agent/tools/0", "ctx.before"),
        ("Scout ${input.topic}", "Scout ${last_error.code}", "/nodes/lead/agent/tools/0", "last_error"),
        ("tools: [note]", "tools: [{graph: scout}]", "/graphs/scout/nodes/find/agent/tools/0", "without end"),
        ("    input: {type: object,", "    output_schema_: {type: object,", "/nodes/lead/agent/tools/0/graph", "no `input`"),
        ("input: {type: object, required: [topic], properties: {topic: {type: string}}}", "input: {type: string}",
         "/nodes/lead/agent/tools/0/graph", "no object"),
        ("tools: [{graph: scout}]", "requires_approval: {scout: true}, tools: [{graph: scout}]",
         "/nodes/lead/agent/requires_approval/scout", "is no tool"),
    ],
)  # fmt: skip
def test_a_graph_that_an_agent_calls_has_its_input_alone(old: str, new: str, path: str, says: str) -> None:
    document = DOCUMENT.replace("TOOLS", "[{graph: scout}]")
    assert old in document
    with pytest.raises(InvalidDefinition) as caught:
        compile_document(document.replace(old, new, 1), REGISTRY.specs())
    found = {one.path: f"{one.message} {one.suggestion}" for one in caught.value.problems}
    assert says in found[path], found


@tool("std.openapi", registry=REGISTRY)
async def openapi(api: str, operation: str, operations: Listed = None) -> str:
    return operation


@tool("sign", registry=REGISTRY, requires_approval=True)
def sign() -> int:
    return 1


APPROVALS = "[note, sign, std.openapi], operations: {shop: [get, refund]}, requires_approval: "


def test_operations_are_calls_of_their_own_and_approvals_are_by_the_name_of_the_call() -> None:
    graph = compiled(
        APPROVALS + "{'shop:refund': {to: {group: bosses}, title: 'Of ${input.user}?'}, note: true}"
    )
    parts = agent_of(graph)
    assert [*parts.operations] == ["shop:get", "shop:refund"]
    assert parts.operations["shop:get"].approval is None
    assert parts.operations["shop:refund"].arguments == {
        "api": "shop", "operation": "refund", "operations": {"shop": ["refund"]}
    }  # fmt: skip
    assert parts.approvals == {"shop:refund": {"title": "Of ${input.user}?", "to": {"group": "bosses"}}}
    assert sorted(Program(graph, KINDS).approvals) == ["lead"]


@pytest.mark.parametrize("approvals", ["{shop:gt: true}", "{'std.openapi': true}", "{sign: false}"])
def test_an_approval_of_no_call_or_looser_than_the_tool_is_refused(approvals: str) -> None:
    with pytest.raises(InvalidDefinition) as caught:
        compiled(APPROVALS + approvals)
    (problem,) = caught.value.problems
    assert problem.path.startswith("/nodes/lead/agent/requires_approval/")
