"""The shape of a workflow document, as pydantic models, and its problems with their paths.

What a document means, and whether it makes sense, is compile.py's. The descriptions and examples of the fields go
into the published JSON Schema, which docschema.py makes of these models.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic.types import JsonValue

from baton.core.durations import parse_duration
from baton.core.expressions import escape
from baton.core.nodetypes import NODE_TYPES
from baton.core.toolspec import closest, nearest
from baton.errors import Problem

NODE_NAME = r"^[A-Za-z_][A-Za-z0-9_]{0,63}$"
WORKFLOW_NAME = r"^[a-z][a-z0-9-]{0,63}$"
WORKFLOW_REFERENCE = r"^[a-z][a-z0-9-]{0,63}(@[0-9]{1,9})?$"
KINDS = tuple(kind.key for kind in NODE_TYPES)
KINDS_TO_COME = ("agent", "human", "map")
MAX_NODES = 10_000
DEFINED = "x-defined"
# What pydantic says in the words of Python.
_PLAIN_WORDS = {
    "dict_type": "must be an object",
    "model_type": "must be an object",
    "list_type": "must be a list",
    "string_type": "must be a string",
    "too_short": "a workflow has at least one node",
    "too_long": f"a workflow has at most {MAX_NODES} nodes",
}


def _one_or_many(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


def _given(value: Any) -> Any:
    """What may be left out may not be there without a value: in YAML that is a line begun and forgotten."""
    if value is None:
        raise ValueError("there is no value here; write one, or leave the field out")
    return value


def _defined(name: str) -> WithJsonSchema:
    """Stands in the models' JSON Schema for what docschema.py defines by this name."""
    return WithJsonSchema({DEFINED: name})


Duration = Annotated[int, BeforeValidator(parse_duration), _defined("duration")]
WorkflowName = Annotated[str, StringConstraints(pattern=WORKFLOW_NAME)]
WorkflowReference = Annotated[str, StringConstraints(pattern=WORKFLOW_REFERENCE)]
NodeName = Annotated[str, StringConstraints(pattern=NODE_NAME)]
Names = Annotated[list[str], BeforeValidator(_one_or_many), _defined("after")]
Value = Annotated[JsonValue, _defined("value")]
# For fields that are None when they are left out: null in a document is not a way of leaving them out.
_Given = BeforeValidator(_given)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=False)


