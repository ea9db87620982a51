"""Patches of documents, and compatible and breaking changes of a version."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.documents.changes import patched, patched_text, version_changes
from baton.core.documents.text import parse_document
from baton.errors import InvalidInput, MalformedDocument
from tests.kit.sentences import Says

EMPTY: dict[str, Any] = {"input": None, "nodes": [], "graphs": []}
AMOUNT: dict[str, Any] = {
    "type": "object",
    "required": ["amount"],
    "properties": {"amount": {"type": "integer"}},
}


def breaking(before: Any, after: Any) -> list[str]:
    found = version_changes({**EMPTY, "input": before}, {**EMPTY, "input": after}, (None, None))
    return [f"{one.path} {one.message}" for one in found if one.is_breaking]


def part(schema: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"p": schema}}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, None),
        (AMOUNT, None),
        (AMOUNT, True),
        (AMOUNT, {**AMOUNT, "title": "Payment", "examples": [{}]}),
        (AMOUNT, {**AMOUNT, "properties": {**AMOUNT["properties"], "currency": {"type": "string"}}}),
        (AMOUNT, {**AMOUNT, "required": []}),
        (AMOUNT, {**AMOUNT, "properties": {"amount": {"type": "number"}}}),
        (AMOUNT, {**AMOUNT, "properties": {}}),
        (part({"type": "string", "maxLength": 3}), part({"type": ["string", "null"], "maxLength": 4})),
        (part({"minimum": 3}), part({"minimum": 2})),
        (part({"enum": [1, 2]}), part({"enum": [1, 2, 3]})),
        (part({"const": 1}), part({"enum": [1, 2]})),
        (part({"pattern": "a"}), part({})),
        (part(False), part({"type": "string"})),
        ({**AMOUNT, "additionalProperties": False}, {**AMOUNT, "additionalProperties": True}),
        ({**AMOUNT, "additionalProperties": False}, AMOUNT),
        ({"type": "array", "items": {"type": "integer"}}, {"type": "array"}),
    ],
)
def test_an_input_that_takes_all_that_it_took_is_compatible(before: Any, after: Any) -> None:
    assert breaking(before, after) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, AMOUNT),
        (AMOUNT, False),
        (AMOUNT, {**AMOUNT, "required": ["amount", "currency"]}),
        (AMOUNT, {**AMOUNT, "properties": {"amount": {"type": "string"}}}),
        (AMOUNT, {**AMOUNT, "additionalProperties": False, "properties": {}}),
        (AMOUNT, {**AMOUNT, "additionalProperties": False}),
        (part({"type": "number"}), part({"type": "integer"})),
        (part({"maxLength": 4}), part({"maxLength": 3})),
        (part({}), part({"minItems": 1})),
        (part({"enum": [1, 2]}), part({"enum": [1]})),
        (part({"type": "string"}), part({"type": "string", "enum": ["a"]})),
        (part({"anyOf": [{"type": "string"}]}), part({"anyOf": [{"type": "null"}]})),
        ({"type": "array", "items": {"type": "number"}}, {"type": "array", "items": {"type": "integer"}}),
        ({"$ref": "#/$defs/a", "$defs": {"a": {}}}, {"$ref": "#/$defs/a", "$defs": {"a": {"minimum": 1}}}),
    ],
)
def test_an_input_that_refuses_what_it_took_is_breaking(before: Any, after: Any, says: Says) -> None:
    says(breaking(before, after))


def node(name: str, kind: str = "task", **more: Any) -> dict[str, Any]:
    return {"name": name, "kind": kind, **more}


def test_changes_of_nodes_and_of_the_output_say_who_cannot_go_on(says: Says) -> None:
    before = {
        **EMPTY,
        "nodes": [
            node("gone"),
            node("kind"),
            node("tool", tool="a"),
            node("paid", "wait", signal="paid"),
            node("round", loops=["round"]),
            node("same", tool="a", timeout_ms=5),
        ],
        "graphs": [{"name": "inner", "nodes": [node("x")]}, {"name": "lost", "nodes": []}],
    }
    after = {
        **EMPTY,
        "input": True,
        "nodes": [
            node("kind", "wait"),
            node("tool", tool="b"),
            node("paid", "wait", signal="settled"),
            node("round"),
            node("same", tool="a", timeout_ms=6),
            node("new"),
        ],
        "graphs": [{"name": "inner", "nodes": []}],
    }
    found = version_changes(before, after, ({"a": 1, "b": 2}, {"b": 3, "c": 4}))
    says([f"{one.path} {one.message} {'!' * one.is_breaking}" for one in found])
    assert version_changes(before, before, (1, 1)) == []
    assert [one.is_breaking for one in version_changes(EMPTY, EMPTY, ("a", "b"))] == [False]
    assert [one.is_breaking for one in version_changes(EMPTY, EMPTY, ({"a": 1}, "b"))] == [True]


PAY: dict[str, Any] = {"name": "pay", "nodes": {"a": {"value": 1}}}
LIMIT: list[dict[str, Any]] = [{"op": "replace", "path": "/nodes/a/value", "value": 7}]


def test_a_patch_changes_a_copy() -> None:
    operations = [
        {"op": "test", "path": "/name", "value": "pay"},
        *LIMIT,
        {"op": "copy", "from": "/name", "path": "/x"},
    ]
    assert patched(PAY, operations) == {"name": "pay", "nodes": {"a": {"value": 7}}, "x": "pay"}
    assert PAY["nodes"] == {"a": {"value": 1}}


def test_a_text_stays_json_or_yaml() -> None:
    assert patched_text('{"name": "pay", "nodes": {"a": {"value": 1}}}', LIMIT).startswith(
        '{\n  "name": "pay"'
    )
    yaml = patched_text("# It pays.\nname: pay\nnodes: {a: {value: 1}}", LIMIT)
    assert yaml == "name: pay\nnodes:\n  a:\n    value: 7\n"


@pytest.mark.parametrize("copies", [9, 13])
@pytest.mark.parametrize("text", ['{"name": "pay", "x": {}}', "name: pay\nx: {}"])
def test_a_patch_that_nests_without_end_is_refused(text: str, copies: int) -> None:
    operations = [{"op": "copy", "from": "/x", "path": "/x" + "/x" * 2**number} for number in range(copies)]
    with pytest.raises((InvalidInput, MalformedDocument)):
        parse_document(patched_text(text, operations))


@pytest.mark.parametrize(
    "operations",
    [
        [{"op": "replace", "path": "/nodes/b/value", "value": 7}],
        [{"op": "move", "from": "/nodes/b", "path": "/nodes/c"}],
        [*LIMIT, {"op": "test", "path": "/nodes/a/value", "value": 8}],
        [{"op": "set", "path": "/nodes/a"}],
        [{"op": "add", "path": "nodes"}],
        [{"op": "add", "path": "/nodes/a/value/x", "value": 1}],
        [{"op": "add", "path": "/nodes/b"}],
        [{"op": "add", "path": 7}],
        [{"op": "copy", "from": "", "path": f"/x{number}"} for number in range(90)],
    ],
    ids=[
        "no place",
        "nothing to move",
        "a test",
        "an operation",
        "a pointer",
        "a number",
        "no value",
        "a type",
        "a bomb",
    ],
)
def test_a_patch_that_cannot_be_applied_says_where(operations: list[Any], says: Says) -> None:
    with says.raised(InvalidInput):
        patched(PAY, operations)
