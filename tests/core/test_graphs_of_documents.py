"""Named graphs: what becomes of them in the graph of their document, what they see, and what is told of those who hide it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.decide.context import EvaluationContext, FetchedValues, LackingError, started
from baton.core.decide.decision import DecisionBuilder, StartHandler, activation
from baton.core.decide.program import Program
from baton.core.documents.compile import children_of, compile_document
from baton.core.documents.nodes.child import SubGraph
from baton.core.expressions import compile_template, parse
from baton.core.graph.graph import (
    Graph,
    decode_graph,
    encode_graph,
    graph_name,
    hash_of,
    inner_graph,
    split,
    split_hash,
    starter_of,
)
from baton.core.log import events as ev
from baton.core.log.folding.fold import fold
from baton.core.log.state import Origin, State
from baton.core.log.undos import UndoBegan
from baton.core.nodes.registry import KINDS
from baton.core.nodes.subgraph import GraphKind
from baton.errors import UnknownEntry
from tests.core.build import Saga, problems_of, tool_spec

TOOLS = {"t": tool_spec("t", {}, x={}), "u": tool_spec("u")}


def of(text: str) -> Graph:
    return compile_document(f"name: w\n{text}", TOOLS)


def body(graph: Graph, name: str) -> Any:
    node = next(one for one in graph.nodes if one.name == name)
    return (node if node.each is None else node.each.do).arguments


def test_it_is_a_part_of_the_graph_and_is_started_with_what_it_names() -> None:
    graph = of(
        """
guardrails: {allowed_tools: [t]}
nodes:
  a: {value: 1}
  b: {map: "${input}", graph: g, after: a}
  c: {graph: h, with: {n: 1}, after: b}
graphs:
  g: {nodes: {x: {tool: t, with: {x: ["${item}", "${ctx.a.output?}", "${last_error.code}"]}}, y: {graph: k}}}
  k: {nodes: {z: {value: "${ctx.a.output}"}}}
  h: {nodes: {z: {value: ["${ctx.b.output}", "${ctx.a.output}"], when: "has(ctx.b.output)"}}, output: 1}
"""
    )
    assert [(name, one.name) for name, one in graph.graphs.items()] == [
        ("g", "w.g"),
        ("k", "w.k"),
        ("h", "w.h"),
    ]
    assert decode_graph(encode_graph(graph), KINDS) == graph
    assert children_of(graph) == ()
    seen = {
        "item": "${item}",
        "last_error": "${last_error}",
        "ctx": {"a": "${ctx.a.output}"},
    }
    assert body(graph, "b") == {"input": "${input}", "outer": seen}
    assert body(graph, "c") == {
        "input": {"n": 1},
        "outer": {"ctx": {"a": "${ctx.a.output}", "b": "${ctx.b.output?}"}},
    }


def test_a_graph_that_names_nothing_gets_its_input_alone() -> None:
    graph = of("nodes: {a: {graph: g}, b: {graph: g, input: 5}}\ngraphs: {g: {nodes: {x: {tool: t}}}}")
    assert (body(graph, "a"), body(graph, "b")) == ({"input": "${input}"}, {"input": 5})


def test_a_document_without_graphs_has_the_bytes_that_it_had() -> None:
    assert hash_of(encode_graph(of("nodes: {a: {tool: t}}"))) == hash_of(
        encode_graph(replace(of("nodes: {a: {tool: t}}\ngraphs: {}"), graphs={}))
    )
    assert b"graphs" not in encode_graph(of("nodes: {a: {tool: t}}"))


def test_a_kind_that_is_not_known_is_found_in_a_graph_too() -> None:
    data = encode_graph(of("nodes: {a: {graph: g}}\ngraphs: {g: {nodes: {x: {tool: t}}}}"))
    with pytest.raises(UnknownEntry, match="unknown kinds"):
        decode_graph(data, KINDS.keys() - {"task"})


def test_an_agent_with_a_map_gets_a_name_that_no_graph_has() -> None:
    graph = of(
        """
nodes:
  a: {value: 1}
  ask: {map: [1], agent: {model: m, prompt: "${ctx.a.output}"}, after: a}
  g: {graph: ask}
