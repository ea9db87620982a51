"""The published JSON Schema of workflow documents (2020-12) and the registry of node types, as data.

It is made of the models in models.py, parts/ and nodes/, which say each field, its type and its purpose once.

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

from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from baton.core.conditions.document import CONDITIONS
from baton.core.documents.familiar import deep_copy
from baton.core.documents.models import BY_KEY, WorkflowModel
from baton.core.documents.nodes.base import NodeDocument
from baton.core.documents.nodes.own import FIELDS, OwnKind, OwnKinds
from baton.core.documents.nodes.registry import NODE_TYPES
from baton.core.documents.parts.control import LimitsModel
from baton.core.documents.parts.fields import BODY, DEFINED, SHORT, TEMPLATE, TEXT, without_null
from baton.core.failures.strategies.base import Strategy
from baton.core.failures.strategies.registry import STRATEGIES
from baton.core.graph.graph import NODE_NAME

DIALECT = "https://json-schema.org/draft/2020-12/schema"
SCHEMA_ID = "urn:baton:workflow-schema:1"
_REF = "#/$defs/"
_LINE_BREAK = re.compile(r"(?<!\n)\n(?!\n)")
# Before the name of a field that nodes of several kinds have: it is described once, not in every kind. No
# application's kind is called `node.…`.
_OF_NODES = "node."
_ANYTHING = {"$ref": f"{_REF}JsonValue"}
# Models of kinds of node: described where they stand, in the one kind that has it. All others are described once,
# by the name of their class if there is none here.
_IN_PLACE = {kind.model.__name__ for kind in NODE_TYPES if kind.model}
_NAMES = {
    "NodeModel": "node", "GraphModel": "namedGraph", "CountModel": "countLimit", "TimeModel": "timeLimit",
    "BytesModel": "bytesLimit", "RetriesModel": "retryLimit", "CostModel": "costLimit", "CompensateModel": "compensation",
    "HandlerModel": "failureHandler", "CatchModel": "catchRule", "PolicyModel": "failoverPolicy",
    "MatchModel": "failoverMatch", "AttemptModel": "failoverAttempt", "WindowModel": "failoverWindow",
    "ActionModel": "failoverAction", "PriceModel": "modelPrice",
}  # fmt: skip
_SHARED: dict[str, dict[str, Any]] = {
    "nodeName": {
        "description": "Name of a node.",
        "type": "string",
        "pattern": NODE_NAME,
        "examples": ["hold"],
    },
    "textValue": TEXT,
    "template": TEMPLATE,
}


def document_schema(own: OwnKinds = MappingProxyType({})) -> dict[str, Any]:
    """Return the JSON Schema of a workflow document, also with an application's own kinds;
    a new value each time.
    """
    published = _published()
    whole = published.objects["WorkflowModel"]
    kinds = {kind.kind: _node_schema(kind, published) for kind in NODE_TYPES}
    theirs: dict[str, Any] = {}
    for name, kind in own.items():
        kinds[name], inside = _own_schema(kind)
        theirs |= inside
    one_kind = {
        "description": published.objects["NodeModel"]["description"],
        "oneOf": [{"$ref": f"{_REF}{kind}"} for kind in kinds],
    }
    document = {
        "$schema": DIALECT,
        "$id": SCHEMA_ID,
        "title": "Baton workflow",
        **whole,
        "$defs": {"node": one_kind, **kinds, **published.used_by([whole, kinds]), **theirs},
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
    published = _published()
    built_in = [deep_copy(_described(kind, published)) for kind in NODE_TYPES]
    return [*built_in, *(deep_copy(_own_described(kind)) for kind in own.values())]


def _described(kind: NodeDocument, published: _Published) -> dict[str, Any]:
    node = _node_schema(kind, published)
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
        "schema": {"$schema": DIALECT, **node, "$defs": published.used_by(node)},
        "example": kind.example,
    }


def _node_schema(kind: NodeDocument, published: _Published) -> dict[str, Any]:
    return _node_of(kind, published.objects["NodeModel"]["properties"][kind.key], kind.fields)


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
        "properties": {kind.key: field, **{name: {"$ref": f"{_REF}{_OF_NODES}{name}"} for name in others}},
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
        "schema": {"$schema": DIALECT, **node, "$defs": {**_published().used_by(node), **inside}},
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


class _Untitled(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


class _Published:
    """Published schemas: `objects` of the models by their names, and `definitions`."""

    def __init__(self) -> None:
        _, made = models_json_schema(
            [(WorkflowModel, "validation"), (LimitsModel, "validation")], schema_generator=_Untitled
        )
        self._made: Mapping[str, Any] = unwrap_descriptions(made["$defs"])
        self._bodies: dict[str, Any] = {}
        self.objects = {name: self._object(of) for name, of in self._made.items() if "properties" in of}
        parts = {
            _name(name): self._part(name)
            for name in self.objects
            if name not in {"WorkflowModel", "NodeModel"}
        }
        fields = self.objects["NodeModel"]["properties"]
        of_nodes = {f"{_OF_NODES}{name}": field for name, field in fields.items() if name not in BY_KEY}
        shared = {name: self._clean(of) for name, of in _SHARED.items()}
        self.definitions = {**shared, **CONDITIONS, **self._bodies, **parts, **of_nodes}

    def _object(self, described: Mapping[str, Any]) -> dict[str, Any]:
        kept = {key: item for key, item in described.items() if key not in {"title", "properties", SHORT}}
        return {
            **kept,
            "properties": {name: self._clean(field) for name, field in described["properties"].items()},
        }

    def _part(self, name: str) -> dict[str, Any]:
        """Return the schema of an object, or of its short form."""
        inside = self.objects[name]
        if SHORT not in self._made[name]:
            return inside
        whole = {key: item for key, item in inside.items() if key != "description"}
        return {"description": inside["description"], "anyOf": [self._clean(self._made[name][SHORT]), whole]}

    def _clean(self, field: Mapping[str, Any]) -> dict[str, Any]:
        """Return pydantic's schema of a field without null for a field left out, with our definitions."""
        schema = dict(without_null(dict(field)))
        if schema.get("default", ...) in (None, ""):
            del schema["default"]
        if "patternProperties" in schema:  # by the names of nodes, or names like them
            (schema["additionalProperties"],) = schema.pop("patternProperties").values()
            schema["propertyNames"] = {"$ref": f"{_REF}nodeName"}
        if schema.get("additionalProperties") == _ANYTHING:
            del schema["additionalProperties"]
        for key in ("items", "additionalProperties"):
            if isinstance(schema.get(key), dict):
                schema[key] = self._clean(schema[key])
        if "anyOf" in schema:
            schema["anyOf"] = [self._clean(one) for one in schema["anyOf"]]
        if (name := schema.pop(DEFINED, None)) is not None:
            if (body := schema.pop(BODY, None)) is not None and name not in self._bodies:
                self._bodies[name] = {}  # it may name itself
                self._bodies[name] = self._clean(body)
            return {"$ref": f"{_REF}{name}", **schema}
        if (model := str(schema.get("$ref", "")).removeprefix(_REF)) in self._made:
            return (
                self._object(self._made[model])
                if model in _IN_PLACE
                else {**schema, "$ref": _REF + _name(model)}
            )
        return schema

    def used_by(self, schema: Any) -> dict[str, Any]:
        """Return the definitions that a schema refers to, directly or through others."""
        names: dict[str, None] = {}
        look_at = [schema]
        while look_at:
            value = look_at.pop()
            if isinstance(value, dict):
                name = str(value.get("$ref", "")).removeprefix(_REF)
                if name in self.definitions and name not in names:
                    names[name] = None
                    look_at.append(self.definitions[name])
                look_at += value.values()
            elif isinstance(value, list):
                look_at += value
        return {name: item for name, item in self.definitions.items() if name in names}


def _name(model: str) -> str:
    return _NAMES.get(model) or f"{model[0].lower()}{model[1:].removesuffix('Model')}"


def _published() -> _Published:
    return _of(tuple(STRATEGIES.values()))


@lru_cache(maxsize=2)
def _of(_: tuple[Strategy, ...]) -> _Published:
    """Return what is published with these strategies of failure handling."""
    return _Published()


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
