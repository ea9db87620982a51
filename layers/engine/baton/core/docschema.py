"""The published JSON Schema of workflow documents (2020-12) and the registry of node types, as data.

Belongs here: what turns the models of definition.py into schemas that an editor or a form can use. Does not belong
here: what the fields are and mean (definition.py, nodetypes.py), validation of documents (compile.py).

The schema refuses nothing that the compiler accepts. What it cannot say is left to the compiler: that names exist,
that arguments fit their tools, that nothing waits for itself, that `366d` is the longest duration.
"""

from __future__ import annotations

from typing import Any

from baton.core.definition import DEFINED, NODE_NAME, WorkflowModel
from baton.core.durations import LONGEST_S, PATTERN, SHORTEST_S
from baton.core.expressions import SAGA_FIELDS, SPACE
from baton.core.nodetypes import NODE_TYPES, NodeType

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID = "urn:baton:workflow-schema:1"


def _text_pattern() -> str:
    """Strings whose expressions can all be read: the language of expressions.py as a regular expression.

    No look-ahead, and each run of `$` can be read in one way only: so a long text takes no engine long.
    """
    name = "[A-Za-z_][A-Za-z0-9_]*"
    key = rf"""(?:\.{name}|\["[^"\\}}]*"\]|\['[^'\\}}]*'\])"""
    step = rf"(?:{key}|\[[0-9]{{1,9}}\])"
    output = r"""(?:\.output|\["output"\]|\['output'\])"""
    fields = "|".join(SAGA_FIELDS)
    field = rf"""(?:\.(?:{fields})|\["(?:{fields})"\]|\['(?:{fields})'\])"""
    space = "[" + SPACE.encode("unicode_escape").decode() + "]*"
    expression = rf"{space}(?:input{step}*|ctx{key}{output}{step}*|saga{field}){space}"
    return rf"^(?:[^$]|\$\{{{expression}\}}|\$\$+\{{|\$+[^${{])*\$*$"


_SHARED: dict[str, dict[str, Any]] = {
    "nodeName": {
        "description": "Name of a node.",
        "type": "string",
        "pattern": NODE_NAME,
        "examples": ["hold"],
    },
    "after": {
        "anyOf": [
            {"$ref": "#/$defs/nodeName"},
            {"type": "array", "items": {"$ref": "#/$defs/nodeName"}},
        ],
        "default": [],
        "examples": ["search", ["deposit", "order"]],
    },
    "duration": {
        "description": "A duration: a number with a unit (ms, s, m, h, d), or a number of seconds. From 1 ms to 366 days.",
        "type": ["string", "number"],
        "pattern": PATTERN,
        "minimum": SHORTEST_S,
        "maximum": LONGEST_S,
        "examples": ["500ms", "5s", "10m", "1.5h", "2d", 90],
    },
    "value": {
        "description": "Any JSON value. In a string, `${…}` is replaced: `input.…` is the saga's input, "
        "`ctx.NODE.output.…` what a node gave, `saga.…` one of "
        + ", ".join(SAGA_FIELDS)
        + ". A string that is one "
        "expression and nothing else becomes what it names, of whatever type. `$${` stands for `${`.",
        "pattern": _text_pattern(),
        "items": {"$ref": "#/$defs/value"},
        "additionalProperties": {"$ref": "#/$defs/value"},
        "examples": ["${input.city}", "${ctx.search.output.tables[0].id}", "Hello, ${saga.user}!"],
    },
}


def document_schema() -> dict[str, Any]:
    """The JSON Schema of a workflow document; a new value each time."""
    made = WorkflowModel.model_json_schema()
    fields = _clean(made["properties"], made["$defs"])
    del fields["$schema"]["default"]
    nodes = fields["nodes"]
    del nodes["patternProperties"]
    nodes |= {
        "propertyNames": {"$ref": "#/$defs/nodeName"},
        "additionalProperties": {"$ref": "#/$defs/node"},
    }
    kinds = {kind.kind: _node_schema(kind, made) for kind in NODE_TYPES}
    one_kind = {
        "description": made["$defs"]["NodeModel"]["description"],
        "oneOf": [{"$ref": f"#/$defs/{kind}"} for kind in kinds],
    }
    return {
        "$schema": DIALECT,
        "$id": SCHEMA_ID,
        "title": "Baton workflow",
        "description": made["description"],
        "type": "object",
        "required": made["required"],
        "additionalProperties": False,
        "properties": fields,
        "$defs": {"node": one_kind, **kinds, **_used_by([fields, kinds])},
    }


def node_types() -> list[dict[str, Any]]:
    """Every kind of node as `{"kind", "description", "schema", "example"}`.

    `schema` is the JSON Schema of one node of that kind, complete in itself; `example` is such a node.
    """
    made = WorkflowModel.model_json_schema()
    return [_described(kind, made) for kind in NODE_TYPES]


def _described(kind: NodeType, made: dict[str, Any]) -> dict[str, Any]:
    node = _node_schema(kind, made)
    schema = {"$schema": DIALECT, **node, "$defs": _used_by(node)}
    return {
        "kind": kind.kind,
        "description": kind.description,
        "schema": schema,
        "example": _copy(kind.example),
    }


def _node_schema(kind: NodeType, made: dict[str, Any]) -> dict[str, Any]:
    known = _clean(made["$defs"]["NodeModel"]["properties"], made["$defs"])
    return {
        "title": kind.title,
        "description": kind.description,
        "type": "object",
        "required": [kind.key],
        "additionalProperties": False,
        "properties": {name: known[name] for name in (kind.key, *kind.fields)},
        "examples": [_copy(kind.example)],
    }


def _clean(fields: dict[str, Any], models: dict[str, Any]) -> dict[str, Any]:
    """Fields as pydantic describes them, without what is about Python: null for what is left out, and titles."""
    return {name: _clean_one(field, models) for name, field in fields.items()}


def _clean_one(field: dict[str, Any], models: dict[str, Any]) -> dict[str, Any]:
    schema = {key: value for key, value in field.items() if key != "title"}
    if "anyOf" in schema:  # of the value and null
        value, _ = schema.pop("anyOf")
        del schema["default"]
        schema = {**value, **schema}
    if (name := schema.pop(DEFINED, None)) is not None:
        return {"$ref": f"#/$defs/{name}", **schema}
    if "additionalProperties" in schema:
        inner = schema.pop("additionalProperties")
        schema |= {"additionalProperties": _clean_one(inner, models)} if DEFINED in inner else {}
    if schema.get("$ref") == "#/$defs/WaitModel":
        model = models["WaitModel"]
        inside = {key: model[key] for key in ("description", "type", "additionalProperties", "oneOf")}
        return {**inside, "properties": _clean(model["properties"], models)}
    return schema


def _used_by(schema: Any) -> dict[str, Any]:
    """The shared definitions that a schema refers to, directly or through others."""
    names: dict[str, None] = {}
    look_at = [schema]
    while look_at:
        value = look_at.pop()
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).removeprefix("#/$defs/")
            if name in _SHARED and name not in names:
                names[name] = None
                look_at.append(_SHARED[name])
            look_at += value.values()
        elif isinstance(value, list):
            look_at += value
    return {name: _copy(shared) for name, shared in _SHARED.items() if name in names}


def _copy(value: Any) -> Any:
    """So that nobody who changes what they were given changes it for others."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value
