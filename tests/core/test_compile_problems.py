"""All problems of a document at once, each with its path, its line and column, and what would be right.

One test per kind of problem: the shape of the document first, then what it means.
"""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.documents.compile import MAX_HINTS, compile_document
from baton.core.documents.models import KINDS
from baton.errors import InvalidDefinition, MalformedDocument, Problem
from tests.core.build import problems_of, tool_spec
from tests.kit.sentences import Says

INTEGER = {"type": "integer"}
RESULT = {
    "type": "object",
    "properties": {
        "tables": {"type": "array", "items": {"$ref": "#/$defs/Table"}},
        "open": {"type": "object", "properties": {"a": {}}, "additionalProperties": True},
        "map": {"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}},
        "pattern": {"type": "object", "properties": {"a": {}}, "patternProperties": {"^x": {}}},
        "empty": {"type": "object", "properties": {}},
        "free": {"type": "object"},
        "word": {"type": "string"},
        "odd": True,
    },
    "$defs": {"Table": {"type": "object", "properties": {"id": {"type": "string"}, "seats": INTEGER}}},
}
TOOLS = {
    spec.name: spec
    for spec in (
        tool_spec("table.search", RESULT, city={"type": "string", "minLength": 2}, limit=INTEGER),
        tool_spec("table.hold", table={"$ref": "#/$defs/Table"}),
        tool_spec("t"),
    )
}
TOOLS["table.search"].parameters["required"] = ["city"]
TOOLS["table.hold"].parameters["$defs"] = {"Table": {"type": "object", "required": ["id"]}}
TOOLS["anything"] = tool_spec("anything")
TOOLS["anything"].parameters.pop("additionalProperties")

HEAD = "name: w\nnodes:\n  a: {tool: t}\n"
SEARCH = "name: w\nnodes:\n  s: {tool: table.search, with: {city: Wien}}\n"


def only(text: str) -> Problem:
    (problem,) = problems_of(text, TOOLS)
    return problem


def told(text: str) -> list[tuple[str, str, str]]:
    return [(p.path, p.message, p.suggestion) for p in problems_of(text, TOOLS)]


# ---- the shape ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["5", "[]", "just text", "null"])
def test_a_document_is_an_object(text: str, says: Says) -> None:
    says(only(text))


SHAPE: list[tuple[str, str, str]] = [
    ("no name", "nodes: {a: {tool: t}}", "/name"),
    ("no nodes", "name: w", "/nodes"),
    ("no node", "name: w\nnodes: {}", "/nodes"),
    ("a number as the name", "name: 5\nnodes: {a: {tool: t}}", "/name"),
    ("a bad name", "name: My W\nnodes: {a: {tool: t}}", "/name"),
    ("a bad name of a node", "name: w\nnodes: {a b: {tool: t}}", "/nodes/a b"),
    ("nodes as a list", "name: w\nnodes: [a]", "/nodes"),
    ("a node that is text", "name: w\nnodes: {a: t}", "/nodes/a"),
    ("input as text", HEAD + "input: x", "/input"),
    ("an unknown key", HEAD + "outputs: 1", "/outputs"),
    ("an unknown key like none", HEAD + "zzz: 1", "/zzz"),
    ("an unknown key of a node", "name: w\nnodes: {a: {tool: t, whit: {}}}", "/nodes/a/whit"),
    ("an unknown key of a wait", "name: w\nnodes: {a: {wait: {timeout: 1s, signl: x}}}", "/nodes/a/wait/signl"),
    ("a kind to come and another", "name: w\nnodes: {a: {tool: t, agent: {model: m, prompt: p}}}", "/nodes/a"),
    ("a key like a kind elsewhere", HEAD + "map: 1", "/map"),
    ("no kind", "name: w\nnodes: {a: {}}", "/nodes/a"),
    ("two kinds", "name: w\nnodes: {a: {tool: t, workflow: w}}", "/nodes/a"),
    ("a wait for both", "name: w\nnodes: {a: {wait: {for: 1s, signal: x}}}", "/nodes/a/wait"),
    ("a timeout without a signal", "name: w\nnodes: {a: {wait: {for: 1s, timeout: 1s}}}", "/nodes/a/wait"),
    ("a wait with arguments", "name: w\nnodes: {a: {wait: {for: 1s}, with: {x: 1}}}", "/nodes/a"),
    ("a time as the wait", "name: w\nnodes: {a: {wait: 5s}}", "/nodes/a/wait"),
    ("a name as the wait", "name: w\nnodes: {a: {wait: approved}}", "/nodes/a/wait"),
    ("a list as the wait", "name: w\nnodes: {a: {wait: [5s]}}", "/nodes/a/wait"),
    ("a bad duration", "name: w\nnodes: {a: {tool: t, timeout: soon}}", "/nodes/a/timeout"),
    ("a duration that is a list", "name: w\nnodes: {a: {tool: t, timeout: [5]}}", "/nodes/a/timeout"),
    ("a duration beyond all bounds", "name: w\nnodes: {a: {tool: t, timeout: " + "9" * 400 + "d}}", "/nodes/a/timeout"),
    ("a bad name of a signal", "name: w\nnodes: {a: {wait: {signal: a b}}}", "/nodes/a/wait/signal"),
    ("a bad name of a child", "name: w\nnodes: {a: {workflow: A}}", "/nodes/a/workflow"),
    ("after as a number", "name: w\nnodes: {a: {tool: t, after: 5}}", "/nodes/a/after"),
    ("after with a number in it", "name: w\nnodes: {a: {tool: t, after: [5]}}", "/nodes/a/after/0"),
    ("arguments as a list", "name: w\nnodes: {a: {tool: t, with: [1]}}", "/nodes/a/with"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "path"), [case[1:] for case in SHAPE], ids=[case[0] for case in SHAPE])
def test_a_document_of_the_wrong_shape(text: str, path: str, says: Says) -> None:
    ((found, *said),) = told(text)
    assert found == path
    says(said)


@pytest.mark.no_cover
def test_too_many_nodes_are_refused_with_the_limit(says: Says) -> None:
    text = "name: w\nnodes:\n" + "".join(f"  n{i}: {{tool: t}}\n" for i in range(10_001))
    says(only(text).message)


# ---- the meaning -------------------------------------------------------------------------------------------------

MEANING: list[tuple[str, str, str]] = [
    ("an unknown node", HEAD + "  b: {tool: t, after: aa}", "/nodes/b/after"),
    ("an unknown node of several", HEAD + "  b: {tool: t, after: [a, xyz]}", "/nodes/b/after/1"),
    ("an unknown tool", "name: w\nnodes: {a: {tool: table.serch, with: {city: x}}}", "/nodes/a/tool"),
    ("a tool like none", "name: w\nnodes: {a: {tool: zzzz}}", "/nodes/a/tool"),
    ("an argument that is not there", "name: w\nnodes: {a: {tool: table.search, with: {city: Wien, cty: x}}}",
     "/nodes/a/with/cty"),
    ("an argument that is missing", "name: w\nnodes: {a: {tool: table.search}}", "/nodes/a"),
    ("an argument of another type", "name: w\nnodes: {a: {tool: table.search, with: {city: Wien, limit: x}}}",
     "/nodes/a/with/limit"),
    ("an argument that is too short", "name: w\nnodes: {a: {tool: table.search, with: {city: x}}}",
     "/nodes/a/with/city"),
    ("an argument of a type of its own", "name: w\nnodes: {a: {tool: table.hold, with: {table: {x: 1}}}}",
     "/nodes/a/with/table"),
    ("a node that waits for itself", "name: w\nnodes: {a: {tool: t, after: a}}", "/nodes/a/after"),
    ("a workflow that starts itself", "name: w\nnodes: {a: {workflow: w}}", "/nodes/a/workflow"),
    ("a circle, and what stands behind it",
     "name: w\nnodes: {z: {tool: t}, b: {tool: t, after: [c, z]}, c: {tool: t, after: b}, d: {tool: t, after: c}}",
     "/nodes/b/after/0"),
    ("input that is no schema", HEAD + "input: {type: nope}", "/input/type"),
    ("an expression that cannot be read", HEAD + "output: '${input.}'", "/output"),
    ("an expression without its end", HEAD + "output: '${input'", "/output"),
    ("an expression with an unknown root", HEAD + "output: '${env.HOME}'", "/output"),
    ("an unknown node in an expression", HEAD + "output: '${ctx.b.output}'", "/output"),
    ("a node that need not have run", HEAD + "  b: {tool: anything, with: {x: '${ctx.a.output}'}}", "/nodes/b/with/x"),
    ("a field that a tool does not return", SEARCH + "output: '${ctx.s.output.tabels}'", "/output"),
    ("a field deep inside", SEARCH + "output: {x: ['${ctx.s.output.tables[0].seat}']}", "/output/x/0"),
    ("a field like none", SEARCH + "output: '${ctx.s.output.tables[0].xyz}'", "/output"),
    ("a field of text", SEARCH + "output: '${ctx.s.output.word.length}'", "/output"),
    ("an item of text", SEARCH + "output: '${ctx.s.output.tables[0][\"id\"][0].x}'", "/output"),
    ("a field of a list", SEARCH + "output: '${ctx.s.output.tables.id}'", "/output"),
    ("an item of an object", SEARCH + "output: '${ctx.s.output.tables[0][1]}'", "/output"),
    ("an item of an object with any fields", SEARCH + "output: '${ctx.s.output.free[0]}'", "/output"),
    ("a field of an input that is text", HEAD + "input: {type: string}\noutput: '${input.x}'", "/output"),
    ("a list into text",
     SEARCH + "  b: {tool: table.search, after: s, with: {city: '${ctx.s.output.tables}'}}", "/nodes/b/with/city"),
    ("text into an object",
     HEAD + "  b: {tool: table.hold, with: {table: '${saga.id}'}}", "/nodes/b/with/table"),
    ("an object into a number",
     SEARCH + "  b: {tool: table.search, after: s, with: {city: Wien, limit: '${ctx.s.output.tables[0]}'}}",
     "/nodes/b/with/limit"),
    ("a node for a root", HEAD + "output: '${a.output[0].id}'", "/output"),
    ("a node for a root without its output", HEAD + "output: '${a.text}'", "/output"),
    ("only a node for a root", HEAD + "output: '${a}'", "/output"),
    ("nearly a root", HEAD + "output: '${inputs.city}'", "/output"),
    ("a field of an empty object", SEARCH + "output: '${ctx.s.output.empty.x}'", "/output"),
    ("a field that the input does not have",
     HEAD + "input: {type: object, properties: {city: {}}}\noutput: '${input.cty}'", "/output"),
    ("a field that a saga does not have", HEAD + "output: '${saga.age}'", "/output"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "path"),
    [case[1:] for case in MEANING],
    ids=[case[0] for case in MEANING],
)
def test_a_document_that_makes_no_sense(text: str, path: str, says: Says) -> None:
    ((found, *said),) = told(text)
    assert found == path
    says(said)


@pytest.mark.parametrize(
    "reference", ["http://127.0.0.1:1/schema.json", "file:///etc/hostname", "other.json"]
)
def test_a_schema_may_not_refer_to_other_documents(reference: str) -> None:
    problem = only(HEAD + f"input: {{$ref: '{reference}'}}")
    assert problem.path == "/input/$ref"
    assert reference in problem.message


GOOD = [
    "${ctx.s.output}", "${ctx.s.output.tables}", "${ctx.s.output.tables[3].id}", "${ctx.s.output.tables[0]}",
    "${ctx.s.output.open.whatever}", "${ctx.s.output.map.whatever.more}", "${ctx.s.output.pattern.x1}",
    "${ctx.s.output.free.whatever}", "${ctx.s.output.word}", "${ctx.s.output.odd.whatever}",
    "${ctx.s.output.odd[0].x}", "${input.whatever}", "${saga.id}", "$${not.one}",
    "${ctx.w.output.whatever}", "${ctx.c.output.whatever}",
]  # fmt: skip


@pytest.mark.parametrize("expression", GOOD)
def test_what_a_schema_leaves_open_is_not_complained_about(expression: str) -> None:
    nodes = "  w: {wait: {signal: go}}\n  c: {workflow: other@3}\n"
    assert told(SEARCH + nodes + f"output: '{expression}'") == []


@pytest.mark.parametrize(
    "schema", ["{type: object}", "{properties: {a: {}}, additionalProperties: true}", "{properties: {b: {}}}"]
)
def test_an_input_with_an_open_schema_may_have_any_field(schema: str) -> None:
    assert told(HEAD + f"input: {schema}\noutput: '${{input.b}}'") == []


def test_an_argument_with_an_expression_in_it_is_checked_when_it_is_known() -> None:
    node = "  b: {{tool: table.search, after: a, with: {{city: {0}, limit: {0}}}}}\n"
    assert told(HEAD + node.format("'${ctx.a.output}'")) == []


def test_an_argument_is_checked_as_the_tool_will_get_it() -> None:
    """`$${` is written for `${`."""
    assert told("name: w\nnodes: {a: {tool: table.search, with: {city: '$${'}}}") == []
    tools = {"t": tool_spec("t", x={"maxLength": 2})}
    assert problems_of("name: w\nnodes: {a: {tool: t, with: {x: '$${'}}}", tools) == ()


def test_a_tool_that_takes_anything_takes_anything() -> None:
    assert told("name: w\nnodes: {a: {tool: anything, with: {x: 1, y: [2]}}}") == []


def test_without_any_tool_the_message_says_so() -> None:
    (problem,) = problems_of("name: w\nnodes: {a: {tool: t}}", {})
    assert problem.suggestion == "known tools: none"


# ---- all at once, in their places -------------------------------------------------------------------------------------

MANY = """\
name: w
input: {type: nope}
nodes:
  a: {tool: table.search, with: {city: 5, x: 1}}
  b:
    tool: tt
    after: [a, absent]
  c:
    tool: anything
    with: {deep: [{x: "${ctx.absent.output}"}, "${bad"]}
output: "${ctx.a.output.nope}"
"""


def test_all_problems_are_told_at_once_in_the_order_of_the_text() -> None:
    problems = problems_of(MANY, TOOLS)
    assert [(p.path, p.line, p.column) for p in problems] == [
        ("/input/type", 2, 15),
        ("/nodes/a/with/city", 4, 40),
        ("/nodes/a/with/x", 4, 46),
        ("/nodes/b/tool", 6, 11),
        ("/nodes/b/after/1", 7, 16),
        ("/nodes/c/with/deep/0/x", 10, 23),
        ("/nodes/c/with/deep/1", 10, 48),
        ("/output", 11, 9),
    ]


def test_several_problems_of_shape_are_told_at_once() -> None:
    problems = problems_of("name: 5\nnodes:\n  a: {tool: t, wait: {}}\n  b: {}\nx: 1\n", TOOLS)
    assert [(p.path, p.line) for p in problems] == [
        ("/name", 1),
        ("/nodes/a/wait", 3),
        ("/nodes/b", 4),
        ("/x", 5),
    ]


BROKEN_NODE = "name: w\nnodes:\n  s: {tool: table.search, with: {city: Wien}}\n  b: %s\n"


def test_what_is_left_of_a_node_with_an_unknown_key_is_checked_too() -> None:
    node = "{tool: table.search, with: {city: '${ctx.s.text}', cty: 1}, xyz: write, after: s}"
    assert [p.path for p in problems_of(BROKEN_NODE % node, TOOLS)] == [
        "/nodes/b/with/city", "/nodes/b/with/cty", "/nodes/b/xyz",
    ]  # fmt: skip


def test_an_unknown_key_counts_as_the_known_one_that_it_nearly_is() -> None:
    node = "{tool: table.search, whit: {city: '${ctx.s.output.word}'}, aftr: s}"
    assert [p.path for p in problems_of(BROKEN_NODE % node, TOOLS)] == ["/nodes/b/whit", "/nodes/b/aftr"]
    both = "{tool: t, tol: t}"
    assert [p.path for p in problems_of(BROKEN_NODE % both, TOOLS)] == ["/nodes/b/tol"]


def test_the_shape_of_what_is_left_is_checked_too(says: Says) -> None:
    node, _kinds = "{tool: t, wait: {for: 1s}, xyz: 1}", ", ".join(KINDS)
    says(told(BROKEN_NODE % node))


@pytest.mark.parametrize("node", ["{xyz: 1}", "{agent: x}"])
def test_a_node_of_unknown_keys_only_is_told_once(node: str) -> None:
    assert len(told(BROKEN_NODE % node)) == 1


def refusal(text: str) -> InvalidDefinition:
    with pytest.raises(InvalidDefinition) as caught:
        compile_document(text, TOOLS)
    return caught.value


def test_the_error_counts_its_problems_and_tells_the_first(says: Says) -> None:
    says(refusal(MANY).detail)
    says(refusal(HEAD + "  b: {tool: x}").detail)
    assert refusal("5").detail.endswith("(at /)")


def test_the_place_of_a_missing_key_is_that_of_what_it_should_be_in() -> None:
    problem = only("name: w\nnodes:\n  a:\n    tool: table.search\n")
    assert (problem.path, problem.line, problem.column) == ("/nodes/a", 4, 5)


def test_only_the_first_problems_get_a_suggestion_because_looking_for_one_takes_long() -> None:
    text = HEAD + "".join(f"  b{i}: {{tool: t, after: aa}}\n" for i in range(MAX_HINTS + 5))
    suggestions = [problem.suggestion for problem in problems_of(text, TOOLS)]
    assert [bool(one) for one in suggestions] == [True] * MAX_HINTS + [False] * 5


def test_text_that_cannot_be_parsed_is_another_error() -> None:
    with pytest.raises(MalformedDocument):
        compile_document("name: [", TOOLS)
    with pytest.raises(MalformedDocument):
        compile_document(HEAD, TOOLS, json_only=True)


def test_a_good_document_has_no_problem() -> None:
    good: Any = compile_document('{"name": "w", "nodes": {"a": {"tool": "t"}}}', TOOLS, json_only=True)
    assert good.name == "w"
