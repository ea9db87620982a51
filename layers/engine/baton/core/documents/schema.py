"""The published JSON Schema of workflow documents (2020-12) and the registry of node types, as data.

It turns the models of parts/ into schemas that an editor or a form can use.
The fields are in models.py, parts/ and nodes/, validation is in compile/.

The schema refuses nothing that the compiler accepts.
What it cannot say is left to the compiler: that names exist, that arguments
fit their tools, that nothing waits for itself, that `366d` is the longest
duration, that a month has such a day, that a dollar has a million parts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from baton.core.conditions.document import CONDITIONS
from baton.core.documents.familiar import BELOW, INSIDE, deep_copy
from baton.core.documents.nodes.base import NodeDocument
from baton.core.documents.nodes.node_model import BY_KEY
from baton.core.documents.nodes.own import FIELDS, OwnKind, OwnKinds
from baton.core.documents.nodes.registry import NODE_TYPES
from baton.core.documents.parts.bounds import LEAST_USD, MOST_USD, LimitsModel
from baton.core.documents.parts.control import SHARE_PATTERN
from baton.core.documents.parts.failing_schema import definitions
from baton.core.documents.parts.fields import (
    API_NAME,
    EXPRESSION,
    MAX_NODES,
    MOST_OPERATIONS,
    TEMPLATE,
    TEXT,
    ref,
)
from baton.core.documents.parts.naming import NODE_NAME
from baton.core.documents.read import DEFINED, WorkflowModel
from baton.core.expressions import LONGEST_S, PATTERN, SAGA_FIELDS, SHORTEST_S

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID = "urn:baton:workflow-schema:1"
_REF = "#/$defs/"
_LINE_BREAK = re.compile(r"(?<!\n)\n(?!\n)")
_ANYTHING = {"$ref": f"{_REF}JsonValue"}
# Before the name of a field that nodes of several kinds have: it is described once, not in every kind. No
# application's kind is called `node.…`.
_OF_NODES = "node."
# Models of kinds of node: described where they stand, in the one kind that has it.
_IN_PLACE = {model.__name__ for kind in NODE_TYPES for model in (kind.model, *kind.parts.values()) if model}
# Models whose objects are described once.
_SCHEMA_PARTS = {
    "BranchModel": "branch",
    "RuleModel": "rule",
    "LoopModel": "loop",
    "PauseModel": "pause",
    "PollModel": "poll",
    "JoinModel": "join",
    "MapModel": "map",
    "CallbackModel": "callback",
    "LimitsModel": "limits",
    "CountModel": "countLimit",
    "TimeModel": "timeLimit",
    "BytesModel": "bytesLimit",
    "CostModel": "costLimit",
    "GuardrailsModel": "guardrails",
    "ApprovalModel": "approval",
    "ReplanModel": "replan",
    "CompensateModel": "compensation",
    "EscalationModel": "escalation",
    "RiskRuleModel": "riskRule",
    "HandlerModel": "failureHandler",
    "ScheduleModel": "schedule",
    "EventsModel": "events",
    "StartRuleModel": "startRule",
    "SignalRuleModel": "signalRule",
    "GraphModel": "namedGraph",
}


def _of_kinds(*, runs: bool) -> dict[str, dict[str, Any]]:
    return {name: of for kind in NODE_TYPES if kind.runs is runs for name, of in kind.definitions.items()}


def _names(*, at_least: int) -> dict[str, Any]:
    items = {"type": "array", "items": ref("nodeName"), "uniqueItems": True}
    return {"anyOf": [ref("nodeName"), {**items, "minItems": at_least} if at_least else items]}


# What many fields have.
SHARED: dict[str, dict[str, Any]] = {
    "nodeName": {
        "description": "Name of a node.",
        "type": "string",
        "pattern": NODE_NAME,
        "examples": ["hold"],
    },
    "after": {
        "anyOf": [ref("nodeName"), {"type": "array", "items": ref("nodeName")}],
        "default": [],
        "examples": ["search", ["deposit", "order"]],
    },
    "targets": _names(at_least=1),
    "allowed": _names(at_least=0),
    "toolPatterns": {
        "anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "uniqueItems": True}]
    },
    "operations": {
        "type": "object",
        "propertyNames": {"pattern": API_NAME},
        "additionalProperties": {
            "anyOf": [
                {"type": "string"},
                {
                    "type": "array",
                    "items": {"type": "string"},
                    "minItems": 1,
                    "maxItems": MOST_OPERATIONS,
                    "uniqueItems": True,
                },
            ]
        },
        "maxProperties": MOST_OPERATIONS,
        "examples": [{"shop": ["listOrders", "getOrder"]}],
    },
    "duration": {
        "description": "A duration: a number with a unit (ms, s, m, h, d), or a number of seconds. From 1 ms to 366 days.",
        "type": ["string", "number"],
        "pattern": PATTERN,
        "minimum": SHORTEST_S,
        "maximum": LONGEST_S,
        "examples": ["500ms", "5s", "10m", "1.5h", "2d", 90],
    },
    "rate": {
        "description": "Interval between ticks: a duration, `5 minutes` or `rate(5 minutes)`. From a minute to 366 days.",
        "type": ["string", "number"],
        "minimum": 60,
        "maximum": LONGEST_S,
        "examples": ["5m", "rate(5 minutes)"],
    },
    **_of_kinds(runs=True),
    "textValue": TEXT,
    "template": TEMPLATE,
    "dollars": {"type": "number", "minimum": LEAST_USD, "maximum": MOST_USD},
    "factor": {"type": "number", "minimum": 1, "maximum": 10},
    "list": {
        "description": "A list, or one expression that gives one.",
        "anyOf": [
            {"type": "array", "items": ref("value")},
            {"type": "string", "pattern": r"\$\{"},
        ],
        "examples": ["${input.guests}"],
    },
    "waitFor": {"anyOf": [{"enum": ["all", "any"]}, {"type": "integer", "minimum": 1, "maximum": MAX_NODES}]},
    "tolerated": {
        "type": ["integer", "string"],
        "minimum": 0,
        "maximum": MAX_NODES,
        "pattern": SHARE_PATTERN,
    },
    "jsonSchema": {"type": ["object", "boolean"]},
    "jsonSchemaOrName": {"type": ["object", "boolean", "string"], "pattern": NODE_NAME},
    "expression": {
        "description": "One expression, with `${}` around it or without.",
        **EXPRESSION,
        "examples": ["output.next", "${ctx.plan.output.steps}"],
    },
    "value": {
        "description": "Any JSON value. In a string, `${…}` is replaced: `input.…` is the saga's input, `input.NAME?` a part of it or null, "
        "`ctx.NODE.output.…` what a node gave, `ctx.NODE.output?.…` the same or null, `saga.…` one of "
        + ", ".join(SAGA_FIELDS)
        + ". A string that is one expression and nothing else becomes what it names, of whatever type. `$${` stands "
        "for `${`.",
        **ref("textValue"),
        "items": ref("value"),
        "additionalProperties": ref("value"),
        "examples": ["${input.city}", "${ctx.search.output.tables[0].id}", "Hello, ${saga.user}!"],
    },
    **_of_kinds(runs=False),
}


def document_schema(own: OwnKinds = MappingProxyType({})) -> dict[str, Any]:
    """Return the JSON Schema of a workflow document, also with an application's own kinds;
    a new value each time.
    """
    made = _made()
    whole = made["WorkflowModel"]
    fields = _clean(whole["properties"], made)
    kinds = {kind.kind: _node_schema(kind, made) for kind in NODE_TYPES}
    theirs: dict[str, Any] = {}
    for name, kind in own.items():
        kinds[name], inside = _own_schema(kind)
        theirs |= inside
    one_kind = {
        "description": made["NodeModel"]["description"],
        "oneOf": [{"$ref": f"{_REF}{kind}"} for kind in kinds],
    }
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
        "$defs": {"node": one_kind, **kinds, **_used_by([fields, kinds]), **theirs},
    }
    copied: dict[str, Any] = deep_copy(document)
    return copied


def node_types(own: OwnKinds = MappingProxyType({})) -> list[dict[str, Any]]:
    """Return every kind of node: its name and drawing, its abilities, and its JSON Schemas.

    `schema` is that of one node, complete in itself; `input` that of its `with`, None for a kind that takes
    none; `output`
    that of what every such node gives.
    `example` is such a node; `runs` is false for a kind that this version knows and cannot run.
    """
    made = _made()
    built_in = [deep_copy(_described(kind, made)) for kind in NODE_TYPES]
    return [*built_in, *(deep_copy(_own_described(kind)) for kind in own.values())]


def _described(kind: NodeDocument, made: Mapping[str, Any]) -> dict[str, Any]:
    node = _node_schema(kind, made)
    return {
        "kind": kind.kind,
        "version": kind.version,
        "title": kind.title,
        "icon": kind.icon,
        "description": kind.description,
        "runs": kind.runs,
        "capabilities": kind.capabilities,
        "input": kind.input,
        "output": kind.output,
        "schema": {"$schema": DIALECT, **node, "$defs": _used_by(node)},
        "example": kind.example,
    }


def _node_schema(kind: NodeDocument, made: Mapping[str, Any]) -> dict[str, Any]:
    field = _clean_one(made["NodeModel"]["properties"][kind.key], made)
    return _node_of(kind, field, kind.fields)


def _node_of(kind: NodeDocument | OwnKind, field: dict[str, Any], others: Iterable[str]) -> dict[str, Any]:
    """Return the schema of a node: the field that makes it one of its kind,
    and those that other kinds have, too.
    """
    return {
        "title": kind.title,
        "description": kind.description,
        "type": "object",
        "required": [kind.key],
        "additionalProperties": False,
        "properties": {kind.key: field, **{name: ref(f"{_OF_NODES}{name}") for name in others}},
        "examples": [kind.example],
    }


def _own_described(kind: OwnKind) -> dict[str, Any]:
    node, inside = _own_schema(kind)
    return {
        "kind": kind.key,
        "version": kind.version,
        "title": kind.title,
        "icon": kind.icon,
        "description": kind.description,
        "runs": True,
        "capabilities": NodeDocument().capabilities,
        "input": None,
        "output": {},
        "schema": {"$schema": DIALECT, **node, "$defs": {**_used_by(node), **inside}},
        "example": kind.example,
    }


def _own_schema(kind: OwnKind) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the schema of a node of an application's own kind,
    and the definitions that it refers to besides those of all nodes.
    """
    fields = kind.model.model_json_schema(ref_template=f"{_REF}{kind.key}.{{model}}")
    inside = {f"{kind.key}.{name}": part for name, part in fields.pop("$defs", {}).items()}
    return _node_of(kind, fields, FIELDS), inside


