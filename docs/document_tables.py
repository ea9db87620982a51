"""The tables of docs/documents.md and the published schema, made of the schema that core/docschema.py gives.

What belongs here: how a schema becomes rows and a file. What does not: markers and pages (generate.py).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from baton.core.docschema import document_schema
from baton.core.nodetypes import NODE_TYPES
from baton.core.yamltext import write_yaml


def schema_text() -> str:
    """The JSON Schema as the file that is published."""
    return json.dumps(document_schema(), indent=2, ensure_ascii=False) + "\n"


def document_fields() -> str:
    """The fields of a document."""
    schema = document_schema()
    return _rows(schema, schema)


def node_fields() -> str:
    """A section for each kind of node: what it is for, an example, its fields."""
    schema = document_schema()
    return "\n\n".join(_section(schema, kind) for kind in NODE_TYPES)


def _section(schema: dict[str, Any], kind: Any) -> str:
    node = schema["$defs"][kind.kind]
    example = write_yaml({"nodes": {"example": dict(kind.example)}})
    rows = _rows(node, schema)
    return f"### {kind.title}\n\n{kind.description}\n\n```yaml\n{example}```\n\n{rows}"


def _rows(owner: dict[str, Any], schema: dict[str, Any]) -> str:
    lines = ["| field | value | required | meaning |", "|---|---|---|---|"]
    lines += ["| " + " | ".join(row) + " |" for row in _fields(owner, schema, "")]
    return "\n".join(lines)


def _fields(
    owner: dict[str, Any], schema: dict[str, Any], prefix: str
) -> Iterator[tuple[str, str, str, str]]:
    for name, field in owner["properties"].items():
        required = "yes" if name in owner.get("required", ()) else ""
        if "oneOf" in field:
            choice = " or ".join(f"`{shape['required'][0]}`" for shape in field["oneOf"])
            yield f"`{prefix}{name}`", f"an object with {choice}", required, field["description"]
            yield from _fields(field, schema, f"{prefix}{name}.")
        else:
            yield f"`{prefix}{name}`", _value(field, schema), required, field["description"]


def _value(field: dict[str, Any], schema: dict[str, Any]) -> str:
    shared = {
        "#/$defs/duration": "a [duration](#durations)",
        "#/$defs/value": "any [value](#expressions)",
        "#/$defs/after": "a name of a node, or a list of such names",
    }
    if "$ref" in field:
        return shared[field["$ref"]]
    if field["type"] == "object":
        inner = field.get("additionalProperties")
        if inner == {"$ref": "#/$defs/value"}:
            return "an object of [values](#expressions)"
        if inner is not None:
            most, pattern = field["maxProperties"], schema["$defs"]["nodeName"]["pattern"]
            return f"an object of 1 to {most:,} [nodes](#nodes); names match `{pattern}`"
        return "an object"
    if "pattern" in field:
        return f"text that matches `{field['pattern']}`"
    return "text"