class WaitModel(_Model):
    """What is waited for: a time (`for`), or a signal (`signal`) and at most a time (`timeout`)."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"title": "a time", "required": ["for"], "properties": {"signal": False, "timeout": False}},
                {"title": "a signal", "required": ["signal"], "properties": {"for": False}},
            ]
        }
    )

    for_: Annotated[Duration | None, _Given] = Field(
        default=None, alias="for", description="How long to wait.", examples=["10m"]
    )
    signal: Annotated[NodeName | None, _Given] = Field(
        default=None,
        description="Wait until a signal of this name comes. One that came before is taken at once.",
        examples=["approved"],
    )
    timeout: Annotated[Duration | None, _Given] = Field(
        default=None,
        description="The longest time to wait for the signal; the output is null when it has passed. Without it the "
        "wait has no end.",
        examples=["2d"],
    )

    @model_validator(mode="after")
    def _one_way(self) -> WaitModel:
        if (self.for_ is None) == (self.signal is None):
            raise ValueError("write either `for` (a duration) or `signal` (a name)")
        if self.timeout is not None and self.signal is None:
            raise ValueError("`timeout` goes with `signal`")
        return self


class NodeModel(_Model):
    """One node: exactly one kind, what it gets (`with`), and what it comes after."""

    tool: Annotated[str | None, _Given] = Field(
        default=None, description="Name of the tool to run.", examples=["table.hold"]
    )
    wait: Annotated[WaitModel | None, _Given] = Field(default=None)
    workflow: Annotated[WorkflowReference | None, _Given] = Field(
        default=None,
        description="Name of the workflow to start, `NAME` for the version that is the newest when the node is "
        "reached, or `NAME@VERSION`. Not this workflow itself.",
        examples=["delivery", "delivery@2"],
    )
    with_: dict[str, Value] = Field(
        default_factory=dict,
        alias="with",
        description="What the node gets: the arguments of a tool, or the input of a child workflow. Without it, an "
        "empty object.",
        examples=[{"city": "${input.city}", "party": 4}],
        json_schema_extra={"default": {}},
    )
    after: Names = Field(
        default_factory=list,
        description="The node, or nodes, that must have ended before this one starts. Without it the node starts with "
        "the saga.",
    )
    timeout: Annotated[Duration | None, _Given] = Field(
        default=None,
        description="The longest time for one attempt, in place of the tool's own.",
        examples=["10s"],
    )
    description: str = Field(default="", description="What the node is for. Changes nothing of how it runs.")

    @model_validator(mode="after")
    def _one_kind(self) -> NodeModel:
        chosen = [kind for kind in NODE_TYPES if getattr(self, kind.key) is not None]
        if len(chosen) != 1:
            found = " and ".join(kind.key for kind in chosen) or "none"
            raise ValueError(f"a node has exactly one of {', '.join(KINDS)}; found {found}")
        (kind,) = chosen
        if {name.rstrip("_") for name in self.model_fields_set} - {kind.key, *kind.fields}:
            raise ValueError(kind.refusal)
        return self


class WorkflowModel(_Model):
    """A workflow document: a graph of nodes, each started when those that it comes after have ended."""

    schema_: str = Field(
        default="",
        alias="$schema",
        description="Where an editor finds this schema. Means nothing to the engine.",
        examples=["docs/workflow.schema.json"],
    )
    name: WorkflowName = Field(
        description="Name of the workflow. Registering another document with this name makes a new version of it.",
        examples=["dinner"],
    )
    description: str = Field(
        default="", description="What the workflow is for. Changes nothing of how it runs."
    )
    input: Annotated[dict[str, JsonValue] | None, _Given] = Field(
        default=None,
        description="JSON Schema of a saga's input. Without it any input is accepted. References lead only into this "
        "schema itself.",
        examples=[{"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}],
    )
    nodes: dict[NodeName, NodeModel] = Field(
        min_length=1,
        max_length=MAX_NODES,
        description="The nodes by name.",
        examples=[{"hold": {"tool": "table.hold"}}],
    )
    output: Value = Field(
        default=None,
        description="The saga's result, once every node has ended. Without it the result is null.",
        examples=["${ctx.hold.output}", {"code": "${ctx.hold.output.code}"}],
    )


def read_definition(value: Any) -> tuple[WorkflowModel | None, tuple[Problem, ...]]:
    """The model of a parsed document, and everything that is wrong with its shape.

    With problems, the model is of what could be made out of the rest, so that this can be checked too;
    None when there is too little of it.
    """
    if not isinstance(value, dict):
        return None, (Problem("", "a workflow document is an object with `name` and `nodes`"),)
    try:
        return WorkflowModel.model_validate(value), ()
    except ValidationError as error:
        details = error.errors(include_url=False)
        problems = [_problem(detail) for detail in details]
        return _salvage(value, details, problems), tuple(problems)


def _salvage(value: dict[str, Any], details: Sequence[Any], problems: list[Problem]) -> WorkflowModel | None:
    """The document with what is left of each broken node, or a harmless one in its place.

    Adds the problems that only come to light in what is left.
    """
    nodes = value.get("nodes")
    if not isinstance(nodes, dict):
        return None
    broken: dict[str, list[Any]] = {}
    for detail in details:
        if detail["loc"][0] == "nodes" and len(detail["loc"]) > 1:
            broken.setdefault(detail["loc"][1], []).append(detail)
    kept = dict(nodes)
    for name, faults in broken.items():
        kept[name], more = _mended(nodes[name], faults)
        problems += [_problem({**detail, "loc": ("nodes", name, *detail["loc"])}) for detail in more]
    rest = {key: value[key] for key in ("input", "output") if key in value}
    if not isinstance(rest.get("input", {}), dict):
        del rest["input"]
    try:
        return WorkflowModel.model_validate({"name": "unnamed", "nodes": kept, **rest})
    except ValidationError:
        return None


def _mended(node: Any, faults: Sequence[Any]) -> tuple[Any, Sequence[Any]]:
    """A node whose unknown keys are its only faults without them, and what else is wrong with it then.

    A key that is nearly one that is missing counts as that one, which is what its author will make of it.
    """
    if not isinstance(node, dict) or any(
        fault["type"] != "extra_forbidden" or len(fault["loc"]) != 3 for fault in faults
    ):
        return _stand_in(node), ()
    unknown = [fault["loc"][2] for fault in faults]
    known = [field.alias or key for key, field in NodeModel.model_fields.items()]
    rest = {key: item for key, item in node.items() if key not in unknown}
    for key in unknown:
        meant = "" if key in KINDS_TO_COME else closest(key, known)
        if meant and meant not in rest:
            rest[meant] = node[key]
    try:
        NodeModel.model_validate(rest)
    except ValidationError as error:
        # Without a kind there is nothing to say but that a key is unknown, which has been said.
        return _stand_in(node), error.errors(include_url=False) if rest.keys() & set(KINDS) else ()
    return rest, ()


def _stand_in(node: Any) -> dict[str, Any]:
    after = node.get("after", []) if isinstance(node, dict) else []
    names = [after] if isinstance(after, str) else after
    is_list = isinstance(names, list) and all(isinstance(name, str) for name in names)
    return {"wait": {"for": 1}, "after": names if is_list else []}


def _problem(detail: Any) -> Problem:
    location = [step for step in detail["loc"] if step != "[key]"]
    pointer = "".join(f"/{escape(step)}" for step in location)
    kind, suggestion = detail["type"], ""
    message = _PLAIN_WORDS.get(kind, detail["msg"])
    if kind == "extra_forbidden":
        name, model = str(location[-1]), _model_at(location)
        message = f"`{name}` is not known here"
        if model is NodeModel and name in KINDS_TO_COME:
            message = f"nodes of kind `{name}` cannot be run by this version"
        else:
            suggestion = nearest(name, [field.alias or key for key, field in model.model_fields.items()])
    elif kind == "missing":
        message = f"`{location[-1]}` is missing"
    elif kind == "string_pattern_mismatch":
        pattern = detail["ctx"]["pattern"]
        message = f"`{detail['input']}` is not a name"
        suggestion = f"names match {pattern}"
    elif kind == "model_type" and location[-1] == "wait" and len(location) == 3:
        suggestion = _wait_for(detail["input"])
    elif kind == "value_error":
        message = message.removeprefix("Value error, ")
    return Problem(pointer, message, suggestion)


def _wait_for(value: Any) -> str:
    """What was meant by a wait that is no object."""
    try:
        parse_duration(value)
    except ValueError:
        is_name = isinstance(value, str) and re.fullmatch(NODE_NAME, value)
        if is_name:
            return f"write `wait: {{signal: {value}}}`"
        return "write `wait: {for: 5s}` or `wait: {signal: NAME}`"
    return f"write `wait: {{for: {value}}}`"


def _model_at(location: list[Any]) -> type[BaseModel]:
    """The model that has no such field: the document's, a node's or a wait's, by the depth."""
    models: dict[int, type[BaseModel]] = {1: WorkflowModel, 3: NodeModel}
    return models.get(len(location), WaitModel)