graphs: {ask: {nodes: {n: {map: [1], agent: {model: m, prompt: "${ctx.o.output}"}, after: o}, o: {value: 1}}}}
"""
    )
    assert sorted(graph.graphs) == ["ask", "ask_", "n"]
    assert body(graph, "ask") == {"input": "${input}", "outer": {"ctx": {"a": "${ctx.a.output}"}}}
    assert body(graph.graphs["ask"], "n") == {"input": "${input}", "outer": {"ctx": {"o": "${ctx.o.output}"}}}


def test_a_failure_handler_is_started_with_what_its_graph_names() -> None:
    graph = of(
        """
failure_handler: {graph: g}
nodes: {a: {tool: t}, b: {value: "${ctx.a.output}", after: a}}
graphs: {g: {nodes: {x: {tool: t, with: {x: ["${ctx.a.output?}", "${last_error.code}", "${input.n}"]}}}}}
"""
    )
    assert graph.handler is not None
    outer = {"last_error": "${last_error}", "ctx": {"a": "${ctx.a.output?}"}}
    assert (graph.handler.workflow, graph.handler.arguments) == ("w.g", {"input": "${input}", "outer": outer})
    program = Program(graph, KINDS)
    assert program.for_handler == {"a"}
    assert program.is_needed("a", 0)


def test_a_handler_that_is_given_fields_names_them_as_its_input() -> None:
    graph = of(
        "failure_handler: {graph: g, with: {n: 1}}\nnodes: {a: {tool: t}}\n"
        "graphs: {g: {nodes: {x: {value: '${input.n}'}}}}"
    )
    assert graph.handler is not None
    assert graph.handler.arguments == {"input": {"n": 1}}


def test_rules_of_the_document_may_be_about_what_a_graph_alone_does() -> None:
    graph = of(
        """
on_failure: {any: {may_change: [x]}}
nodes: {a: {graph: g}, b: {tool: u}}
graphs: {g: {nodes: {x: {tool: t}}}}
"""
    )
    assert graph.graphs["g"].failures["any"].may_change == ("x",)
    refused = problems_of("name: w\non_failure: {any: {may_change: [x]}}\nnodes: {b: {tool: u}}", TOOLS)
    assert [one.path for one in refused] == ["/on_failure/any/may_change/0"]


# ---- what it sees ----------------------------------------------------------------------------------------------------------

INNER = of(
    """
nodes: {a: {value: 1}, b: {map: [1], graph: g, after: a}}
graphs: {g: {nodes: {x: {value: "${item}"}, y: {map: ["${item}"], tool: t, with: {x: "${item}"}, after: x}}}}
"""
).graphs["g"]
PROGRAM = Program(INNER, KINDS)


def seen(text: str, outer: ev.Value, **more: Any) -> Any:
    state = State(origin=Origin(outer=outer))
    context = EvaluationContext(PROGRAM, state, more.pop("found", FetchedValues()), **more)
    return context.render(compile_template(text))


def test_it_names_what_its_starter_had() -> None:
    outer = ev.Value(v={"item": {"n": 1}, "index": 3, "ctx": {"a": "given"}, "last_error": {"code": "c"}})
    assert seen("${item.n}", outer, slot="x") == 1
    assert seen("${index}", outer, slot="x") == 3
    assert seen("${ctx.a.output}", outer, slot="x") == "given"
    assert seen("${last_error.code}", outer) == "c"
    assert seen("${last_error.code}", outer, failure=ev.Failure("own", "", "x")) == "own"


def test_what_its_starter_had_is_fetched_where_it_is_large() -> None:
    outer = ev.Value(ref="cas://sha256/0", size=9)
    with pytest.raises(LackingError) as lacking:
        seen("${item}", outer)
    assert lacking.value.needs == {"cas://sha256/0"}
    assert seen("${item}", outer, found=FetchedValues(blobs={"cas://sha256/0": {"item": 2}})) == 2


def test_the_batch_result_of_a_failure_is_made_where_a_graph_may_ask_for_it() -> None:
    asks = '{nodes: {x: {value: "${last_error.%s}"}}}'
    caught = "nodes: {a: {tool: t, catch: b}, b: {graph: g}}\ngraphs: {g: " + asks % "code" + "}"
    handled = "failure_handler: {graph: g}\nnodes: {a: {tool: t}}\ngraphs: {g: " + asks % "batch" + "}"
    other = 'failure_handler: {workflow: h, with: {x: "${last_error.%s}"}}\nnodes: {a: {tool: t}}'
    silent = "nodes: {a: {tool: t, catch: b}, b: {graph: g}}\ngraphs: {g: {nodes: {x: {value: 1}}}}"
    documents = [caught, handled, other % "batch", other % "code", silent]
    assert [Program(of(one), KINDS).tells_batch for one in documents] == [True, True, True, False, False]


BIG = "x" * 9_000
STARTS = """
failure_handler: {graph: h}
nodes:
  a: {map: {over: [1], wait_for: all, tolerated_failures: 0}, value: "${input.n}", catch: b}
  b: {graph: g}
  c: {fail: {code: broken, message: broken}, after: b, join: any}
