"""The model of a document as a whole: its fields, and what each is for.

Nodes are in parts/node.py and nodes/; refusals are worded in read.py. The
descriptions and examples go into the published JSON Schema, which schema.py makes of these models.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import ConfigDict, Field
from pydantic.types import JsonValue

from baton.core.documents.nodes.node_model import NodeModel
from baton.core.documents.parts.bounds import GuardrailsModel, Limits
from baton.core.documents.parts.failing import (
    NONE,
    PARALLEL,
    SEQUENTIAL,
    Failover,
    HandlerModel,
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
    one_of,
    one_of_schema,
)
from baton.core.documents.parts.node import ReplanModel, Schema
from baton.core.documents.parts.people import MOST_RULES, RiskRuleModel
from baton.core.documents.parts.triggers import EventsModel, ScheduleModel
from baton.core.effects.risk import RiskRule


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
    compensate: Annotated[
        str, one_of(SEQUENTIAL, PARALLEL, NONE), one_of_schema(SEQUENTIAL, PARALLEL, NONE), Given
    ] = Field(
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
