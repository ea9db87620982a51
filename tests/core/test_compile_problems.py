"""All problems of a document at once, each with its path, its line and column, and what would be right.

One test per kind of problem: the shape of the document first, then what it means.
"""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.documents.compile import MAX_HINTS, compile_document
from baton.core.documents.nodes.node_model import KINDS
from baton.errors import InvalidDefinition, MalformedDocument, Problem
from tests.core.build import problems_of, tool_spec
from tests.core.shapes import NAMES
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


CHILD_A = (
    "write `a`: names of workflows have small letters, digits and `-`, begin with a letter, and have at most 64 characters; "
    "`@` and the number of a version may follow"
)
SHAPE: list[tuple[str, str, str, str, str]] = [
    ("no name", "nodes: {a: {tool: t}}", "/name", "`name` is missing", ""),
    ("no nodes", "name: w", "/nodes", "`nodes` is missing", ""),
    ("no node", "name: w\nnodes: {}", "/nodes", "a workflow has at least one node", ""),
    ("a number as the name", "name: 5\nnodes: {a: {tool: t}}", "/name", "must be a string", ""),
    ("a bad name", "name: My W\nnodes: {a: {tool: t}}", "/name", "`My W` is not a name",
     "write `my-w`: names of workflows have small letters, digits and `-`, begin with a letter, and have at most 64 characters"),
    ("a bad name of a node", "name: w\nnodes: {a b: {tool: t}}", "/nodes/a b", "`a b` is not a name", NAMES),
    ("nodes as a list", "name: w\nnodes: [a]", "/nodes", "must be an object",
     "write each node under its name: `nodes: {first: {tool: NAME}}`"),
    ("a node that is text", "name: w\nnodes: {a: t}", "/nodes/a", "must be an object", "write `{tool: t}`"),
    ("input as text", HEAD + "input: x", "/input", "must be an object", ""),
    ("an unknown key", HEAD + "outputs: 1", "/outputs", "`outputs` is not known here", "did you mean `output`?"),
    ("an unknown key like none", HEAD + "zzz: 1", "/zzz", "`zzz` is not known here", ""),
    ("an unknown key of a node", "name: w\nnodes: {a: {tool: t, whit: {}}}", "/nodes/a/whit",
     "`whit` is not known here", "did you mean `with`?"),
    ("an unknown key of a wait", "name: w\nnodes: {a: {wait: {timeout: 1s, signl: x}}}", "/nodes/a/wait/signl",
     "`signl` is not known here", "did you mean `signal`?"),
    ("a kind to come and another", "name: w\nnodes: {a: {tool: t, agent: {model: m, prompt: p}}}", "/nodes/a",
     "a node has exactly one of tool, wait, workflow, graph, value, fail, end, human, model, agent; found tool and agent", ""),
    ("a key like a kind elsewhere", HEAD + "map: 1", "/map", "`map` is not known here", ""),
    ("no kind", "name: w\nnodes: {a: {}}", "/nodes/a",
     "a node has exactly one of tool, wait, workflow, graph, value, fail, end, human, model, agent; found none", ""),
    ("two kinds", "name: w\nnodes: {a: {tool: t, workflow: w}}", "/nodes/a",
     "a node has exactly one of tool, wait, workflow, graph, value, fail, end, human, model, agent; found tool and workflow", ""),
    ("a wait for both", "name: w\nnodes: {a: {wait: {for: 1s, signal: x}}}", "/nodes/a/wait",
     "write exactly one of `for` (a duration), `until` (a time) and `signal` (a name)",
     "the longest time to wait for a signal is its `timeout`: write that in place of `for`"),
    ("a timeout without a signal", "name: w\nnodes: {a: {wait: {for: 1s, timeout: 1s}}}", "/nodes/a/wait",
     "`timeout` goes with `signal`", ""),
    ("a wait with arguments", "name: w\nnodes: {a: {wait: {for: 1s}, with: {x: 1}}}", "/nodes/a",
     "a wait takes neither `with` nor `timeout` of the node; use wait.timeout", ""),
    ("a time as the wait", "name: w\nnodes: {a: {wait: 5s}}", "/nodes/a/wait", "must be an object",
     "write `wait: {for: 5s}`"),
    ("a name as the wait", "name: w\nnodes: {a: {wait: approved}}", "/nodes/a/wait", "must be an object",
     "write `wait: {signal: approved}`"),
    ("a list as the wait", "name: w\nnodes: {a: {wait: [5s]}}", "/nodes/a/wait", "must be an object",
     "write `wait: {for: 5s}` or `wait: {signal: NAME}`"),
    ("a bad duration", "name: w\nnodes: {a: {tool: t, timeout: soon}}", "/nodes/a/timeout",
     "`soon` is not a duration; write for example 500ms, 5s, 10m, 1h or 2d", ""),
    ("a duration that is a list", "name: w\nnodes: {a: {tool: t, timeout: [5]}}", "/nodes/a/timeout",
     "`[5]` is not a duration; write for example 500ms, 5s, 10m, 1h or 2d", ""),
    ("a duration beyond all bounds", "name: w\nnodes: {a: {tool: t, timeout: " + "9" * 400 + "d}}", "/nodes/a/timeout",
     f"`{'9' * 40}` must be between 1 ms and 366 days", ""),
    ("a bad name of a signal", "name: w\nnodes: {a: {wait: {signal: a b}}}", "/nodes/a/wait/signal",
     "`a b` is not a name", NAMES),
    ("a bad name of a child", "name: w\nnodes: {a: {workflow: A}}", "/nodes/a/workflow",
     "`A` is not a name", CHILD_A),
    ("after as a number", "name: w\nnodes: {a: {tool: t, after: 5}}", "/nodes/a/after", "must be a list", ""),
    ("after with a number in it", "name: w\nnodes: {a: {tool: t, after: [5]}}", "/nodes/a/after/0",
     "must be a string", ""),
    ("arguments as a list", "name: w\nnodes: {a: {tool: t, with: [1]}}", "/nodes/a/with", "must be an object", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "path", "message", "suggestion"), [case[1:] for case in SHAPE], ids=[case[0] for case in SHAPE]
)
def test_a_document_of_the_wrong_shape(text: str, path: str, message: str, suggestion: str) -> None:
    assert told(text) == [(path, message, suggestion)]


