"""What a schema says plainly: types, where a path leads, and which values can never be which argument."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.conditions.schemafaults import TYPES, Schema, in_words

NUMBER = frozenset({"number", "integer"})


def of(value: Any, **defs: Any) -> Schema:
    return Schema(value, {"$defs": defs})


@pytest.mark.parametrize(
    ("value", "types"),
    [
        ({"type": "string"}, {"string"}),
        ({"type": ["string", "null"]}, {"string", "null"}),
        ({"type": "number"}, NUMBER),
        ({"type": "integer"}, {"integer"}),
        ({"$ref": "#/$defs/A"}, {"array"}),
        ({"$ref": "#/$defs/B"}, {"array"}),
        ({"anyOf": [{"type": "string"}, {"$ref": "#/$defs/A"}]}, {"string", "array"}),
        ({"oneOf": [{"type": "null"}, {"oneOf": [{"type": "number"}]}]}, {"null", *NUMBER}),
        # All of these say nothing that is plain.
        (None, TYPES), (True, TYPES), (False, TYPES), ({}, TYPES), ({"enum": [1]}, TYPES), ({"anyOf": []}, TYPES),
        ({"anyOf": {}}, TYPES), ({"anyOf": [{"type": "string"}, {}]}, TYPES), ({"type": "nope"}, TYPES),
        ({"type": [{}, 5]}, TYPES), ({"$ref": "#"}, TYPES), ({"$ref": "other.json"}, TYPES), ({"$ref": 5}, TYPES),
        ({"$ref": "#/$defs/Absent"}, TYPES), ({"$ref": "#/$defs/Circle"}, TYPES),
        ({"$ref": "#/$defs/Endless"}, TYPES), ({"$ref": "#/$defs/List"}, {"array", "null"}),
        ({"anyOf": [{"type": "null"} for _ in range(50)]}, TYPES),
    ],
)  # fmt: skip
def test_the_types_of_a_schema(value: Any, types: set[str]) -> None:
    definitions = {
        "A": {"type": "array"},
        "B": {"$ref": "#/$defs/A"},
        "Circle": {"$ref": "#/$defs/Circle"},
        "Endless": {"anyOf": [{"$ref": "#/$defs/Endless"}] * 9},
        "List": {"anyOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/List"}, {"type": "null"}]},
    }
    assert of(value, **definitions).types() == types


@pytest.mark.parametrize("root", [None, True, {}, {"$defs": 5}])
def test_a_reference_where_there_are_no_definitions_leads_nowhere(root: Any) -> None:
    assert Schema({"$ref": "#/$defs/A"}, root).resolved().value is None


PLACE = {
    "type": "object",
    "properties": {
        "rows": {"type": "array", "items": {"type": "integer"}},
        "pair": {"type": "array", "prefixItems": [{"type": "string"}], "items": {"type": "integer"}},
        "maybe": {"anyOf": [{"type": "object", "properties": {}}, {"type": "null"}]},
        "next": {"$ref": "#/$defs/Place"},
    },
}


@pytest.mark.parametrize(
    ("steps", "taken", "types"),
    [
        ((), 0, {"object"}),
        (("rows", 3), 2, {"integer"}),
        (("rows", 3, "x"), 2, {"integer"}),
        (("rows", "x"), 1, {"array"}),
        (("next", "next", "row"), 2, {"object"}),
        (("pair", 0, "x"), 3, TYPES),
        (("maybe", "x"), 2, TYPES),
        ((0,), 0, {"object"}),
    ],
)
def test_a_path_is_followed_as_far_as_it_can_lead(
    steps: tuple[str | int, ...], taken: int, types: set[str]
) -> None:
    here, count = of(PLACE, Place=PLACE).follow(steps)
    assert count == taken
    assert here.types() == types


@pytest.mark.parametrize("value", [None, True, {"properties": 5}])
def test_where_nothing_is_known_every_path_may_lead_somewhere(value: Any) -> None:
    here, count = of(value).follow(["a", 0, "b"])
    assert (count, here.types(), here.fields) == (3, TYPES, ())


STRING, INTEGER, BOOLEAN = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
LIST, OBJECT, NULL = {"type": "array"}, {"type": "object"}, {"type": "null"}
NEVER = [
    (LIST, STRING), (OBJECT, STRING), (NULL, STRING), (INTEGER, STRING), (BOOLEAN, STRING), (STRING, LIST),
    (STRING, OBJECT), (OBJECT, LIST), (LIST, INTEGER), (NULL, INTEGER), (INTEGER, NULL), (INTEGER, OBJECT),
    (LIST, {"type": "string", "format": "date-time"}), (LIST, {"anyOf": [STRING, NULL]}),
    ({"anyOf": [LIST, NULL]}, STRING),
]  # fmt: skip
PERHAPS = [
    (STRING, STRING), (INTEGER, {"type": "number"}), ({"type": "number"}, INTEGER), (BOOLEAN, INTEGER),
    (STRING, INTEGER), (STRING, BOOLEAN), (INTEGER, {"type": "string", "format": "date-time"}),
    (INTEGER, {"anyOf": [{"type": "string", "format": "date-time"}, NULL]}), ({"anyOf": [STRING, NULL]}, STRING),
    ({}, STRING), (LIST, {}), (None, STRING), (LIST, True),
]  # fmt: skip


@pytest.mark.parametrize(("given", "wanted"), NEVER)
def test_what_can_never_be_an_argument(given: Any, wanted: Any) -> None:
    assert of(given).never_fits(of(wanted))


@pytest.mark.parametrize(("given", "wanted"), PERHAPS)
def test_what_may_be_an_argument(given: Any, wanted: Any) -> None:
    assert not of(given).never_fits(of(wanted))


def test_types_are_told_in_words() -> None:
    assert in_words(frozenset({"null", "string"})) == "a string or null"
    assert in_words(NUMBER) == "a number"
    assert in_words(frozenset({"integer"})) == "an integer"
