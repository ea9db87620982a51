"""The fields that more than one kind of node has, and JSON Schemas in a document.

The field that makes a node one of its kind is in nodes/.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field, StringConstraints
from pydantic.types import JsonValue

from baton.core.documents.parts.approval import ApprovalModel
from baton.core.documents.parts.bounds import Limits
from baton.core.documents.parts.callback import CallbackModel
from baton.core.documents.parts.compensate import CompensateModel
from baton.core.documents.parts.control import BranchModel, JoinModel, LoopModel
from baton.core.documents.parts.failing import Catch, Failover, OnFailure, Retry
from baton.core.documents.parts.fields import (
    After,
    Condition,
    Duration,
    Given,
    Model,
    NodeName,
    Value,
    defined,
    refuse,
)
from baton.core.documents.parts.many import MapModel
from baton.core.documents.parts.replan import ReplanModel
from baton.core.failures.breakers import NAME_PATTERN, name_problem


def _schema_or_name(value: Any) -> Any:
    if not isinstance(value, (dict, bool, str)):
        raise refuse("write a JSON Schema, or the name of one under `schemas`")
    return value


def _schema(value: Any) -> Any:
    if not isinstance(value, (dict, bool)):
        raise refuse("write a JSON Schema: an object")
    return value


def _breaker(value: Any) -> Any:
    if problem := name_problem(value):
        raise refuse(*problem.split("; "))
    return value


BreakerName = Annotated[str, BeforeValidator(_breaker), StringConstraints(pattern=f"^{NAME_PATTERN}$")]
Schema = Annotated[dict[str, JsonValue] | bool, BeforeValidator(_schema), Given, defined("jsonSchema")]
SchemaOrName = Annotated[
    dict[str, JsonValue] | bool | str | None,
    BeforeValidator(_schema_or_name),
    Given,
    defined("jsonSchemaOrName"),
]


class NodeModel(Model):
    """One node: exactly one kind, what it gets (`with`), what it comes after, and where it goes on."""

    with_: dict[str, Value] = Field(
        default_factory=dict,
        alias="with",
        description="What the node gets: the arguments of a tool, or the input of a child workflow. Without it, an "
        "empty object.",
        examples=[{"city": "${input.city}", "party": 4}],
        json_schema_extra={"default": {}},
    )
    map: Annotated[MapModel | None, Given] = Field(
        default=None,
        description="The node is done once for each item of a list; its output is the list of what they gave.",
        examples=[
            "${input.guests}",
            {"over": "${input.orders}", "concurrency": 5, "tolerated_failures": "10%"},
        ],
    )
    cancel_on: Annotated[NodeName | None, Given] = Field(
        default=None,
        description="A signal of this name cancels the child. Then the output is `{cancelled: PAYLOAD, result: …}`, as far as the "
        "child got.",
        examples=["follow_up"],
    )
    timeout: Annotated[Duration | None, Given] = Field(
        default=None,
        description="The longest time for one attempt, in place of the tool's own: at most 15 minutes, as long as an invocation "
        "may last.",
        examples=["10s"],
    )
    callback: Annotated[CallbackModel | None, Given] = Field(
        default=None,
        description="The tool only hands its work over; `POST /callbacks/{token}` ends the node.",
        examples=["1h", {"timeout": "1h", "heartbeat": "5m"}],
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
    breaker: Annotated[BreakerName | None, Given] = Field(
        default=None,
        description="The name of the circuit breaker around its calls, in place of the tool's own; nodes and tools with one name share "
        "it. `tool` is one for the tool, `host` one for the host of its argument `url`, `none` none.",
        examples=["payments", "host"],
    )
    replan: Annotated[ReplanModel | None, Given] = Field(
        default=None,
        description="A model suggests what is called in its place, when nothing else has helped.",
        examples=[{"model": "gpt-5-mini", "tools": ["table.*"]}],
    )
    compensate: Annotated[CompensateModel | None, Given] = Field(
        default=None,
        description="What takes back what the node has done, when the saga is undone. Without it, the tool's own inverse does.",
        examples=["table.cancel", {"tool": "card.refund", "with": {"id": "${step.output.id}"}}, "none"],
    )
    requires_approval: Annotated[ApprovalModel | None, Given] = Field(
        default=None,
        description="Whether a person is asked before the tool acts. Without it, the tool says itself when.",
        examples=[True, {"to": {"group": "finance"}, "expires": "4h"}],
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