@pytest.mark.no_cover
def test_too_many_nodes_are_refused_with_the_limit(says: Says) -> None:
    text = "name: w\nnodes:\n" + "".join(f"  n{i}: {{tool: t}}\n" for i in range(10_001))
    says(only(text).message)


# ---- the meaning -------------------------------------------------------------------------------------------------

MEANING: list[tuple[str, str, str, str, str]] = [
    ("an unknown node", HEAD + "  b: {tool: t, after: aa}", "/nodes/b/after", "there is no node `aa`",
     "did you mean `a`?"),
    ("an unknown node of several", HEAD + "  b: {tool: t, after: [a, xyz]}", "/nodes/b/after/1",
     "there is no node `xyz`", ""),
    ("an unknown tool", "name: w\nnodes: {a: {tool: table.serch, with: {city: x}}}", "/nodes/a/tool",
     "there is no tool `table.serch`", "did you mean `table.search`?"),
    ("a tool like none", "name: w\nnodes: {a: {tool: zzzz}}", "/nodes/a/tool", "there is no tool `zzzz`",
     "known tools: anything, t, table.hold, table.search"),
    ("an argument that is not there", "name: w\nnodes: {a: {tool: table.search, with: {city: Wien, cty: x}}}",
     "/nodes/a/with/cty", "`table.search` takes no `cty`", "did you mean `city`?"),
    ("an argument that is missing", "name: w\nnodes: {a: {tool: table.search}}", "/nodes/a",
     "`table.search` needs `city`: write it under `with`", ""),
    ("an argument of another type", "name: w\nnodes: {a: {tool: table.search, with: {city: Wien, limit: x}}}",
     "/nodes/a/with/limit", '"x" is not of type "integer"', ""),
    ("an argument that is too short", "name: w\nnodes: {a: {tool: table.search, with: {city: x}}}",
     "/nodes/a/with/city", '"x" is shorter than 2 characters', ""),
    ("an argument of a type of its own", "name: w\nnodes: {a: {tool: table.hold, with: {table: {x: 1}}}}",
     "/nodes/a/with/table", '"id" is a required property', ""),
    ("a node that waits for itself", "name: w\nnodes: {a: {tool: t, after: a}}", "/nodes/a/after",
     "these nodes wait for each other and can never start: a",
     "to go round again, write `loop` at the last of them"),
    ("a workflow that starts itself", "name: w\nnodes: {a: {workflow: w}}", "/nodes/a/workflow",
     "every saga of this workflow would start another one, without end",
     "let `when` or a `branch` decide whether it comes here"),
    ("a circle, and what stands behind it",
     "name: w\nnodes: {z: {tool: t}, b: {tool: t, after: [c, z]}, c: {tool: t, after: b}, d: {tool: t, after: c}}",
     "/nodes/b/after/0", "these nodes wait for each other and can never start: b, c, d",
     "to go round again, write `loop` at the last of them"),
    ("input that is no schema", HEAD + "input: {type: nope}", "/input/type",
     "`nope` is not a JSON Schema type", "there are array, boolean, integer, null, number, object, string"),
    ("an expression that cannot be read", HEAD + "output: '${input.}'", "/output",
     '`input.`: cannot read `.`; write .name, [0] or ["name"]', ""),
    ("an expression without its end", HEAD + "output: '${input'", "/output",
     "`${input`: the closing `}` is missing", ""),
    ("an expression with an unknown root", HEAD + "output: '${env.HOME}'", "/output",
     "`env.HOME` must begin with one of input, ctx, saga, loop, join, last_error, item, index, output", ""),
    ("an unknown node in an expression", HEAD + "output: '${ctx.b.output}'", "/output",
     "`ctx.b.output`: there is no node `b`", ""),
    ("a node that need not have run", HEAD + "  b: {tool: anything, with: {x: '${ctx.a.output}'}}", "/nodes/b/with/x",
     "`ctx.a.output`: `a` need not have run before this",
     "add `a` to `after`, directly or through other nodes"),
    ("a field that a tool does not return", SEARCH + "output: '${ctx.s.output.tabels}'", "/output",
     "`ctx.s.output.tabels`: nothing produces `tabels`", "did you mean `tables`?"),
    ("a field deep inside", SEARCH + "output: {x: ['${ctx.s.output.tables[0].seat}']}", "/output/x/0",
     "`ctx.s.output.tables[0].seat`: nothing produces `seat`", "did you mean `seats`?"),
    ("a field like none", SEARCH + "output: '${ctx.s.output.tables[0].xyz}'", "/output",
     "`ctx.s.output.tables[0].xyz`: nothing produces `xyz`", "known: id, seats"),
    ("a field of text", SEARCH + "output: '${ctx.s.output.word.length}'", "/output",
     "`ctx.s.output.word.length`: `length` of a string cannot be taken", "`${ctx.s.output.word}` is the whole value"),
    ("an item of text", SEARCH + "output: '${ctx.s.output.tables[0][\"id\"][0].x}'", "/output",
     '`ctx.s.output.tables[0]["id"][0].x`: `0` of a string cannot be taken',
     '`${ctx.s.output.tables[0]["id"]}` is the whole value'),
    ("a field of a list", SEARCH + "output: '${ctx.s.output.tables.id}'", "/output",
     "`ctx.s.output.tables.id`: `id` of a list cannot be taken",
     "take an item of the list, such as `${ctx.s.output.tables[0]}`"),
    ("an item of an object", SEARCH + "output: '${ctx.s.output.tables[0][1]}'", "/output",
     "`ctx.s.output.tables[0][1]`: `1` of an object cannot be taken", "take a field: id, seats"),
    ("an item of an object with any fields", SEARCH + "output: '${ctx.s.output.free[0]}'", "/output",
     "`ctx.s.output.free[0]`: `0` of an object cannot be taken", "take a field: by its name"),
    ("a field of an input that is text", HEAD + "input: {type: string}\noutput: '${input.x}'", "/output",
     "`input.x`: `x` of a string cannot be taken", "`${input}` is the whole value"),
    ("a list into text",
     SEARCH + "  b: {tool: table.search, after: s, with: {city: '${ctx.s.output.tables}'}}", "/nodes/b/with/city",
     "`ctx.s.output.tables` is a list; `table.search` takes a string as `city`",
     "take an item of the list, such as `${ctx.s.output.tables[0]}`"),
    ("text into an object",
     HEAD + "  b: {tool: table.hold, with: {table: '${saga.id}'}}", "/nodes/b/with/table",
     "`saga.id` is a string; `table.hold` takes an object as `table`",
     "name another value, or let a tool convert it"),
    ("an object into a number",
     SEARCH + "  b: {tool: table.search, after: s, with: {city: Wien, limit: '${ctx.s.output.tables[0]}'}}",
     "/nodes/b/with/limit",
     "`ctx.s.output.tables[0]` is an object; `table.search` takes an integer as `limit`", "take a field: id, seats"),
    ("a node for a root", HEAD + "output: '${a.output[0].id}'", "/output",
     "`a.output[0].id` must begin with one of input, ctx, saga, loop, join, last_error, item, index, output", "did you mean `ctx.a.output[0].id`?"),
    ("a node for a root without its output", HEAD + "output: '${a.text}'", "/output",
     "`a.text` must begin with one of input, ctx, saga, loop, join, last_error, item, index, output", "did you mean `ctx.a.output.text`?"),
    ("only a node for a root", HEAD + "output: '${a}'", "/output",
     "`a` must begin with one of input, ctx, saga, loop, join, last_error, item, index, output", "did you mean `ctx.a.output`?"),
    ("nearly a root", HEAD + "output: '${inputs.city}'", "/output",
     "`inputs.city` must begin with one of input, ctx, saga, loop, join, last_error, item, index, output", "did you mean `input`?"),
    ("a field of an empty object", SEARCH + "output: '${ctx.s.output.empty.x}'", "/output",
     "`ctx.s.output.empty.x`: nothing produces `x`", "known: nothing"),
    ("a field that the input does not have",
     HEAD + "input: {type: object, properties: {city: {}}}\noutput: '${input.cty}'", "/output",
     "`input.cty`: nothing produces `cty`", "did you mean `city`?"),
    ("a field that a saga does not have", HEAD + "output: '${saga.age}'", "/output",
     "`saga.age`: a saga has id, user, tenant, workflow", ""),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "path", "message", "suggestion"),
    [case[1:] for case in MEANING],
    ids=[case[0] for case in MEANING],
)
def test_a_document_that_makes_no_sense(text: str, path: str, message: str, suggestion: str) -> None:
    assert told(text) == [(path, message, suggestion)]


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
    assert suggestions == ["did you mean `a`?"] * MAX_HINTS + [""] * 5


def test_text_that_cannot_be_parsed_is_another_error() -> None:
    with pytest.raises(MalformedDocument):
        compile_document("name: [", TOOLS)
    with pytest.raises(MalformedDocument):
        compile_document(HEAD, TOOLS, json_only=True)


def test_a_good_document_has_no_problem() -> None:
    good: Any = compile_document('{"name": "w", "nodes": {"a": {"tool": "t"}}}', TOOLS, json_only=True)
    assert good.name == "w"
