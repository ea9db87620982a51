"""The published JSON Schema of workflow documents (2020-12) and the registry of node types, as data.

Belongs here: what turns the models of definition/ into schemas that an editor or a form can use. Does not belong
here: what the fields are and mean (definition/, node_types.py), what many fields share (schema_shared.py), validation of
documents (compile).

The schema refuses nothing that the compiler accepts. What it cannot say is left to the compiler: that names exist,
that arguments fit their tools, that nothing waits for itself, that `366d` is the longest duration, that a month has
such a day, that a dollar has a million parts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from baton.core.conditions.docschema import CONDITION
from baton.core.documents.bounds import LimitsModel
from baton.core.documents.definition import DEFINED, WorkflowModel
from baton.core.documents.failing_schema import definitions
from baton.core.documents.node_types import NODE_TYPES, NodeType
from baton.core.documents.places import INSIDE
from baton.core.documents.schema_shared import SHARED

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID = "urn:baton:workflow-schema:1"
_REF = "#/$defs/"
_ANYTHING = {"$ref": f"{_REF}JsonValue"}
# Models whose objects are described once. A wait is described where it stands, in the one kind that has it.
_PARTS = {
    "BranchModel": "branch",
    "RuleModel": "rule",
    "LoopModel": "loop",
    "JoinModel": "join",
    "LimitsModel": "limits",
    "CountModel": "countLimit",
    "TimeModel": "timeLimit",
    "BytesModel": "bytesLimit",
    "CostModel": "costLimit",
    "GuardrailsModel": "guardrails",
}


def document_schema() -> dict[str, Any]:
    """The JSON Schema of a workflow document; a new value each time."""
    made = _made()
    whole = made["WorkflowModel"]
    fields = _clean(whole["properties"], made)
    kinds = {kind.kind: _node_schema(kind, made) for kind in NODE_TYPES}
    one_kind = {
        "description": made["NodeModel"]["description"],
        "oneOf": [{"$ref": f"{_REF}{kind}"} for kind in kinds],
    }
    fields["nodes"]["additionalProperties"] = {"$ref": f"{_REF}node"}
    document = {
        "$schema": DIALECT,
        "$id": SCHEMA_ID,
        "title": "Baton workflow",
        "description": whole["description"],
        "type": "object",
        "required": whole["required"],
        "additionalProperties": False,
        "properties": fields,
        # `timeout` is a short way of writing `limits.wall_time`.
        "dependentSchemas": {"timeout": {"properties": {"limits": {"properties": {"wall_time": False}}}}},
        "$defs": {"node": one_kind, **kinds, **_used_by([fields, kinds])},
    }
    copied: dict[str, Any] = _copy(document)
    return copied


def node_types() -> list[dict[str, Any]]:
    """Every kind of node as `{"kind", "description", "runs", "schema", "example"}`.

    `schema` is the JSON Schema of one node of that kind, complete in itself; `example` is such a node; `runs` is
    false for a kind that this version knows and cannot run.
    """
    made = _made()
    return [_copy(_described(kind, made)) for kind in NODE_TYPES]


def _described(kind: NodeType, made: Mapping[str, Any]) -> dict[str, Any]:
    node = _node_schema(kind, made)
    return {
        "kind": kind.kind,
        "description": kind.description,
        "runs": kind.runs,
        "schema": {"$schema": DIALECT, **node, "$defs": _used_by(node)},
        "example": kind.example,
    }


def _node_schema(kind: NodeType, made: Mapping[str, Any]) -> dict[str, Any]:
    known = _clean(made["NodeModel"]["properties"], made)
    return {
        "title": kind.title,
        "description": kind.description,
        "type": "object",
        "required": [kind.key],
        "additionalProperties": False,
        "properties": {name: known[name] for name in (kind.key, *kind.fields)},
        "examples": [kind.example],
    }


# ---- from the models -------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _made() -> Mapping[str, Any]:
    """What pydantic makes of the models, by their names."""
    models = (WorkflowModel, LimitsModel)
    _, made = models_json_schema([(model, "validation") for model in models])
    described: Mapping[str, Any] = made["$defs"]
    return described


def _definitions() -> Mapping[str, Any]:
    """Everything that a schema may refer to, by its name."""
    made = _made()
    models: dict[str, type[BaseModel]] = {model.__name__: model for model in INSIDE.values()}
    parts = {name: _part(made[model], made, models[model]) for model, name in _PARTS.items()}
    return {**SHARED, "condition": CONDITION, **definitions(), **parts}


def _part(described: Mapping[str, Any], made: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """The schema of an object, or of what it can be written as in short."""
    inside = _object(described, made)
    short = getattr(model, "short", "")
    if not short:
        return inside
    value = {key: item for key, item in inside["properties"][short].items() if key != "default"}
    return {"description": inside.pop("description"), "anyOf": [value, inside]}


def _object(described: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("description", "type", "required", "additionalProperties", "oneOf")
    inside = {key: described[key] for key in kept if key in described}
    return {**inside, "properties": _clean(described["properties"], made)}


def _clean(fields: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """Fields as pydantic describes them, without what is about Python: null for what is left out, and titles."""
    return {name: _clean_one(field, made) for name, field in fields.items()}


def _clean_one(field: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    schema = {key: value for key, value in field.items() if key != "title"}
    if schema.get("default", ...) in (None, ""):
        del schema["default"]
    if "anyOf" in schema:  # of the value and null
        value, _ = schema.pop("anyOf")
        schema = {**value, **schema}
    if (name := schema.pop(DEFINED, None)) is not None:
        return {"$ref": f"{_REF}{name}", **schema}
    if "patternProperties" in schema:  # by the names of nodes, or names like them
        (inner,) = schema.pop("patternProperties").values()
        schema |= {
            "propertyNames": {"$ref": f"{_REF}nodeName"},
            "additionalProperties": _clean_one(inner, made),
        }
    elif isinstance(schema.get("additionalProperties"), dict):
        inner = schema.pop("additionalProperties")
        schema |= {} if inner == _ANYTHING else {"additionalProperties": _clean_one(inner, made)}
    if "items" in schema:
        schema["items"] = _clean_one(schema["items"], made)
    model = str(schema.get("$ref", "")).removeprefix(_REF)
    if model == "WaitModel":
        return _object(made[model], made)
    if model in _PARTS:
        return {"description": made[model]["description"], **schema, "$ref": f"{_REF}{_PARTS[model]}"}
    return schema


def _used_by(schema: Any) -> dict[str, Any]:
    """The definitions that a schema refers to, directly or through others."""
    definitions = _definitions()
    names: dict[str, None] = {}
    look_at = [schema]
    while look_at:
        value = look_at.pop()
        if isinstance(value, dict):
            name = str(value.get("$ref", "")).removeprefix(_REF)
            if name in definitions and name not in names:
                names[name] = None
                look_at.append(definitions[name])
            look_at += value.values()
        elif isinstance(value, list):
            look_at += value
    return {name: item for name, item in definitions.items() if name in names}


def _copy(value: Any) -> Any:
    """So that nobody who changes what they were given changes it for others."""
    if isinstance(value, dict):
        return {key: _copy(item) for key, item in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value
