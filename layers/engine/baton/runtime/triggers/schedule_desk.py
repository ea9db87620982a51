"""Schedules as the API shows them, and what callers do about one. Their ticks are started in ticking.py."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from baton.core.documents.parts.naming import WORKFLOW_NAME
from baton.core.expressions.durations import lasting
from baton.core.graph.schedule import Schedule
from baton.core.schedules.record import (
    ScheduleRecord,
    given_at,
    local_time,
    paused,
    registered,
    resumed,
    triggered,
)
from baton.core.times import iso
from baton.errors import NotFound
from baton.ports import Definition
from baton.ports.log import NO_LABELS
from baton.runtime.engine.cursors import foreign_cursor, read_cursor, write_cursor
from baton.runtime.engine.parts import Engine
from baton.runtime.engine.request import Request
from baton.runtime.invocation.store_retrier import StoreRetrier


class Starts(Protocol):
    """`Service.start`."""

    async def __call__(
        self, workflow: str, given: Any, key: str, *, said: Any = None, labels: Mapping[str, str] = NO_LABELS
    ) -> tuple[dict[str, Any], bool]: ...


async def follow(
    engine: Engine, call: StoreRetrier, definition: Definition, user: str, schedule: Schedule | None
) -> list[str]:
    """Put the row of a schedule as the newest version of its document has it. What there is to say of it."""
    schedules, named = engine.store.schedules, (definition.tenant, definition.name)
    while True:
        there = await call(schedules.read_schedule, *named)
        now = engine.clock.now()
        after = registered(there, *named, definition.version, user, schedule, now)
        if after is None or await call(schedules.write_schedule, after):
            return _said(after or there, definition.version)


def _said(there: ScheduleRecord | None, version: int) -> list[str]:
    if there is None or there.schedule is None or there.version != version:
        return []
    if there.paused:
        return [f"its schedule is paused: `baton schedule resume {there.workflow}`"]
    return [f"its schedule starts the next saga at {local_time(there.schedule.timezone, there.next)}"]


class ScheduleDesk:
    """The schedules of one tenant, for one request."""

    def __init__(self, request: Request) -> None:
        self._call, self._clock = request.parts.call, request.engine.clock
        self._tenant, self._by = request.caller.tenant, request.caller.by
        self._schedules = request.engine.store.schedules

    async def page(self, limit: int, cursor: str) -> dict[str, Any]:
        """The next schedules, by the names of their workflows."""
        try:
            after = read_cursor(cursor).decode() if cursor else ""
        except UnicodeDecodeError as error:
            raise foreign_cursor() from error
        if after and not re.fullmatch(WORKFLOW_NAME, after):
            raise foreign_cursor()
        found, last = await self._call(self._schedules.listed, self._tenant, after, limit)
        return {
            "schedules": [schedule_view(one) for one in found if one.schedule is not None],
            "next": write_cursor(last.encode()) if last else None,
        }

    async def show(self, workflow: str) -> dict[str, Any]:
        """Raises `NotFound`."""
        return schedule_view(await self._there(workflow))

    async def pause(self, workflow: str) -> dict[str, Any]:
        """Start nothing more until it is resumed. Repeated, it changes nothing. Raises `NotFound`."""
        return await self._change(workflow, lambda there, now: paused(there, self._by, now))

    async def resume(self, workflow: str) -> dict[str, Any]:
        """Go on with the next tick. Repeated, it changes nothing. Raises `NotFound`."""
        return await self._change(workflow, resumed)

    async def trigger(self, workflow: str, key: str, start: Starts) -> tuple[dict[str, Any], bool]:
        """Start a saga now, with the input of the schedule, whether or not another one is at work. Raises `NotFound`.

        (The saga's view, whether it is new.) The same key gives the same saga.
        """
        there, now = await self._there(workflow), self._clock.now()
        assert there.schedule is not None
        said, labels = ["trigger", workflow], there.schedule.labels
        view, is_new = await start(workflow, given_at(there, now), key, said=said, labels=labels)
        saga = str(view["id"])

        def change(there: ScheduleRecord, now: int) -> ScheduleRecord | None:
            return None if any(one.saga == saga for one in there.recent) else triggered(there, saga, now)

        await self._change(workflow, change)
        return view, is_new

    async def _there(self, workflow: str) -> ScheduleRecord:
        there = await self._call(self._schedules.read_schedule, self._tenant, workflow)
        if there is None or there.schedule is None:
            raise NotFound(
                f"workflow `{workflow}` has no schedule; write `schedule` into its document and register it"
            )
        return there

    async def _change(
        self, workflow: str, change: Callable[[ScheduleRecord, int], ScheduleRecord | None]
    ) -> dict[str, Any]:
        """Until no other writer comes between."""
        while True:
            there = await self._there(workflow)
            after = change(there, self._clock.now())
            if after is None or await self._call(self._schedules.write_schedule, after):
                return schedule_view(after or there)


def schedule_view(there: ScheduleRecord) -> dict[str, Any]:
    """A schedule as JSON."""
    schedule = there.schedule
    assert schedule is not None
    opening = there.opening
    return {
        "name": there.workflow,
        "state": "paused" if there.paused else "active",
        "version": there.version,
        "user": there.by,
        "cron": schedule.cron or None,
        "rate": lasting(schedule.rate) if schedule.rate else None,
        "timezone": schedule.timezone,
        "overlap": schedule.overlap,
        "catch_up": schedule.catch_up,
        "next_at": iso(there.next) if there.next else None,
        "starting_at": iso(opening.tick) if opening else None,
        "refused": opening.why if opening and opening.why else None,
        "paused_at": iso(there.paused) if there.paused else None,
        "paused_by": there.paused_by or None,
        "ticks": {
            "started": there.started,
            "skipped": there.skipped,
            "missed": there.missed,
            "refused": there.refused,
        },
        "recent": [
            {
                "tick": iso(one.tick),
                "what": one.what,
                "saga": one.saga or None,
                "why": one.why or None,
                "count": one.count,
            }
            for one in reversed(there.recent)
        ],
    }