# ---- from the models -------------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _made() -> Mapping[str, Any]:
    """Return pydantic's JSON Schemas of the models, by their names."""
    models = (WorkflowModel, LimitsModel)
    _, made = models_json_schema([(model, "validation") for model in models])
    described: Mapping[str, Any] = unwrap_descriptions(made["$defs"])
    return described


def unwrap_descriptions(schema: Any) -> Any:
    """Return a JSON Schema made of models, its descriptions without the line breaks of their docstrings."""
    if isinstance(schema, dict):
        return {
            key: _LINE_BREAK.sub(" ", value)
            if key == "description" and isinstance(value, str)
            else unwrap_descriptions(value)
            for key, value in schema.items()
        }
    return [unwrap_descriptions(item) for item in schema] if isinstance(schema, list) else schema


def _definitions() -> Mapping[str, Any]:
    """Return everything that a schema may refer to, by its name."""
    made = _made()
    models: dict[str, type[BaseModel]] = {
        model.__name__: model for model in (*INSIDE.values(), *BELOW.values())
    }
    parts = {name: _part(made[model], made, models[model]) for model, name in _SCHEMA_PARTS.items()}
    fields = _clean(made["NodeModel"]["properties"], made)
    of_nodes = {f"{_OF_NODES}{name}": field for name, field in fields.items() if name not in BY_KEY}
    return {**SHARED, **CONDITIONS, **definitions(), **parts, **of_nodes}


def _part(described: Mapping[str, Any], made: Mapping[str, Any], model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of an object, or of its short form."""
    inside = _object(described, made)
    short = getattr(model, "short", "")
    if not short:
        return inside
    said_below = ("default", "description", "examples")
    value = {key: item for key, item in inside["properties"][short].items() if key not in said_below}
    return {"description": inside.pop("description"), "anyOf": [value, inside]}


def _object(described: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    kept = ("description", "type", "required", "additionalProperties", "oneOf")
    inside = {key: described[key] for key in kept if key in described}
    return {**inside, "properties": _clean(described["properties"], made)}


def _clean(fields: Mapping[str, Any], made: Mapping[str, Any]) -> dict[str, Any]:
    """Return pydantic's descriptions of fields without titles, and without null for a field left out."""
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
    if model == "NodeModel":
        return {**schema, "$ref": f"{_REF}node"}
    if model in _IN_PLACE:
        return _object(made[model], made)
    if model in _SCHEMA_PARTS:
        return {**schema, "$ref": f"{_REF}{_SCHEMA_PARTS[model]}"}
    return schema


def _used_by(schema: Any) -> dict[str, Any]:
    """Return the definitions that a schema refers to, directly or through others."""
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
