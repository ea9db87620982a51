"""One document, one graph: the bytes and the hash depend on what a document says, not on how it is spelt."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.core.documents.compile import compile_document
from baton.core.graph.graph import Graph, Node, decode_graph, encode_graph, hash_of
from baton.core.nodes.registry import KINDS
from baton.errors import UnknownEntry
from tests.core.build import FEW, TOOLS, child, program, task, tool_spec, wait
from tests.core.reference import Shape, shapes

DOCUMENT = """\
name: dinner
description: An evening out.
input: {type: object, properties: {city: {type: string}}}
nodes:
  search: {tool: t, description: Look., timeout: 5s}
  hold: {tool: table.hold, after: search, with: {x: 3}}
  pause: {wait: {for: 2m}, after: search}
  yes: {wait: {signal: approved, timeout: 1d}, after: [hold, pause]}
  ever: {wait: {signal: later}, after: [hold]}
  bar: {workflow: bar@2, after: [yes, ever], with: {city: "${input.city}"}}
output: {code: "${ctx.hold.output}"}
"""


def compiled(text: str) -> Graph:
    return compile_document(text, TOOLS)


def node(name: str) -> Node:
    return next(node for node in compiled(DOCUMENT).nodes if node.name == name)


def test_a_graph_has_what_its_document_says() -> None:
    graph = compiled(DOCUMENT)
    assert (graph.name, graph.output) == ("dinner", {"code": "${ctx.hold.output}"})
    assert graph.input_schema == {"type": "object", "properties": {"city": {"type": "string"}}}
    assert {node.name for node in graph.nodes} == {"search", "hold", "pause", "yes", "ever", "bar"}


def test_a_workflow_is_a_tool_with_its_own_text_where_its_document_says_so() -> None:
    offered = compiled(DOCUMENT.replace("name: dinner", "name: dinner\nmcp: true"))
    assert (compiled(DOCUMENT).mcp, offered.mcp) == (None, "An evening out.")
    assert decode_graph(encode_graph(offered), KINDS) == offered


def test_a_task_knows_its_tool_as_it_was_when_it_was_compiled() -> None:
    assert node("hold") == Node(
        name="hold", kind="task", before=("search",), after=("ever", "yes"), arguments={"x": 3}, tool="table.hold",
        tool_version="1", schema_hash=TOOLS["table.hold"].schema_hash, effect="pure", timeout_ms=60_000,
    )  # fmt: skip


def test_the_timeout_of_a_node_goes_before_that_of_its_tool() -> None:
    assert (node("search").timeout_ms, node("hold").timeout_ms) == (5_000, 60_000)


def test_a_wait_has_its_time_its_signal_or_both() -> None:
    assert (node("pause").wait_ms, node("pause").signal) == (120_000, "")
    assert (node("yes").wait_ms, node("yes").signal) == (86_400_000, "approved")
    assert (node("ever").wait_ms, node("ever").signal) == (None, "later")


def test_a_child_has_its_workflow_and_its_input() -> None:
    assert (node("bar").kind, node("bar").workflow, node("bar").arguments) == (
        "workflow", "bar@2", {"city": "${input.city}"},
    )  # fmt: skip


def test_an_edge_that_is_written_twice_is_one_edge() -> None:
    graph = compiled("name: w\nnodes: {a: {tool: t}, b: {tool: t, after: [a, a]}}")
    assert [(node.before, node.after) for node in graph.nodes] == [((), ("b",)), (("a",), ())]


def parameters(shape: Shape) -> dict[str, Any]:
    """One for each node, as its followers name them."""
    return {spot.name: {} for spot in shape.spots}


@given(shapes())
@FEW
def test_nodes_stand_in_a_topological_order_and_edges_have_two_ends(shape: Shape) -> None:
    tools = {"t": tool_spec("t", **parameters(shape))}
    nodes = compile_document(shape.text(), tools).nodes
    before = {spot.name: set(spot.before) for spot in shape.spots}
    seen: set[str] = set()
    for one in nodes:
        assert set(one.before) == before[one.name] <= seen
        assert set(one.after) == {name for name, befores in before.items() if one.name in befores}
        seen.add(one.name)
    assert seen == set(before)


def shuffled(data: st.DataObject, value: Any) -> Any:
    """The same JSON value with the keys of every object in some other order."""
    if isinstance(value, dict):
        return {key: shuffled(data, value[key]) for key in data.draw(st.permutations(list(value)))}
    return [shuffled(data, item) for item in value] if isinstance(value, list) else value


@given(shapes(), st.data())
@FEW
def test_the_order_of_keys_does_not_change_a_single_byte(shape: Shape, data: st.DataObject) -> None:
    tools = {"t": tool_spec("t", **parameters(shape))}
    document = json.loads(shape.text()) | {"input": {"type": "object", "properties": {"a": {}, "b": {}}}}
    other = shuffled(data, document)
    for one in other["nodes"].values():
        one["after"] = data.draw(st.permutations(one["after"]))
    graphs = [encode_graph(compile_document(json.dumps(one), tools)) for one in (document, other)]
    assert graphs[0] == graphs[1]
    assert hash_of(graphs[0]) == hash_of(graphs[1])


def test_json_and_yaml_of_one_document_are_one_graph() -> None:
    from baton.core.documents.text import parse_document

    as_json = json.dumps(parse_document(DOCUMENT).value, indent=1)
    assert encode_graph(compiled(as_json)) == encode_graph(compiled(DOCUMENT))


def test_descriptions_are_for_people_and_change_no_hash() -> None:
    assert encode_graph(compiled(DOCUMENT.replace("An evening out.", "x"))) == encode_graph(
        compiled(DOCUMENT)
    )


@pytest.mark.parametrize(
    ("old", "new"),
    [("x: 3", "x: 4"), ("timeout: 5s", "timeout: 6s"), ("for: 2m", "for: 3m"), ("approved", "denied"), ("@2", "@3"),
     ("[hold, pause]", "[hold]"), ("type: string", "type: integer"), ("{code:", "{key:"), ("name: dinner", "name: x")],
)  # fmt: skip
def test_whatever_a_saga_would_do_differently_changes_the_hash(old: str, new: str) -> None:
    assert DOCUMENT.count(old) == 1
    changed = encode_graph(compiled(DOCUMENT.replace(old, new)))
    assert hash_of(changed) != hash_of(encode_graph(compiled(DOCUMENT)))


def test_another_schema_of_a_tool_changes_the_hash() -> None:
    text = "name: w\nnodes: {a: {tool: t}}"
    one = compile_document(text, {"t": tool_spec("t", {"type": "string"})})
    other = compile_document(text, {"t": tool_spec("t", {"type": "integer"})})
    assert encode_graph(one) != encode_graph(other)


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b'{"name":"w","nodes":[{"name":"a","kind":"dream"}]}', id="a kind of node"),
        pytest.param(b'{"name":"w","nodes":[{"name":"a","kind":"task","mood":1}]}', id="a field of a node"),
        pytest.param(b'{"name":"w","nodes":[],"mood":1}', id="a field"),
        pytest.param(b'{"format":2,"name":"w","nodes":[]}', id="a format"),
        pytest.param(b'{"name":"w"', id="bytes"),
        pytest.param(b'{"name":"\xff","nodes":[]}', id="text"),
    ],
)
def test_a_graph_that_a_newer_version_compiled_is_refused_and_not_run_in_part(data: bytes) -> None:
    with pytest.raises(UnknownEntry):
        decode_graph(data, KINDS)


def test_the_hash_of_a_graph_is_that_of_its_bytes_and_has_not_changed() -> None:
    """A running saga finds its graph by this name."""
    assert hash_of(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    graph = program(
        task("a", arguments={"b": 1, "a": "${input}"}), wait("w", "a", ms=5), child("c", "w"), failures={}
    ).graph
    assert encode_graph(graph) == (
        b'{"name":"w","nodes":[{"name":"a","kind":"task","after":["w"],"arguments":{"a":"${input}","b":1},"tool":"t"},'
        b'{"name":"w","kind":"wait","before":["a"],"after":["c"],"wait_ms":5},'
        b'{"name":"c","kind":"workflow","before":["w"],"arguments":{},"workflow":"other"}]}'
    )


def test_a_stored_graph_of_every_kind_of_node_comes_back_as_it_was() -> None:
    assert decode_graph(encode_graph(compiled(DOCUMENT)), KINDS) == compiled(DOCUMENT)


@given(shapes())
@FEW
def test_a_stored_graph_comes_back_as_it_was(shape: Shape) -> None:
    tools = {"t": tool_spec("t", **parameters(shape))}
    graph = compile_document(shape.text(), tools)
    assert decode_graph(encode_graph(graph), KINDS) == graph
