"""How a document says what events from outside do: the shape of `events`.

What does not go together is told in compile/events.py.
"""

from __future__ import annotations

from typing import Annotated, ClassVar

from pydantic import Field

from baton.core.documents.parts.fields import Condition, Given, Model, NodeName, Value
from baton.core.outside.cloudevents import LONGEST_SOURCE, LONGEST_TYPE

MOST_RULES = 20
DATA = "${event.data}"


class _RuleModel(Model):
    type: str = Field(
        min_length=1,
        max_length=LONGEST_TYPE,
        description="The event's `type`; of Amazon EventBridge its `detail-type`.",
        examples=["payment.settled", "Object Created"],
    )
    source: Annotated[str, Given] = Field(
        default="",
        max_length=LONGEST_SOURCE,
        description="The event's `source`; without it, any.",
        examples=["shop", "aws.s3"],
    )
    when: Condition = Field(
        default=None,
        description="Only events for which this holds. It can name `event` alone.",
        examples=["event.data.amount > 0"],
    )


class StartRuleModel(_RuleModel):
    """Events that start a saga. Of several rules that fit an event, the first counts."""

    short: ClassVar[str] = "type"

    correlation_key: Annotated[str, Given] = Field(
        default="",
        description="By which `signal` rules find the saga. There is one saga of the workflow with each key.",
        examples=["${event.data.order}"],
    )
    input: Value = Field(
        default=DATA,
        description="What the saga is started with. Without it, the event's data.",
        examples=[{"order": "${event.data.order}"}],
    )
    labels: dict[str, str] = Field(
        default_factory=dict,
        description="Labels of the saga, at most 10.",
        examples=[{"order": "${event.data.order}"}],
    )
    user: Annotated[str, Given] = Field(
        default="",
        description="The user whose saga it is, and whose money it spends. Without it, the user who registered the document last.",
        examples=["${event.data.customer}"],
    )


class SignalRuleModel(_RuleModel):
    """Events that are signals for the saga with this correlation key."""

    correlation_key: str = Field(
        min_length=1,
        description="The key with which the saga was started.",
        examples=["${event.data.order}"],
    )
    signal: NodeName = Field(
        description="The signal; a node of the workflow waits for it.", examples=["paid"]
    )
    payload: Value = Field(
        default=DATA,
        description="What the signal carries. Without it, the event's data.",
        examples=["${event.data.amount}"],
    )


class EventsModel(Model):
    """What events from outside do: which start a saga, and which are signals for one that runs."""

    start: list[StartRuleModel] = Field(
        default_factory=list,
        json_schema_extra={"maxItems": MOST_RULES},
        description="Rules by which an event starts a saga.",
        examples=[[{"type": "payment.settled", "source": "shop", "input": "${event.data}"}]],
    )
    signal: list[SignalRuleModel] = Field(
        default_factory=list,
        json_schema_extra={"maxItems": MOST_RULES},
        description="Rules by which an event is a signal for a saga that runs.",
        examples=[[{"type": "payment.settled", "correlation_key": "${event.data.order}", "signal": "paid"}]],
    )