graphs:
  g: {nodes: {x: {graph: k}}}
  k: {nodes: {x: {value: ["${last_error.batch}", "${last_error.answer}", "${input.big}"]}}}
  h: {nodes: {x: {value: ["${last_error.batch}", "${input.big}", "${ctx.b.output?}"]}}}
"""


def test_a_graph_is_started_with_large_values_by_reference_and_with_the_batch_result_of_a_failure() -> None:
    saga = Saga(Program(of(STARTS), KINDS), {"big": BIG})
    saga.go()
    (child,) = saga.state.children.values()
    assert sorted(child.passed) == ["input", "last_error.batch"]
    assert child.passed["input"].v == {"big": BIG}
    assert [*child.input.v] == ["outer"]
    batch = child.passed["last_error.batch"]
    assert batch.v["failed"] == 1

    origin = Origin(
        outer=ev.Value(v=child.input.v["outer"]), passed=child.passed, input=child.passed["input"]
    )
    inner = EvaluationContext(
        Program(saga.program.graph.graphs["g"], KINDS), State(origin=origin), FetchedValues(), "x"
    )
    assert inner.render(compile_template(["${last_error.batch.failed}", "${last_error.answer}"])) == [1, None]
    assert "batch" not in inner.render(compile_template("${last_error}"))
    rest, passed = started(inner, inner.program.template("x"))
    assert (rest["outer"]["last_error"]["code"], passed) == ("map_failed", child.passed)

    saga.put(ev.ChildReported(slot="b", child=child.saga, status="completed", output=ev.Value(v=1)))
    saga.go()
    start = saga.decision.of(StartHandler)
    assert start is not None
    assert sorted(start.child.passed) == ["input"]


def test_what_is_passed_is_fetched_by_what_names_a_part_of_it() -> None:
    large = ev.Value(ref="cas://sha256/0", size=9_000)
    origin = Origin(
        outer=ev.Value(v={"ctx": {"b": 1}, "last_error": {}}), passed={"ctx.a": large}, input=large
    )
    context = EvaluationContext(PROGRAM, State(origin=origin), FetchedValues(), "x")
    with pytest.raises(LackingError) as lacking:
        context.render(compile_template("${ctx.a.output.n}"))
    assert lacking.value.needs == {large.ref}
    found = replace(context, found=FetchedValues(blobs={large.ref: {"n": 2}}))
    assert found.render(compile_template("${ctx.a.output.n}")) == 2
    template = compile_template(
        {"input": {"n": 1, "t": "of ${saga.id}"}, "outer": {"ctx": {"a": "${ctx.a.output}"}}}
    )
    assert started(context, template) == (
        {"input": {"n": 1, "t": "of "}, "outer": {"ctx": {}}},
        {"ctx.a": large},
    )
    texts = ["ctx.a.output", "ctx.a.output.n", "ctx.b.output", "input", "input.n", "item", "saga.id"]
    assert [context.whole(parse(text)) for text in texts] == [large, None, None, large, None, None, None]
    assert context.render(compile_template("${last_error.batch}")) is None


def test_a_graph_whose_input_cannot_be_made_fails_its_node() -> None:
    saga = Saga(
        Program(
            of("nodes: {a: {graph: g, with: {n: '${input.n}'}}}\ngraphs: {g: {nodes: {x: {tool: t}}}}"), KINDS
        ),
        {},
    )
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "input_unbound"


# ---- parts -----------------------------------------------------------------------------------------------------------------


def test_names_and_definitions() -> None:
    assert (graph_name("w.g"), graph_name("w@2"), starter_of("w.g")) == ("g", "", "w")
    assert (inner_graph("h", "g"), inner_graph("h#g", "k"), split_hash("h#g"), split_hash("h")) == (
        "h#g",
        "h#k",
        ("h", "g"),
        ("h", ""),
    )
    assert split("w.g", {"input": 1, "outer": {"item": 2}}) == (1, {"item": 2})
    assert split("w", {"input": 1}) == ({"input": 1}, None)


def test_a_person_changes_fields_of_the_input_and_not_what_is_seen() -> None:
    """Also where the input is kept as a blob: then it is fetched, and the changed one is passed as it is."""
    text = 'nodes: {b: {graph: g}}\ngraphs: {g: {nodes: {x: {tool: t, with: {x: "${last_error}"}}}}}'
    program, kind, large = Program(of(text), KINDS), GraphKind(), ev.Value(ref="cas://big", size=9_000)

    def given(own: Any, changes: Any, blobs: Any = None) -> Any:
        origin = Origin(input=own if isinstance(own, ev.Value) else ev.Value(v=own))
        state = State(origin=origin, tokens={"b": {"": True}})
        desk = DecisionBuilder(program, state, 0, (), FetchedValues(blobs or {}))
        return kind.given(activation(program, state, "b"), desk, changes)

    seen = {"outer": {"last_error": None}}
    assert given({"a": 1}, {"a": 2}) == (ev.Value(v={"input": {"a": 2}, **seen}), {})
    assert given([1], {"a": 2}) == (ev.Value(v={"input": [1], **seen}), {})
    assert given(large, {}) == (ev.Value(v=seen), {"input": large})
    assert given(large, {"a": 2}, {large.ref: [1]}) == (ev.Value(v=seen), {"input": large})
    assert given(large, {"a": 2}, {large.ref: {"a": 1, "b": 1}}) == (
        ev.Value(v={"input": {"a": 2, "b": 1}, **seen}),
        {},
    )
    (node, _) = of("nodes: {a: {graph: g}, b: {tool: t}}\ngraphs: {g: {nodes: {x: {tool: t}}}}").nodes
    assert kind.node_view(node) == {"graph": "g"}
    assert SubGraph().summary(kind.node_view(node), str) == "graph g"


def test_an_undoing_keeps_what_the_failure_handler_reads() -> None:
    state = State(version=1, outputs={"a": ev.Value(v=1), "b": ev.Value(v=2)})
    entry = ev.Entry(
        version=2, at=1, invocation="i", events=(UndoBegan(reason="", at=1, kept=("a", "gone")),)
    )
    assert fold(state, entry).outputs == {"a": ev.Value(v=1)}


@pytest.mark.parametrize(
    "text", ["what is ctx.far, or an item?", "$${ctx.far.output}", "the last_error of ctx.a"]
)
def test_only_expressions_and_conditions_name_something(text: str) -> None:
    node = f"{{tool: t, with: {{x: '{text}'}}}}"
    (a, _) = of(
        f"nodes: {{a: {{graph: g}}, far: {{tool: t, after: a}}}}\ngraphs: {{g: {{nodes: {{x: {node}}}}}}}"
    ).nodes
    assert a.arguments == {"input": "${input}"}


def test_a_graph_whose_condition_names_a_node_of_the_document_sees_it() -> None:
    (_, a) = of(
        "nodes: {far: {tool: t}, a: {graph: g, after: far}}\n"
        "graphs: {g: {nodes: {x: {tool: t, when: {all: ['ctx.far.output.n > 1', 'true']}}}}}"
    ).nodes
    assert a.arguments["outer"] == {"ctx": {"far": "${ctx.far.output}"}}


def test_graphs_that_start_each_other_by_many_ways_are_compiled_at_once() -> None:
    graphs = [f"g{i}: {{nodes: {{a: {{graph: g{i + 1}}}, b: {{graph: g{i + 1}}}}}}}" for i in range(60)]
    last = "g60: {nodes: {x: {value: '${last_error.code}'}}}"
    whole = of(f"nodes: {{a: {{graph: g0}}}}\ngraphs: {{{', '.join([*graphs, last])}}}")
    assert "last_error" in whole.nodes[0].arguments["outer"]
