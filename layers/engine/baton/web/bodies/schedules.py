"""The answers of the API about schedules, as models."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from baton.core.graph.schedule import OVERLAPS
from baton.core.schedules.record import FAILED, MISSED, REFUSED, SKIPPED, STARTED, TRIGGERED
from baton.web.bodies.models import Answer, Cursor, Time

_WORDS = (STARTED, SKIPPED, MISSED, REFUSED, FAILED, TRIGGERED)


class TickCounts(Answer):
    """Ticks since the schedule was first registered."""

    started: int = Field(ge=0)
    skipped: int = Field(ge=0, description="A saga of the schedule was still at work.")
    missed: int = Field(ge=0, description="They were overdue after an outage, and more than `catch_up`.")
    refused: int = Field(
        ge=0, description="Their start was refused until the next tick had come, or for good."
    )


class Tick(Answer):
    """What became of a tick, or of several up to this one."""

    tick: Time
    what: str = Field(json_schema_extra={"enum": list(_WORDS)})
    saga: str | None = Field(description="That was started, or (`skipped`) that was at work.")
    why: str | None = Field(description="Of one that was refused or has failed.")
    count: int = Field(ge=1)


class ScheduleView(Answer):
    """The schedule of a workflow."""

    name: str = Field(description="The workflow's.")
    state: Literal["active", "paused"]
    version: int = Field(ge=1, description="The version of the document that it is in.")
    user: str = Field(description="Who has registered it; its sagas are this user's.")
    cron: str | None
    rate: str | None
    timezone: str
    overlap: str = Field(json_schema_extra={"enum": list(OVERLAPS)})
    catch_up: int = Field(ge=0)
    next_at: Time | None = Field(description="The next tick, or one that waits. Null: there is none.")
    starting_at: Time | None = Field(description="A tick whose saga is being started.")
    refused: str | None = Field(description="Why that start was refused; it is tried again every minute.")
    paused_at: Time | None
    paused_by: str | None
    ticks: TickCounts
    recent: list[Tick] = Field(description="The last ones, the newest first.")


class SchedulePage(Answer):
    """Schedules by the names of their workflows. A page may have fewer than asked for, and yet not be the last."""

    schedules: list[ScheduleView]
    next: Cursor
