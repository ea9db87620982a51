"""What a document can say of a map, what the graph has of it, and what is known of its output."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.documents.compile import children_of, compile_document, notes_of
from baton.core.effects.keys import KeyRule
from baton.core.graph.graph import Graph, decode_graph, encode_graph
from baton.core.nodes.registry import KINDS
from tests.core.compiling import TOOLS, compiled, node, told
from tests.core.test_undo_declared import TOOLS as UNDONE
from tests.kit.sentences import Says


def test_the_node_is_a_map_and_what_is_done_for_each_is_a_node_of_its_own() -> None:
    found = node(
        "a",
        "a: {map: '${input}', tool: t, with: {x: '${item}'}, timeout: 5s, output_schema: true, when: input.go}",
    )
    assert (found.kind, found.arguments, found.tool, found.output_schema) == ("map", "${input}", "", None)
    assert found.each is not None
    do = found.each.do
    assert (do.kind, do.tool, do.arguments, do.timeout_ms, do.output_schema) == (
        "task",
        "t",
        {"x": "${item}"},
        5_000,
        True,
    )
    assert (do.when, found.when is None) == (None, False)
    assert (found.each.at_once, found.each.most, found.each.tells_all) == (40, 1_000, False)
    graph = compiled("a: {map: [1], tool: t}")
    assert decode_graph(encode_graph(graph), KINDS) == graph


@pytest.mark.parametrize(
    ("said", "need", "tolerated", "share", "rest"),
    [
        ("", 0, -1, -1, "cancel"),
        (", wait_for: any", 1, -1, -1, "cancel"),
        (", wait_for: 3, rest: run", 3, -1, -1, "beside"),
        (", tolerated_failures: 1, rest: run", 0, 1, -1, "run"),
        (", tolerated_failures: 0", 0, 0, -1, "cancel"),
        (', tolerated_failures: "10%"', 0, -1, 10, "cancel"),
    ],
)
def test_when_it_is_done_is_said_as_a_join_says_it(
    said: str, need: int, tolerated: int, share: int, rest: str
) -> None:
    each = node("a", f"a: {{map: {{over: '${{input}}', concurrency: 7{said}}}, value: 1}}").each
    assert each is not None
    assert (each.need, each.tolerated, each.share, each.rest, each.at_once) == (
        need,
        tolerated,
        share,
        rest,
        7,
    )


def test_there_may_be_more_children_than_items() -> None:
    each = node("a", "a: {map: '${input}', workflow: kid}").each
    assert each is not None
    assert each.most == 10_000
    assert children_of(compiled("a: {map: '${input}', workflow: kid}")) == ("kid",)


@pytest.mark.parametrize(
    ("over", "read", "problem"),
    [
        ("[1]", "ctx.a.output[0]", None),
        ("[1]", "ctx.a.output.x", "`ctx.a.output.x`: `x` of a list cannot be taken"),
        ("{over: [1], wait_for: any}", "ctx.a.output.results[0].status", None),
        ("{over: [1], wait_for: any}", "ctx.a.output.failed", None),
        (
            "{over: [1], wait_for: any}",
            "ctx.a.output.fails",
            "`ctx.a.output.fails`: nothing produces `fails`",
        ),
        (
            "{over: [1], wait_for: any}",
            "ctx.a.output[0]",
            "`ctx.a.output[0]`: `0` of an object cannot be taken",
        ),
    ],
)
def test_its_output_is_known(over: str, read: str, problem: str | None) -> None:
    said = told(f"a: {{map: {over}, value: {{n: 1}}}}, b: {{after: a, value: '${{{read}}}'}}")
    assert [message for _, message, _ in said] == ([problem] if problem else [])


def test_what_each_gives_is_known_where_its_tool_says_it() -> None:
    nodes = "a: {map: [1], tool: t}, b: {after: a, map: '${ctx.a.output}', value: '${item}'}, c: {after: a, value: '${ctx.a.output[0].score}'}"
    assert told(nodes) == []


def test_what_each_has_done_is_undone_as_its_tool_says() -> None:
    text = "name: w\nnodes: {a: {map: [1], tool: hold, with: {city: '${item}'}}}"
    graph: Graph = compile_document(text, UNDONE)
    (found,) = graph.nodes
    assert (found.has_reversible, found.undo) == (True, {})
    undo = found.inverse("hold", "3")
    assert undo is not None
    assert undo.step.tool == "cancel"
    assert found.inverse("other", "3") is None


def test_a_key_that_all_items_share_is_told(says: Says) -> None:
    keyed: dict[str, Any] = {"t": replace(TOOLS["t"], effect="idempotent", key=KeyRule(strategy="user"))}
    for given, is_told in (("1", True), ("'${item}'", False), ("'${index}'", False), ("'${input.x}'", True)):
        graph = compile_document(
            f"name: w\nnodes: {{a: {{map: [1, 2], tool: t, with: {{x: {given}}}}}}}", keyed
        )
        notes = notes_of(graph, keyed, invocation_ms=900_000)
        assert bool(notes) == is_told, given
        says(notes)
    keyed["t"] = replace(keyed["t"], key=KeyRule(strategy="saga"))
    graph = compile_document("name: w\nnodes: {a: {map: [1, 2], tool: t, with: {x: 1}}}", keyed)
    assert notes_of(graph, keyed, invocation_ms=900_000) == ()
