"""The model of a document as a whole: its fields, and what each is for.

Nodes are in parts/node.py and nodes/; refusals are worded in read.py. The
descriptions and examples go into the published JSON Schema, which schema.py makes of these models.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, ClassVar

from pydantic import AfterValidator, ConfigDict, Field, ValidationInfo, create_model, model_validator
from pydantic.types import JsonValue

from baton.core.documents.nodes.base import NodeDocument
from baton.core.documents.nodes.registry import NODE_TYPES, Map
from baton.core.documents.parts import node as parts
from baton.core.documents.parts.control import GuardrailsModel, Limits
from baton.core.documents.parts.failing import (
    NONE,
    PARALLEL,
    SEQUENTIAL,
    Failover,
    OnFailure,
    Retry,
)
from baton.core.documents.parts.fields import (
    MAX_NODES,
    Duration,
    Given,
    Model,
    NodeName,
    Value,
    WorkflowName,
    WorkflowReference,
    one_of,
    refuse,
)
from baton.core.documents.parts.node import ReplanModel, Schema
from baton.core.documents.parts.people import MOST_RULES, RiskRuleModel
from baton.core.documents.parts.triggers import EventsModel, ScheduleModel
from baton.core.effects.risk import RiskRule

_NAMES = {field.alias: name for name, field in parts.NodeModel.model_fields.items() if field.alias}
BY_KEY: Mapping[str, NodeDocument] = {kind.key: kind for kind in NODE_TYPES}
BY_KIND: Mapping[str, NodeDocument] = {kind.kind: kind for kind in (*NODE_TYPES, Map())}
KINDS = tuple(kind.key for kind in NODE_TYPES if kind.runs)
KINDS_TO_COME = tuple(kind.key for kind in NODE_TYPES if not kind.runs)
_FIELDS = {kind.key: {kind.key, *(_NAMES.get(name, name) for name in kind.fields)} for kind in NODE_TYPES}
"""By key, the fields that such a node may have, as the model calls them."""


def kind_named(kind: str) -> NodeDocument:
    """Return the kind of this name; the simplest for one that only a newer version knows."""
    return BY_KIND.get(kind, NODE_TYPES[0])


def kind_of(node: parts.NodeModel) -> NodeDocument:
    """Return the kind whose field the node has."""
    (key,) = node.model_fields_set & BY_KEY.keys()
    return BY_KEY[key]


class _OneKind(parts.NodeModel):
    @model_validator(mode="after")
    def _one_kind(self) -> _OneKind:
        chosen = self.model_fields_set & BY_KEY.keys()
        if len(chosen) != 1:
            found = " and ".join(key for key in BY_KEY if key in chosen) or "none"
            message = f"a node has exactly one of {', '.join(KINDS)}; found {found}"
            hint = (
                "write beside `map` what is done for each item, such as a `tool`"
                if self.map is not None
                else ""
            )
            raise refuse(message, hint)
        kind = BY_KEY[chosen.pop()]
        if strange := self.model_fields_set - _FIELDS[kind.key]:
            raise refuse(kind.refuses({name.rstrip("_") for name in strange}))
        return self


if TYPE_CHECKING:
    NodeModel = parts.NodeModel
else:
    # One model for all kinds, not a union of them: pydantic then knows the place of a misspelt key.
    NodeModel = create_model(
        "NodeModel",
        __base__=_OneKind,
        __doc__=parts.NodeModel.__doc__,
        **{kind.key: kind.field for kind in NODE_TYPES},
    )

RESERVED = frozenset(
    (*BY_KIND, *BY_KEY, *(field.alias or name for name, field in NodeModel.model_fields.items()))
)
"""Names that no kind of an application can have."""


class GraphModel(Model):
    """Nodes that run as a saga of their own.
    Retries, reactions, policies, schemas, rules of risk and allowed tools are the document's.
    """

    description: str = Field(default="", description="Purpose of the graph. Changes nothing of how it runs.")
    input: Annotated[dict[str, JsonValue] | None, Given] = Field(
        default=None, description="JSON Schema of its input. Without it any input is accepted."
    )
    timeout: Annotated[Duration | None, Given] = Field(
        default=None, description="The longest time from its start to its end, after which it fails."
    )
    limits: Limits = Field(default_factory=dict, description="Limits of each saga of the graph.")
    nodes: dict[NodeName, NodeModel] = Field(
        min_length=1, max_length=MAX_NODES, description="The nodes by name."
    )
    output: Value = Field(
        default=None,
        description="Result of the graph, once every node has ended. It is the output of the node that names the graph.",
    )


class HandlerModel(Model):
    """Workflow, or graph of the document, to start when a saga has failed for good and its rollback
    has ended.
    """

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["workflow"]}, {"required": ["graph"]}]}
    )
    short: ClassVar[str] = "workflow"

    workflow: Annotated[WorkflowReference | None, Given] = Field(
        default=None,
        description="Name of another workflow: `NAME`, `NAME@VERSION` or `NAME@TAG`.",
        examples=["tell-the-team"],
    )
    graph: Annotated[NodeName | None, Given] = Field(
        default=None,
        description="Name of a graph of this document, instead of a workflow.",
        examples=["tell"],
    )
    with_: Annotated[dict[str, Value] | None, Given] = Field(
        default=None,
        alias="with",
        description="Input of the handler: values in which `last_error` is the failure, and `ctx.NODE.output?` "
        "what a node gave. Without it, a workflow gets a report of the failure, and a graph the "
        "input of the saga.",
        examples=[{"order": "${input.order}", "why": "${last_error.message}"}],
    )
    on_cancel: bool = Field(
        default=False,
        description="Starts the handler for a cancelled saga, too.",
        examples=[True],
    )

    @property
    def called(self) -> str:
        """The workflow; empty for a graph."""
        return self.workflow or ""

    @model_validator(mode="after")
    def _one_of_two(self) -> HandlerModel:
        if (self.workflow is None) == (self.graph is None):
            raise refuse("a handler has exactly one of `workflow` and `graph`")
        return self


def _takes_object(is_tool: bool, info: ValidationInfo) -> bool:
    """Refuse an input that the arguments of a tool cannot be."""
    kind = (info.data.get("input") or {}).get("type", "object")
    if is_tool and kind != "object" and not (isinstance(kind, list) and "object" in kind):
        raise refuse(
            "the arguments of a tool are an object, and `input` is none", "write `input: {type: object, …}`"
        )
    return is_tool


class WorkflowModel(Model):
    """A workflow document: a graph of nodes, each started when those that it comes after have ended."""

    model_config = ConfigDict(
        json_schema_extra={
            "dependentSchemas": {"timeout": {"properties": {"limits": {"properties": {"wall_time": False}}}}}
        }
    )

    schema_: str = Field(
        default="",
        alias="$schema",
        description="Address of this schema, for editors. The engine ignores it.",
        examples=["docs/workflow.schema.json"],
    )
    name: WorkflowName = Field(
        description="Name of the workflow. Registering another document with this name creates a new version.",
        examples=["dinner"],
    )
    description: str = Field(default="", description="Purpose of the workflow, for people.")
    owner: str = Field(
        default="",
        description="Person or team that is responsible for the workflow.",
        examples=["team-payments"],
    )
    metadata: dict[str, str] = Field(
        default_factory=dict,
        description="Texts by name, for people and other programs.",
        examples=[{"cost-centre": "4711"}],
    )
    input: Annotated[dict[str, JsonValue] | None, Given] = Field(
        default=None,
        description=(
            "JSON Schema of a saga's input. Without it, any input is accepted. References cannot "
            "leave this schema."
        ),
        examples=[{"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}],
    )
    schemas: dict[NodeName, Schema] = Field(
        default_factory=dict,
        description="JSON Schemas by name, for `output_schema` of nodes and for conditions.",
        examples=[{"done": {"type": "object", "required": ["score"]}}],
    )
    timeout: Annotated[Duration | None, Given] = Field(
        default=None,
        description="Longest time of a saga; it then fails. Short for `limits.wall_time`.",
        examples=["2h"],
    )
    limits: Limits = Field(
        default_factory=dict,
        description="Limits of a saga.",
        examples=[{"hops": 100, "wall_time": "2h", "cost_usd": 1.5}],
    )
    retry: Retry = Field(
        default=None,
        description="Retry policy of all tasks, unless a task has its own.",
        examples=["standard"],
    )
    on_failure: OnFailure = Field(
        default_factory=dict,
        description="Reactions to a failed attempt of any task, unless the task has its own.",
        examples=[{"rate_limited": {"retry": "rate_limited"}, "catastrophic": "escalate"}],
        json_schema_extra={"default": {}},
    )
    failover: Failover = Field(
        default_factory=list,
        description="Policies for all tasks. A task's own policies come first.",
        examples=[[{"name": "late", "when": {"attempt": 3, "class": "transient"}, "then": "escalate"}]],
        json_schema_extra={"default": []},
    )
    replan: Annotated[ReplanModel | None, Given] = Field(
        default=None,
        description=(
            "Calls that a model suggests, for all tasks without a `callback` and without a `replan` "
            "of their own."
        ),
    )
    compensate: Annotated[str, one_of(SEQUENTIAL, PARALLEL, NONE), Given] = Field(
        default=SEQUENTIAL,
        description=(
            "Order in which a rollback undoes steps: one by one, the last first (`sequential`), or "
            "at the same time (`parallel`). With `none`, nothing is undone."
        ),
    )
    risk: Annotated[list[RiskRuleModel] | None, Given] = Field(
        default=None,
        max_length=MOST_RULES,
        description=(
            "Rules for the risk of calls, in place of the default rules. The highest level that fits "
            "a call counts. With `[]`, every call is low."
        ),
        examples=[[{"action": "payment", "above": 200, "currency": "EUR", "level": "high"}]],
    )
    guardrails: Annotated[GuardrailsModel | None, Given] = Field(
        default=None, examples=[{"allowed_tools": ["table.*"], "allowed_transitions": {"plan": ["search"]}}]
    )
    failure_handler: Annotated[HandlerModel | None, Given] = Field(default=None, examples=["tell-the-team"])
    schedule: Annotated[ScheduleModel | None, Given] = Field(
        default=None,
        description="Times at which sagas of the workflow start automatically.",
        examples=[{"cron": "0 18 * * fri", "timezone": "Europe/Berlin"}],
    )
    events: Annotated[EventsModel | None, Given] = Field(
        default=None,
        description="Events from outside that start or signal sagas of the workflow.",
        examples=[{"start": [{"type": "payment.settled", "source": "shop"}]}],
    )
    mcp: Annotated[bool, AfterValidator(_takes_object)] = Field(
        default=False,
        description="Offers the workflow as a tool of its own to MCP clients at `/mcp`. Its text is `description`, its arguments are `input`.",
        examples=[True],
    )
    nodes: dict[NodeName, NodeModel] = Field(
        min_length=1,
        max_length=MAX_NODES,
        description="The nodes by name.",
        examples=[{"hold": {"tool": "table.hold"}}],
    )
    graphs: dict[NodeName, GraphModel] = Field(
        default_factory=dict,
        description="Graphs by name, for nodes with `graph`.",
        examples=[{"visit": {"nodes": {"book": {"tool": "table.book", "with": {"city": "${item}"}}}}}],
        json_schema_extra={"default": {}},
    )
    output: Value = Field(
        default=None,
        description="The saga's result when it completes. Without it, the result is null.",
        examples=["${ctx.hold.output}", {"code": "${ctx.hold.output.code}"}],
    )

    @property
    def rules(self) -> tuple[RiskRule, ...] | None:
        """The document's own rules of risk; None: the default ones count."""
        return None if self.risk is None else tuple(rule.rule() for rule in self.risk)
