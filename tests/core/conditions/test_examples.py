"""Values to try, for people, and as arguments in tests: each fits its schema, or none is given."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.conditions.document import example_of


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({}, {}),
        (True, {}),
        ({"examples": [{"n": 1}]}, {"n": 1}),
        ({"type": "integer", "examples": ["no", 4]}, 4),
        ({"type": "integer", "minimum": 3}, 3),
        ({"type": "number", "minimum": 0.5}, 0.5),
        ({"type": "integer", "exclusiveMinimum": 7}, 8),
        ({"type": "integer", "maximum": -2}, -2),
        ({"type": ["string", "null"], "format": "date"}, "2026-12-24"),
        ({"type": "string", "maxLength": 2}, "te"),
        ({"type": "boolean"}, True),
        ({"type": "null"}, None),
        ({"enum": ["red", "blue"]}, "red"),
        ({"type": "array", "items": {"const": 4}, "minItems": 2}, [4, 4]),
        ({"anyOf": [{"type": "string", "default": "soup"}, {"type": "null"}]}, "soup"),
        (
            {"required": ["a"], "properties": {"a": {"type": "string"}, "b": {}}, "type": "object"},
            {"a": "text"},
        ),
    ],
)
def test_a_value_is_made_that_the_schema_takes(schema: Any, value: Any) -> None:
    assert example_of(schema) == (value,)


ENDLESS = {
    "$ref": "#/$defs/a",
    "$defs": {"a": {"type": "object", "required": ["a"], "properties": {"a": {"$ref": "#/$defs/a"}}}},
}


@pytest.mark.parametrize(
    "schema",
    [False, {"type": "string", "pattern": "^[A-Z]{3}$"}, {"type": "soup"}, {"$ref": "other.json"}, ENDLESS],
)
def test_no_value_is_given_where_none_was_found(schema: Any) -> None:
    assert example_of(schema) is None
