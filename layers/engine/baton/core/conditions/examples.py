"""A value to try: what fits a JSON Schema well enough to be typed and changed.

Pure. What is returned was held against the whole schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.core.conditions.schema import violations

_DEEPEST = 20
_TEXTS = {
    "date-time": "2026-12-24T19:30:00Z",
    "date": "2026-12-24",
    "time": "19:30:00Z",
    "duration": "PT1H",
    "email": "ada@example.com",
    "uri": "https://example.com",
    "uuid": "123e4567-e89b-42d3-a456-426614174000",
}


def example_of(schema: Any) -> tuple[Any] | None:
    """A value that the schema takes, as the only item, because it may be null; None where none was found."""
    given = schema.get("examples") if isinstance(schema, Mapping) else None
    for value in (*(given if isinstance(given, list) else ()), {}, _made(schema, schema, _DEEPEST)):
        if not violations(schema, value):
            return (value,)
    return None


def _made(schema: Any, root: Any, deep: int) -> Any:
    if not isinstance(schema, Mapping) or not deep:
        return None
    if isinstance(ref := schema.get("$ref"), str):
        return _made(_found(root, ref), root, deep - 1)
    for name in ("const", "default"):
        if name in schema:
            return schema[name]
    for name in ("examples", "enum"):
        if isinstance(schema.get(name), list) and schema[name]:
            return schema[name][0]
    for name in ("anyOf", "oneOf", "allOf"):
        if isinstance(schema.get(name), list) and schema[name]:
            return _made(schema[name][0], root, deep - 1)
    return _of_type(schema, root, deep)


def _of_type(schema: Mapping[str, Any], root: Any, deep: int) -> Any:
    kind = schema.get("type", "object" if "properties" in schema else None)
    match kind[0] if isinstance(kind, list) and kind else kind:
        case "object":
            properties = schema.get("properties") or {}
            return {
                name: _made(properties.get(name), root, deep - 1) for name in schema.get("required") or ()
            }
        case "array":
            return [_made(schema.get("items"), root, deep - 1)] * int(schema.get("minItems") or 0)
        case "integer" | "number":
            return _number(schema)
        case "string":
            text = _TEXTS.get(schema.get("format", ""), "text")
            return text.ljust(int(schema.get("minLength") or 0), "x")[: int(schema.get("maxLength") or 1_000)]
        case "boolean":
            return True
    return None


def _number(schema: Mapping[str, Any]) -> float:
    if "minimum" in schema:
        return float(schema["minimum"]) if schema["minimum"] % 1 else int(schema["minimum"])
    least = schema.get("exclusiveMinimum", 0)
    return int(min(schema.get("maximum", least + 1), least + 1))


def _found(root: Any, ref: str) -> Any:
    """What a reference inside the schema leads to; None for any other."""
    found = root if ref.startswith("#") else None
    for step in ref.lstrip("#").split("/")[1:]:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found
