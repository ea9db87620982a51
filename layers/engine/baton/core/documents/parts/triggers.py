"""The triggers of a workflow, as documents write them: `events` and `schedule`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from baton.core.documents.parts.fields import (
    Condition,
    Defined,
    Given,
    Model,
    NodeName,
    Reads,
    Value,
    between,
    document_form,
    one_of,
    refuse,
)
from baton.core.expressions import LONGEST_S, nearest
from baton.core.graph.graph import OVERLAPS, QUEUE, SKIP, TAG_NAME, Schedule
from baton.core.outside import LONGEST_SOURCE, LONGEST_TYPE
from baton.core.schedules import MOST_CATCH_UP, read_cron, read_rate, zone, zone_names

MOST_RULES = 20
DATA = "${event.data}"


_TAG = Field(
    default="",
    pattern=TAG_NAME,
    description="Tag of the workflow: sagas start with the version that it names. Without it, with the newest.",
    examples=["main"],
)


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
        description="Key by which `signal` rules find the saga. The workflow has one saga for each key.",
        examples=["${event.data.order}"],
    )
    input: Value = Field(
        default=DATA,
        description="Input of the saga. Without it, the event's data.",
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
    tag: Annotated[str, Given] = _TAG


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
        description="Payload of the signal. Without it, the event's data.",
        examples=["${event.data.amount}"],
    )


class EventsModel(Model):
    """Rules for events from outside: those that start a saga, and those that signal one that runs."""

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


QUEUED = 10


def _read(read: Any, schema: dict[str, Any]) -> Reads:
    def refused(value: Any) -> Any:
        try:
            return read(value)
        except ValueError as error:
            raise refuse(str(error)) from None

    return Reads(refused, schema)


_RATE = {
    "description": "Interval between ticks: a duration, `5 minutes` or `rate(5 minutes)`. From a minute to 366 days.",
    "type": ["string", "number"],
    "minimum": 60,
    "maximum": LONGEST_S,
    "examples": ["5m", "rate(5 minutes)"],
}


def _timezone(value: Any) -> str:
    if not isinstance(value, str):
        raise refuse(
            f"`{document_form(value)}` is not the name of a time zone; write for example Europe/Berlin"
        )
    try:
        zone(value)
    except ValueError as error:
        raise refuse(
            str(error), nearest(value[:60], zone_names()) or "write for example Europe/Berlin"
        ) from None
    return value


class ScheduleModel(Model):
    """Schedule that starts sagas of the workflow, by a cron expression or at a fixed interval."""

    short: ClassVar[str] = "cron"

    cron: Annotated[str, _read(read_cron, {"type": "string"}), Given] = Field(
        default="",
        description="Five fields: minute, hour, day of the month, month, day of the week. Or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.",
        examples=["0 18 * * fri", "*/15 8-17 * * mon-fri"],
    )
    rate: Annotated[int, _read(read_rate, _RATE), Defined("rate"), Given] = Field(
        default=0,
        description="Interval between ticks, a minute or more: `5m`, `5 minutes` or `rate(5 minutes)`. The first interval begins with the registration.",
        examples=["5m", "rate(1 hour)"],
    )
    timezone: Annotated[str, BeforeValidator(_timezone), Given] = Field(
        default="UTC",
        description="The time zone of `cron`, by its IANA name, with its daylight saving time.",
        examples=["Europe/Berlin"],
    )
    overlap: Annotated[str, one_of(*OVERLAPS), Given] = Field(
        default=SKIP,
        description="Action on a tick while a saga of the schedule is still at work: no saga is started "
        "(`skip`), the tick waits for its end (`queue`), or a saga is started beside it (`allow`).",
    )
    catch_up: Annotated[int | None, between(0, MOST_CATCH_UP), Given] = Field(
        default=None,
        description="Number of overdue ticks that are started after an outage, or wait in a queue: the newest "
        f"ones. Without it 1, of a queue {QUEUED}. A tick that is less than five minutes late is "
        "always started.",
        examples=[3],
    )
    input: Value = Field(
        default=None,
        description="Input of each saga. `${schedule.time}` is the time of the tick, `${schedule.name}` the workflow's name.",
        examples=[{"day": "${schedule.time}"}],
    )

    labels: dict[str, str] = Field(
        default_factory=dict, description="Labels of each saga, at most 10.", examples=[{"team": "books"}]
    )
    tag: Annotated[str, Given] = _TAG

    def schedule(self) -> Schedule:
        """Return the schedule as the graph has it."""
        usual = QUEUED if self.overlap == QUEUE else 1
        return Schedule(
            cron=self.cron,
            rate=self.rate,
            timezone=self.timezone,
            overlap=self.overlap,
            catch_up=usual if self.catch_up is None else self.catch_up,
            input=self.input,
            labels=self.labels,
            tag=self.tag,
        )
