"""The published schema and the compiler agree: nothing that compiles is refused, no wrong shape gets by.

The schema cannot know names, tools, the largest duration, the days of a month and the smallest part of a dollar; that
is what the compiler is asked about.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from baton.core.conditions.model import SCHEMA_BYTES
from baton.core.conditions.schema import check_schema, violations
from baton.core.documents.compile import compile_document
from baton.core.documents.models import KINDS, KINDS_TO_COME, NodeModel
from baton.core.documents.nodes.registry import NODE_TYPES
from baton.core.documents.parts.fields import MAX_NODES
from baton.core.documents.schema import DIALECT, document_schema, node_types
from baton.core.documents.text import parse_document
from baton.core.expressions import ExpressionError, compile_template, expressions_in, parse
from baton.core.graph import graph
from baton.core.nodes import registry
from baton.errors import InvalidDefinition, MalformedDocument
from tests.core.build import MORE, PROPERTY, problems_of, tool_spec
from tests.core.compiling import shape_of
from tests.core.documents import TOOLS, broken, documents, own_documents, shaped_documents
from tests.core.shapes import BEYOND, SHAPES
from tests.core.test_compile_graph import DOCUMENT
from tests.core.test_compile_problems import SHAPE
from tests.kit.sentences import Says

SCHEMA = document_schema()
SCHEMA_JSON = json.dumps(SCHEMA).encode()
"""For what asks often."""
# Objects inside of nodes and documents that are described once.
PARTS = {
    name: part for name, part in SCHEMA["$defs"].items() if name not in {kind.kind for kind in NODE_TYPES}
}
BEYOND_A_SCHEMA = (
    "between 1 ms and 366 days",
    "there is no such day",
    "finer than a millionth of a dollar",
    "is another spelling of",
    "under `on` and under `never`",
    "must not be below `from`",
    "is there twice",
)
MINIMAL = {"name": "w", "nodes": {"a": {"tool": "t"}}}


def refused(value: Any) -> bool:
    return bool(violations(SCHEMA_JSON, value))


def compiles(value: Any) -> bool:
    try:
        compile_document(json.dumps(value), TOOLS)
    except (InvalidDefinition, MalformedDocument):
        return False
    return True


def at(value: Any, path: str) -> Any:
    for step in path.split("/")[1:]:
        value = value[step]
    return value


# ---- agreement ---------------------------------------------------------------------------------------------------


@given(documents())
@PROPERTY
def test_every_document_that_compiles_is_valid(value: Any) -> None:
    assert compiles(value)
    assert not refused(value)


@given(shaped_documents())
@settings(PROPERTY, max_examples=18 * MORE)
def test_every_shape_that_can_be_written_is_valid(value: Any) -> None:
    assert shape_of(value)[1] == ()
    assert not refused(value)


@given(broken(documents()) | broken(shaped_documents()))
@settings(PROPERTY, max_examples=24 * MORE)
@example({**MINIMAL, "output": "${input.a"})
@example({**MINIMAL, "output": "$$${input."})
@example({**MINIMAL, "output": "${\u2003input}"})
@example({**MINIMAL, "input": None})
@example({**MINIMAL, "name": "w\n"})
@example({"name": "w", "nodes": {"a": {"tool": "t", "wait": None}}})
@example({"name": "w", "nodes": {"a": {"tool": "t", "timeout": "٣s"}}})
@example({"name": "w", "nodes": {"a": {"tool": "t", "timeout": "\u2003 5s"}}})
@example({"name": "w", "nodes": {"a": {"tool": "t", "timeout": 0.0009999999999999999}}})
@example({"name": "w", "nodes": {"a": {"tool": "t", "timeout": 10**400}}})
@example({"name": "w", "nodes": {"a": {"wait": {"for": 1}, "with": {}}}})
@example({"name": "w", "nodes": {"a": {"workflow": "other", "timeout": "5s"}}})
@example({"name": "w", "nodes": {"a": {"wait": {"until": "2026-12-01T09:00:00Z\n"}}}})
@example({"name": "w", "nodes": {"a": {"tool": "t", "branch": {"choose": "\u2003${output}", "among": "a"}}}})
@example({"name": "w", "nodes": {"a": {"tool": "t", "loop": {"while": None}}}})
@example({**MINIMAL, "timeout": None, "limits": {"wall_time": "2h"}})
@example({**MINIMAL, "limits": {"cost_usd": True}})
def test_schema_and_compiler_refuse_the_same_shapes(value: Any) -> None:
    """What the schema refuses does not compile, and what the models refuse is not valid."""
    _, problems = shape_of(value)
    if refused(value):
        assert not compiles(value)
    else:
        assert [p for p in problems if not any(words in p.message for words in BEYOND_A_SCHEMA)] == []


@pytest.mark.no_cover
@pytest.mark.parametrize(
    "text", [case[1] for case in (*SHAPE, *SHAPES)], ids=[case[0] for case in (*SHAPE, *SHAPES)]
)
def test_every_wrong_shape_that_the_compiler_tells_of_is_refused(text: str) -> None:
    value = parse_document(text).value
    assert refused(value) == ("9" * 400 not in text), "only the largest duration is beyond a schema"


@pytest.mark.parametrize("text", [case[1] for case in BEYOND], ids=[case[0] for case in BEYOND])
def test_some_things_are_beyond_a_schema(text: str) -> None:
    assert not refused(parse_document(text).value)


@pytest.mark.parametrize("seconds", [0, -1, 0.0009, 31_622_401, 10**400, True])
def test_the_bounds_of_a_number_of_seconds_are_those_of_a_duration(seconds: float) -> None:
    assert refused({"name": "w", "nodes": {"a": {"wait": {"for": seconds}}}})
    assert not refused({"name": "w", "nodes": {"a": {"wait": {"for": 31_622_400}}}})


_EXPRESSION = st.lists(
    st.sampled_from(
        ["$", "${", "}", "{", "input", "ctx", "saga", ".id", ".n", "[0]", "['a']", '["b c"]', ".output", " ", "\n", "x", "[",
         "]", "'", "\\", "\u00a0", "[1234567890]", '["$"]', "ctx.a.output", "${input}", "$${", "?", ".previous", "loop",
         ".iteration", "join", ".errors", "last_error", "item", "output"]
    ),
    max_size=8,
).map("".join)  # fmt: skip


@given(_EXPRESSION)
@settings(PROPERTY, max_examples=30 * MORE)
@example('${ctx["a"]["output"][0].x}')
@example('${ctx["a"]["output"]?[0].x}')
@example("${ctx.a.output.x?}")
@example("${ctx.a?.output}")
@example("${ctx.a.previous?.x}")
@example("${input.a?.b['c']?[0]}")
@example("${input[0]?}")
@example("${input?}")
@example("${input.a??}")
@example("${last_error.code?}")
@example(
    "${ctx.a.previous.x} ${loop['iteration']} ${join.errors[0].code} ${last_error} ${item.x} ${output[0]}"
)
@example("${loop}")
@example("${loop.iteration.x}")
@example("${join}")
@example("${join.x}")
@example("${outputs}")
@example("${saga['id']}${saga.id.x}")
def test_an_expression_is_valid_exactly_if_it_can_be_read(text: str) -> None:
    try:
        compile_template(text)
        can_be_read = True
    except ExpressionError:
        can_be_read = False
    assert refused({**MINIMAL, "output": [{"x": text}]}) == (not can_be_read)
    has_any = any(True for _ in expressions_in(text))
    assert refused({"name": "w", "nodes": {"a": {"wait": {"for": text}}}}) == (not can_be_read or not has_any)


@given(_EXPRESSION)
@PROPERTY
@example("output.next")
@example(" ${output.next} ")
@example("${ctx.a.output?.x}")
@example("$${output}")
@example("${${output}}")
@example("")
def test_an_expression_to_choose_by_is_valid_exactly_if_it_can_be_read(text: str) -> None:
    node = {"tool": "t", "branch": {"choose": text, "among": "b"}}
    value = {"name": "w", "nodes": {"a": node, "b": {"tool": "t"}}}
    model, problems = shape_of(value)
    assert problems == ()
    assert model is not None
    branch = model.nodes["a"].branch
    assert branch is not None
    try:
        parse(branch.choose or "")
        can_be_read = True
    except ExpressionError:
        can_be_read = False
    assert refused(value) == (not can_be_read)


@pytest.mark.parametrize("text", ["x" * 500_000, "$x" * 200_000, "${input}" * 50_000, "$$${" * 100_000])
def test_a_long_text_is_no_problem(text: str) -> None:
    assert not refused({**MINIMAL, "output": text})
    assert refused({**MINIMAL, "output": text + "${"})


@pytest.mark.parametrize("place", own_documents())
def test_every_document_of_the_project_is_valid(place: str) -> None:
    assert violations(SCHEMA, own_documents()[place]) == ()


def test_a_document_with_everything_is_valid() -> None:
    assert not refused(parse_document(DOCUMENT).value)


def test_the_number_of_nodes_is_bounded() -> None:
    """For editors: the engine never holds a document against the schema, and would refuse so large a value."""
    of_an_editor = jsonschema_rs.validator_for(SCHEMA)
    nodes = {f"n{i}": {"tool": "t"} for i in range(MAX_NODES + 1)}
    assert not of_an_editor.is_valid({"name": "w", "nodes": nodes})
    nodes.popitem()
    assert of_an_editor.is_valid({"name": "w", "nodes": nodes})


# ---- what an editor sees -----------------------------------------------------------------------------------------


def test_a_document_may_say_where_its_schema_is_and_that_changes_no_hash() -> None:
    plain = compile_document(json.dumps(MINIMAL), TOOLS)
    pointing = {"$schema": "../workflow.schema.json", **MINIMAL}
    assert not refused(pointing)
    assert graph.encode_graph(compile_document(json.dumps(pointing), TOOLS)) == graph.encode_graph(plain)


def test_there_is_room_in_it_for_more_kinds_of_node() -> None:
    """Those of applications, too: where it is held against a document, it is bounded as any other schema."""
    assert len(msgspec.json.encode(SCHEMA)) < 9 / 10 * SCHEMA_BYTES


@pytest.mark.parametrize("kind", NODE_TYPES, ids=lambda kind: kind.kind)
def test_what_several_kinds_have_is_described_once(kind: Any) -> None:
    """With its default, where it has one: an editor follows the references."""
    fields = SCHEMA["$defs"][kind.kind]["properties"]
    assert {name: field for name, field in fields.items() if name != kind.key} == {
        name: {"$ref": f"#/$defs/node.{name}"} for name in kind.fields
    }
    assert _seen(fields["after"])["default"] == []


def test_it_is_a_schema_with_a_name_that_needs_no_host() -> None:
    check_schema(SCHEMA)
    assert (SCHEMA["$schema"], SCHEMA["$id"]) == (DIALECT, "urn:baton:workflow-schema:1")


def _seen(field: dict[str, Any]) -> dict[str, Any]:
    """What an editor shows of a field: what it does not say itself, the one that it refers to says."""
    while "$ref" in field:
        referred = SCHEMA["$defs"][field["$ref"].removeprefix("#/$defs/")]
        field = {**referred, **{key: item for key, item in field.items() if key != "$ref"}}
    return field


def _objects() -> list[dict[str, Any]]:
    """Every object that a document can have in it, but for those that are loosely described."""
    kinds = [SCHEMA["$defs"][kind.kind] for kind in NODE_TYPES]
    parts = [
        shape for name, part in PARTS.items() if name != "condition" for shape in part.get("anyOf", [part])
    ]
    return [
        *kinds,
        kinds[1]["properties"]["wait"],
        *(part for part in parts if "additionalProperties" in part and "properties" in part),
    ]


def test_every_field_says_what_it_is() -> None:
    objects = [SCHEMA, *_objects()]
    assert len(objects) > 15
    for object_ in objects:
        assert object_["additionalProperties"] is False
        for name, field in object_["properties"].items():
            assert len(_seen(field)["description"]) > 10, name


@pytest.mark.no_cover
def test_every_example_of_a_field_is_valid_where_it_stands() -> None:
    fields = {
        f"{number}: {name}": field
        for number, object_ in enumerate((SCHEMA, *_objects()))
        for name, field in object_["properties"].items()
    }
    examples = {name: list(_seen(field).get("examples", ())) for name, field in fields.items()}
    assert sum(map(len, examples.values())) > 60
    schema = {"properties": {name: {"items": field} for name, field in fields.items()}}
    # An editor's: all of them in one schema are more than a document may have.
    of_an_editor = jsonschema_rs.validator_for({**schema, "$defs": SCHEMA["$defs"]})
    assert [error.message for error in of_an_editor.iter_errors(examples)] == []


@pytest.mark.no_cover
def test_every_example_of_what_fields_share_is_valid() -> None:
    fields = {name: {"items": {"$ref": f"#/$defs/{name}"}} for name in PARTS}
    examples = {name: list(part.get("examples", ())) for name, part in PARTS.items()}
    assert sum(map(len, examples.values())) > 100
    assert violations({"properties": fields, "$defs": SCHEMA["$defs"]}, examples) == ()


def test_a_caller_who_changes_what_it_was_given_changes_it_for_no_other() -> None:
    document_schema()["$defs"]["after"]["anyOf"].clear()
    node_types()[0]["example"]["with"].clear()
    assert document_schema() == SCHEMA
    assert node_types()[0]["example"]["with"]


# ---- kinds of node ---------------------------------------------------------------------------------------------


def test_there_is_one_list_of_kinds() -> None:
    kinds = [type_["kind"] for type_ in node_types()]
    assert kinds == [kind.kind for kind in NODE_TYPES]
    of_functions = {"callback", "start"}  # no document can write them
    assert {kind.kind for kind in NODE_TYPES if kind.runs} | {"map"} | of_functions == set(registry.KINDS)
    assert (*KINDS, *KINDS_TO_COME) == tuple(kind.key for kind in NODE_TYPES)
    assert [type_["kind"] for type_ in node_types() if not type_["runs"]] == []
    assert SCHEMA["$defs"]["node"]["oneOf"] == [{"$ref": f"#/$defs/{kind}"} for kind in kinds]


def test_a_kind_says_what_it_is_called_what_it_can_do_and_what_goes_in_and_out() -> None:
    found = {type_["kind"]: type_ for type_ in node_types()}
    task, wait, child, value = (found[kind] for kind in ("task", "wait", "workflow", "pass"))
    assert (task["version"], task["title"], task["icon"]) == ("1", "Task", "●")
    assert len({type_["icon"] for type_ in found.values() if type_["runs"]}) == 10
    assert {name for name, can in task["capabilities"].items() if can} == {"input", "timeout", "retry"}
    assert {name for name, can in wait["capabilities"].items() if can} == {"parked", "signals"}
    assert {name for name, can in child["capabilities"].items() if can} == {
        "input",
        "parked",
        "signals",
        "retry",
        "timeout",
    }
    assert not any(value["capabilities"].values())
    assert (task["input"], wait["input"]) == ({"type": "object"}, None)
    assert all(type_["output"]["description"] for type_ in found.values() if type_["runs"])
    for type_ in found.values():
        check_schema(type_["output"])


def test_every_field_of_a_node_belongs_to_a_kind() -> None:
    fields = {field.alias or name for name, field in NodeModel.model_fields.items()}
    assert fields == {name for kind in NODE_TYPES for name in (kind.key, *kind.fields)}


@pytest.mark.parametrize("kind", NODE_TYPES, ids=lambda kind: kind.kind)
def test_a_field_of_another_kind_is_refused_with_the_reason(kind: Any) -> None:
    values = {
        "with": {},
        "after": [],
        "timeout": 1,
        "description": "",
        "when": "true",
        "join": "any",
        "limits": {},
    }
    for name, value in values.items():
        node = {kind.key: kind.example[kind.key], name: value}
        _, problems = shape_of({"name": "w", "nodes": {"a": node}})
        assert [problem.message for problem in problems] == ([] if name in kind.fields else [kind.refusal])
        assert refused({"name": "w", "nodes": {"a": node}}) == bool(problems)


@pytest.mark.no_cover
@pytest.mark.parametrize("type_", node_types(), ids=lambda type_: str(type_["kind"]))
def test_a_kind_has_a_schema_of_its_own_and_an_example_that_compiles(type_: Any, says: Says) -> None:
    assert violations(type_["schema"], type_["example"]) == ()
    assert violations(type_["schema"], {}) != ()
    assert violations(type_["schema"], {**type_["example"], "x": 1}) != ()
    tool = tool_spec("table.hold", party={}, user={})
    graphs = {"graphs": {"visit": {"nodes": {"n": {"value": 1}}}}} if type_["kind"] == "subgraph" else {}
    text = json.dumps({"name": "w", "nodes": {"a": type_["example"]}, **graphs})
    if type_["runs"]:
        known = {tool.name: tool, "table.search": tool_spec("table.search")}
        known["order-fulfilment"] = replace(tool_spec("order-fulfilment", order={}), calls=())
        (node,) = compile_document(text, known).nodes
        assert (node.kind if node.each is None else node.each.do.kind) == type_["kind"]
    else:
        found = [
            problem.message for problem in problems_of(text, {"table.search": tool_spec("table.search")})
        ]
        says(found)


def test_the_schema_of_a_kind_is_the_one_that_documents_have() -> None:
    for type_ in node_types():
        schema = {key: value for key, value in type_["schema"].items() if key not in ("$schema", "$defs")}
        assert schema == SCHEMA["$defs"][type_["kind"]]
        assert type_["schema"]["$defs"].items() <= SCHEMA["$defs"].items()
        used = json.dumps(type_["schema"])
        assert all(f"#/$defs/{name}" in used for name in type_["schema"]["$defs"])
