"""The models of a document as a whole, of a node and of a wait.

Belongs here: which fields there are, what each is for. Does not belong here: the parts of a node that have a shape of
their own (control.py, bounds.py), what is told of a document that does not fit (read.py). The descriptions and
examples go into the published JSON Schema, which schema.py makes of these models.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, Field, model_validator
from pydantic.types import JsonValue

from baton.core.documents.node_types import KINDS, NODE_TYPES, NodeType
from baton.core.documents.parts.bounds import GuardrailsModel, Limits
from baton.core.documents.parts.control import BranchModel, JoinModel, LoopModel
from baton.core.documents.parts.failing import Catch, Failover, OnFailure, Retry
from baton.core.documents.parts.fields import (
    MAX_NODES,
    After,
    Condition,
    Duration,
    Given,
    Model,
    NodeName,
    Value,
    WorkflowName,
    WorkflowReference,
    check_time,
    defined,
    refuse,
)
from baton.core.documents.planned import Agent, Human, Map
from baton.core.expressions import expressions_in
from baton.core.expressions.durations import parse_duration


def _is_template(value: Any) -> bool:
    return isinstance(value, str) and any(True for _ in expressions_in(value))


def _for(value: Any) -> int | str:
    return value if _is_template(value) else parse_duration(value)


def _until(value: Any) -> str:
    if not _is_template(value):
        check_time(value)
    return str(value)


class WaitModel(Model):
    """What is waited for: a time to pass (`for`), a time to come (`until`), or a signal and at most a time."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {
                    "title": "a time to pass",
                    "required": ["for"],
                    "properties": {"until": False, "signal": False, "timeout": False},
                },
                {
                    "title": "a time to come",
                    "required": ["until"],
                    "properties": {"for": False, "signal": False, "timeout": False},
                },
                {"title": "a signal", "required": ["signal"], "properties": {"for": False, "until": False}},
            ]
        }
    )

    for_: Annotated[int | str | None, BeforeValidator(_for), Given, defined("waitDuration")] = Field(
        default=None,
        alias="for",
        description="How long to wait: a duration, or a text with expressions that gives one.",
        examples=["10m", "${input.pause}"],
    )
    until: Annotated[str | None, BeforeValidator(_until), Given, defined("waitTime")] = Field(
        default=None,
        description="The time to wait for, with its offset from UTC, or a text with expressions that gives one. A "
        "time that is over ends the wait at once.",
        examples=["2026-12-01T09:00:00Z", "${input.when}"],
    )
    signal: Annotated[NodeName | None, Given] = Field(
        default=None,
        description="Wait until a signal of this name comes. One that came before is taken at once.",
        examples=["approved"],
    )
    timeout: Annotated[Duration | None, Given] = Field(
        default=None,
        description="The longest time to wait for the signal; the output is `{timed_out: true}` when it has passed, "
        "whatever `output_schema` says. Without it the wait has no end.",
        examples=["2d"],
    )

    @model_validator(mode="after")
    def _one_way(self) -> WaitModel:
        if sum(value is not None for value in (self.for_, self.until, self.signal)) != 1:
            raise refuse("write exactly one of `for` (a duration), `until` (a time) and `signal` (a name)")
        if self.timeout is not None and self.signal is None:
            raise refuse("`timeout` goes with `signal`")
        return self


def _schema_or_name(value: Any) -> Any:
    if not isinstance(value, (dict, bool, str)):
        raise refuse("write a JSON Schema, or the name of one under `schemas`")
    return value


def _schema(value: Any) -> Any:
    if not isinstance(value, (dict, bool)):
        raise refuse("write a JSON Schema: an object")
    return value


Schema = Annotated[dict[str, JsonValue] | bool, BeforeValidator(_schema), Given, defined("jsonSchema")]
SchemaOrName = Annotated[
    dict[str, JsonValue] | bool | str | None,
    BeforeValidator(_schema_or_name),
    Given,
    defined("jsonSchemaOrName"),
]


