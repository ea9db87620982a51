"""How a document says when its workflow is started by itself: the shape of `schedule`.

What does not go together is told in compile/schedules.py.
"""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, Field

from baton.core.documents.parts.fields import (
    Given,
    Model,
    Value,
    between,
    counted,
    defined,
    one_of,
    refuse,
    shown,
    words,
)
from baton.core.expressions.spelling import nearest
from baton.core.graph.schedule import OVERLAPS, QUEUE, SKIP, Schedule
from baton.core.schedules.record import MOST_CATCH_UP
from baton.core.schedules.ticks import read_cron, read_rate, zone, zone_names

QUEUED = 10


def _read(read: Any) -> BeforeValidator:
    def refused(value: Any) -> Any:
        try:
            return read(value)
        except ValueError as error:
            raise refuse(str(error)) from None

    return BeforeValidator(refused)


def _timezone(value: Any) -> str:
    if not isinstance(value, str):
        raise refuse(f"`{shown(value)}` is not the name of a time zone; write for example Europe/Berlin")
    try:
        zone(value)
    except ValueError as error:
        raise refuse(
            str(error), nearest(value[:60], zone_names()) or "write for example Europe/Berlin"
        ) from None
    return value


class ScheduleModel(Model):
    """When sagas of the workflow are started by themselves: at the times of a cron expression, or one after so long."""

    short: ClassVar[str] = "cron"

    cron: Annotated[str, _read(read_cron), Given] = Field(
        default="",
        description="Five fields: minute, hour, day of the month, month, day of the week. Or `@hourly`, `@daily`, `@weekly`, `@monthly`, `@yearly`.",
        examples=["0 18 * * fri", "*/15 8-17 * * mon-fri"],
    )
    rate: Annotated[int, _read(read_rate), defined("rate"), Given] = Field(
        default=0,
        description="One after so long, a minute or more: `5m`, `5 minutes` or `rate(5 minutes)`. Counted from the registration.",
        examples=["5m", "rate(1 hour)"],
    )
    timezone: Annotated[str, BeforeValidator(_timezone), Given] = Field(
        default="UTC",
        description="The time zone of `cron`, by its IANA name, with its daylight saving time.",
        examples=["Europe/Berlin"],
    )
    overlap: Annotated[str, one_of(*OVERLAPS), words(*OVERLAPS), Given] = Field(
        default=SKIP,
        description="What becomes of a tick while a saga of the schedule is still at work: none is started (`skip`), it waits "
        "for its end (`queue`), or a saga is started beside it (`allow`).",
    )
    catch_up: Annotated[int | None, between(0, MOST_CATCH_UP), counted(0, MOST_CATCH_UP), Given] = Field(
        default=None,
        description="How many overdue ticks are started after an outage, or wait in a queue: the newest ones. Without it 1, of a queue "
        f"{QUEUED}. A tick that is less than five minutes late is always started.",
        examples=[3],
    )
    input: Value = Field(
        default=None,
        description="What each saga is started with. `${schedule.time}` is the time of the tick, `${schedule.name}` the workflow's name.",
        examples=[{"day": "${schedule.time}"}],
    )

    labels: dict[str, str] = Field(
        default_factory=dict, description="Labels of each saga, at most 10.", examples=[{"team": "books"}]
    )

    def schedule(self) -> Schedule:
        """As the graph has it."""
        usual = QUEUED if self.overlap == QUEUE else 1
        return Schedule(
            cron=self.cron,
            rate=self.rate,
            timezone=self.timezone,
            overlap=self.overlap,
            catch_up=usual if self.catch_up is None else self.catch_up,
            input=self.input,
            labels=self.labels,
        )