class NodeModel(Model):
    """One node: exactly one kind, what it gets (`with`), what it comes after, and where it goes on."""

    tool: Annotated[str | None, Given] = Field(
        default=None, description="Name of the tool to run.", examples=["table.hold"]
    )
    wait: Annotated[WaitModel | None, Given] = Field(default=None)
    workflow: Annotated[WorkflowReference | None, Given] = Field(
        default=None,
        description="Name of the workflow to start, `NAME` for the version that is the newest when the node is "
        "reached, or `NAME@VERSION`. Not this workflow itself.",
        examples=["delivery", "delivery@2"],
    )
    value: Value = Field(
        default=None,
        description="What the node gives: any JSON value, with expressions.",
        examples=["${ctx.search.output.tables[0]}", {"tables": "${ctx.search.output?}", "rounds": 0}],
    )
    agent: Annotated[Agent | None, Given] = Field(
        default=None, description="The model, and the tools that it may call."
    )
    human: Annotated[Human | None, Given] = Field(default=None, description="The question.")
    map: Annotated[Map | None, Given] = Field(
        default=None, description="The list, and what is to be done for each of its items."
    )
    with_: dict[str, Value] = Field(
        default_factory=dict,
        alias="with",
        description="What the node gets: the arguments of a tool, or the input of a child workflow. Without it, an "
        "empty object.",
        examples=[{"city": "${input.city}", "party": 4}],
        json_schema_extra={"default": {}},
    )
    timeout: Annotated[Duration | None, Given] = Field(
        default=None,
        description="The longest time for one attempt, in place of the tool's own: at most 15 minutes, as long as an invocation "
        "may last.",
        examples=["10s"],
    )
    retry: Retry = Field(
        default=None,
        description="How a failed attempt is tried again.",
        examples=["critical", {"max_attempts": 3, "base": "2s"}],
    )
    on_failure: OnFailure = Field(
        default_factory=dict,
        description="What is done when an attempt fails: by code, by class, or for `any` failure.",
        examples=["rollback", {"timeout": {"retry": "critical"}, "permanent": "escalate"}],
        json_schema_extra={"default": {}},
    )
    failover: Failover = Field(
        default_factory=list,
        description="Policies that are asked first, in their order: the first that fits the failure is taken.",
        examples=[[{"name": "full", "when": {"code": "no_tables"}, "then": {"tool": "delivery.order"}}]],
        json_schema_extra={"default": []},
    )
    after: After = Field(
        default_factory=list,
        description="The node, or nodes, that must have ended before this one starts. Without it the node starts when "
        "another that names it in `branch` or `loop` goes on to it, or else with the saga.",
    )
    when: Annotated[Condition | None, Given] = Field(
        default=None,
        description="Whether the node runs once its turn has come. If it does not hold, the node is skipped.",
        examples=["input.party > 6"],
    )
    branch: Annotated[BranchModel | None, Given] = Field(
        default=None,
        examples=[{"rules": [{"if": "output.score >= 80", "then": "book"}], "default": "give_up"}],
    )
    loop: Annotated[LoopModel | None, Given] = Field(
        default=None, examples=[{"while": "output.score < 80", "max_iterations": 5, "back_to": "draft"}]
    )
    join: Annotated[JoinModel | None, Given] = Field(
        default=None, examples=["any", 2, {"wait_for": "all", "tolerated_failures": "25%"}]
    )
    catch: Catch = Field(
        default_factory=list,
        description="Where it goes on when the node has failed for good, in place of everything else: a node, a list of "
        "them, or rules, of which the first that fits the failure is taken.",
        examples=["tell", [{"code": "no_tables", "then": "waitlist"}, {"then": ["tell", "clean_up"]}]],
    )
    output_schema: SchemaOrName = Field(
        default=None,
        description="JSON Schema of the node's output, or the name of one under `schemas`. With any other output "
        "the node fails.",
        examples=["done", {"type": "object", "required": ["score"]}],
    )
    limits: Limits = Field(
        default_factory=dict,
        description="How far this node may go.",
        examples=[{"hops": 20, "cost_usd": 0.25}],
    )
    description: str = Field(default="", description="What the node is for. Changes nothing of how it runs.")

    @property
    def kind(self) -> NodeType:
        """The kind whose field it has."""
        return next(kind for kind in NODE_TYPES if kind.key in self.model_fields_set)

    @model_validator(mode="after")
    def _one_kind(self) -> NodeModel:
        chosen = [kind for kind in NODE_TYPES if kind.key in self.model_fields_set]
        if len(chosen) != 1:
            found = " and ".join(kind.key for kind in chosen) or "none"
            raise refuse(f"a node has exactly one of {', '.join(KINDS)}; found {found}")
        (kind,) = chosen
        strange = {name.rstrip("_") for name in self.model_fields_set} - {kind.key, *kind.fields}
        if strange:
            raise refuse(kind.refuses(strange))
        return self


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
    owner: str = Field(
        default="",
        description="Who answers for it: a person or a team. Changes nothing of how it runs.",
        examples=["team-payments"],
    )
    metadata: dict[str, str] = Field(
        default_factory=dict,
        description="Any texts by name, for people and other programs. They change nothing of how it runs.",
        examples=[{"cost-centre": "4711"}],
    )
    input: Annotated[dict[str, JsonValue] | None, Given] = Field(
        default=None,
        description="JSON Schema of a saga's input. Without it any input is accepted. References lead only into this "
        "schema itself.",
        examples=[{"type": "object", "required": ["city"], "properties": {"city": {"type": "string"}}}],
    )
    schemas: dict[NodeName, Schema] = Field(
        default_factory=dict,
        description="JSON Schemas by name, for `output_schema` of nodes and for conditions.",
        examples=[{"done": {"type": "object", "required": ["score"]}}],
    )
    timeout: Annotated[Duration | None, Given] = Field(
        default=None,
        description="The longest time from the start of a saga to its end, after which it fails. A short way of "
        "writing `limits.wall_time`.",
        examples=["2h"],
    )
    limits: Limits = Field(
        default_factory=dict,
        description="How far a saga may go.",
        examples=[{"hops": 100, "wall_time": "2h", "cost_usd": 1.5}],
    )
    retry: Retry = Field(
        default=None,
        description="How the attempts of all tasks are tried again, unless a task says otherwise.",
        examples=["standard"],
    )
    on_failure: OnFailure = Field(
        default_factory=dict,
        description="What is done when an attempt of any task fails, unless the task says otherwise.",
        examples=[{"rate_limited": {"retry": "rate_limited"}, "catastrophic": "escalate"}],
        json_schema_extra={"default": {}},
    )
    failover: Failover = Field(
        default_factory=list,
        description="Policies for all tasks, asked after a task's own.",
        examples=[[{"name": "late", "when": {"attempt": 3, "class": "transient"}, "then": "escalate"}]],
        json_schema_extra={"default": []},
    )
    guardrails: Annotated[GuardrailsModel | None, Given] = Field(
        default=None, examples=[{"allowed_tools": ["table.*"], "allowed_transitions": {"plan": ["search"]}}]
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
