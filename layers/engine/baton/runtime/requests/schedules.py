"""Schedules: read, paused, resumed, triggered, and ticked."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta

from baton.core.expressions import duration_text, iso
from baton.core.graph.graph import OVERLAPS, WORKFLOW_NAME, Schedule
from baton.core.read.answers import Count, Cursor, Time, Version, View
from baton.core.schedules import (
    FAILED,
    MISSED,
    REFUSED,
    SKIPPED,
    STARTED,
    TRIGGERED,
    ScheduleRecord,
    count_manual_start,
    decide_tick,
    given_up,
    input_at_tick,
    local_time,
    pause_schedule,
    put_off,
    register_version,
    resume_schedule,
    tick_started,
)
from baton.errors import EngineFault, NotFound, TooManyRequests, Unreadable, UserError
from baton.ports import Definition, Head, SagaRef
from baton.ports.log import NO_LABELS, SCHEDULE
from baton.runtime.engine.parts import Engine, InvocationScope
from baton.runtime.engine.request import BY_TICK, Request, foreign_cursor, named_id, read_cursor, write_cursor
from baton.runtime.invocation.context import StoreRetrier
from baton.runtime.requests.events import start_by_rule
from baton.runtime.starting.start import body_hash


class Starts(Protocol):
    """Type of `Service.start`."""

    async def __call__(
        self, workflow: str, given: Any, key: str, *, said: Any = None, labels: Mapping[str, str] = NO_LABELS
    ) -> tuple[dict[str, Any], bool]: ...


async def update_schedule(
    engine: Engine, call: StoreRetrier, definition: Definition, user: str, schedule: Schedule | None
) -> list[str]:
    """Put the row of a schedule as the newest version of its document has it. What there is to say of it."""
    schedules, named = engine.store.schedules, (definition.tenant, definition.name)
    while True:
        there = await call(schedules.read_schedule, *named)
        now = engine.clock.now()
        after = register_version(there, *named, definition.version, user, schedule, now)
        if after is None or await call(schedules.write_schedule, after):
            return _said(after or there, definition.version)


def _said(there: ScheduleRecord | None, version: int) -> list[str]:
    if there is None or there.schedule is None or there.version != version:
        return []
    if there.paused:
        return [f"its schedule is paused: `baton schedule resume {there.workflow}`"]
    return [f"its schedule starts the next saga at {local_time(there.schedule.timezone, there.next)}"]


class TickCounts(View):
    """Numbers of ticks since the schedule was first registered."""

    started: Count
    skipped: Annotated[Count, "Number of ticks skipped because a saga was running."]
    missed: Annotated[Count, "Ticks dropped after an outage because they exceeded `catch_up`."]
    refused: Annotated[Count, "Ticks whose start was refused permanently or until the next tick."]


class Tick(View):
    """Result of a tick, or of several consecutive ticks up to this one."""

    tick: Time
    what: Annotated[
        str, Meta(extra_json_schema={"enum": [STARTED, SKIPPED, MISSED, REFUSED, FAILED, TRIGGERED]})
    ]
    saga: Annotated[str | None, "Saga that was started. For `skipped`: the saga that was running."]
    why: Annotated[str | None, "Reason of a refused or failed tick."]
    count: Version


class ScheduleView(View):
    """The schedule of a workflow."""

    name: Annotated[str, "Name of the workflow."]
    state: Literal["active", "paused"]
    version: Annotated[Version, "Version of the workflow whose document contains the schedule."]
    tag: Annotated[str | None, "Tag that names the version of its sagas. Null: they start with the newest."]
    user: Annotated[str, "User who registered the document and owns the schedule's sagas."]
    cron: str | None
    rate: str | None
    timezone: str
    overlap: Annotated[str, Meta(extra_json_schema={"enum": list(OVERLAPS)})]
    catch_up: Count
    next_at: Annotated[Time | None, "Time of the next or a waiting tick. Null if no tick follows."]
    starting_at: Annotated[Time | None, "Tick whose saga is being started."]
    refused: Annotated[str | None, "Reason of the refused start. It is retried every minute."]
    paused_at: Time | None
    paused_by: str | None
    ticks: TickCounts
    recent: Annotated[list[Tick], "Most recent ticks, newest first."]


class SchedulePage(View):
    """A page of schedules, ordered by workflow name. A page can be shorter than `limit` without being the
    last.
    """

    schedules: list[ScheduleView]
    next: Cursor


class ScheduleService:
    """The schedules of one tenant, for one request."""

    def __init__(self, request: Request) -> None:
        self._call, self._clock = request.parts.call, request.engine.clock
        self._tenant, self._by = request.caller.tenant, request.caller.by
        self._schedules = request.engine.store.schedules

    async def page(self, limit: int, cursor: str) -> SchedulePage:
        """Return the next schedules, by the names of their workflows."""
        try:
            after = read_cursor(cursor).decode() if cursor else ""
        except UnicodeDecodeError as error:
            raise foreign_cursor() from error
        if after and not re.fullmatch(WORKFLOW_NAME, after):
            raise foreign_cursor()
        found, last = await self._call(self._schedules.listed, self._tenant, after, limit)
        return SchedulePage(
            schedules=[schedule_view(one) for one in found if one.schedule is not None],
            next=write_cursor(last.encode()) if last else None,
        )

    async def show(self, workflow: str) -> ScheduleView:
        """Return a schedule. Raises `NotFound`."""
        return schedule_view(await self._there(workflow))

    async def pause(self, workflow: str) -> ScheduleView:
        """Pause the schedule until it is resumed. Repeated, it changes nothing. Raises `NotFound`."""
        return await self._change(workflow, lambda there, now: pause_schedule(there, self._by, now))

    async def resume(self, workflow: str) -> ScheduleView:
        """Resume the schedule from its next tick on. Repeated, it changes nothing. Raises `NotFound`."""
        return await self._change(workflow, resume_schedule)

    async def trigger(self, workflow: str, key: str, start: Starts) -> tuple[dict[str, Any], bool]:
        """Start a saga now, with the input of the schedule, whether or not another one is at work.
        Raises `NotFound`.

        (The saga's view, whether it is new.) The same key gives the same saga.
        """
        there, now = await self._there(workflow), self._clock.now()
        assert there.schedule is not None
        said, labels = ["trigger", workflow], there.schedule.labels
        view, is_new = await start(_started(there), input_at_tick(there, now), key, said=said, labels=labels)
        saga = str(view["id"])

        def change(there: ScheduleRecord, now: int) -> ScheduleRecord | None:
            return (
                None
                if any(one.saga == saga for one in there.recent)
                else count_manual_start(there, saga, now)
            )

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
    ) -> ScheduleView:
        """Write a change of a schedule, again until no other writer comes between."""
        while True:
            there = await self._there(workflow)
            after = change(there, self._clock.now())
            if after is None or await self._call(self._schedules.write_schedule, after):
                return schedule_view(after or there)


def schedule_view(there: ScheduleRecord) -> ScheduleView:
    """Return a schedule with its last ticks."""
    schedule = there.schedule
    assert schedule is not None
    opening = there.opening
    return ScheduleView(
        name=there.workflow,
        state="paused" if there.paused else "active",
        version=there.version,
        tag=schedule.tag or None,
        user=there.by,
        cron=schedule.cron or None,
        rate=duration_text(schedule.rate) if schedule.rate else None,
        timezone=schedule.timezone,
        overlap=schedule.overlap,
        catch_up=schedule.catch_up,
        next_at=iso(there.next) if there.next else None,
        starting_at=iso(opening.tick) if opening else None,
        refused=opening.why if opening and opening.why else None,
        paused_at=iso(there.paused) if there.paused else None,
        paused_by=there.paused_by or None,
        ticks=TickCounts(
            started=there.started,
            skipped=there.skipped,
            missed=there.missed,
            refused=there.refused,
        ),
        recent=[
            Tick(
                tick=iso(one.tick),
                what=one.what,
                saga=one.saga or None,
                why=one.why or None,
                count=one.count,
            )
            for one in reversed(there.recent)
        ],
    )


logger = logging.getLogger("baton.schedules")

NOT_DUE, LOOKED, LEFT = "not due", "looked at", "left for the next run"
_A_LOOK_MS = 2_000  # none begins later than that before the end


class Ticker:
    """Handler of due schedules for one invocation."""

    def __init__(self, engine: Engine, scope: InvocationScope) -> None:
        self._engine, self._p = engine, scope
        self._schedules = engine.store.schedules

    async def run(self, ref: SagaRef) -> str:
        """Start the ticks of a schedule that are due. Return in words how that ended."""
        p, looked = self._p, False
        while True:
            try:
                there = await p.call(self._schedules.read_schedule, ref.tenant, ref.id.removeprefix(SCHEDULE))
            except Unreadable:
                await self._set_aside(ref)
                raise
            now = p.clock.now()
            if there is None or not there.due or there.due > now + p.limits.clock_skew_ms:
                return LOOKED if looked else NOT_DUE
            if there.due > now:  # by this worker's clock; its tick is never early
                await asyncio.sleep((there.due - now) / 1_000)
                continue
            if now + _A_LOOK_MS > p.deadline.cut_off:
                return LEFT
            after = await self._next(there)
            looked = True
            if await p.call(self._schedules.write_schedule, after):
                self._tell(there, after)

    async def _next(self, there: ScheduleRecord) -> ScheduleRecord:
        """Return the record that replaces one that is due."""
        if there.opening is not None:
            return await self._started(there)
        newest = await self._p.catalog.find(there.tenant, there.workflow)
        if newest.version > there.version:
            graph = await self._p.catalog.graph(there.tenant, newest.graph)
            args = there.tenant, there.workflow, newest.version, there.by, graph.schedule
            if (after := register_version(there, *args, self._p.clock.now())) is not None:
                return after
        at_work = tuple([saga for saga in there.running if await self._is_at_work(there.tenant, saga)])
        return decide_tick(there, at_work, self._p.clock.now())

    async def _is_at_work(self, tenant: str, saga: str) -> bool:
        head = await self._head(SagaRef(tenant, saga))
        return head is not None and head.due_at is not None  # what has ended is in no index

    async def _head(self, ref: SagaRef) -> Head | None:
        return await self._p.call(self._p.log.read_head, ref)

    async def _started(self, there: ScheduleRecord) -> ScheduleRecord:
        """Start the tick that was decided, or find that it was started."""
        p, opening = self._p, there.opening
        assert opening is not None
        ref = SagaRef(there.tenant, saga_of(there, opening.tick, self._engine.store.cell))
        try:
            head = await self._head(ref)
            if head is not None and head.start:
                await p.starter.put_entry_one(head)
            if head is None:
                await self._start(there, ref)
        except TooManyRequests as refused:
            return put_off(there, refused.detail, p.clock.now())
        except UserError as refused:
            return given_up(there, FAILED, refused.detail)
        return tick_started(there, ref.id)

    async def _start(self, there: ScheduleRecord, ref: SagaRef) -> None:
        p, opening = self._p, there.opening
        assert opening is not None
        definition = await p.catalog.find(there.tenant, _started(there))
        await start_by_rule(
            self._engine,
            p,
            ref,
            definition,
            given=opening.given,
            user=there.by,
            # Whatever version of the document starts it: the tick is the same.
            body_hash=body_hash([there.workflow, opening.tick]),
            labels=opening.labels,
        )

    async def _set_aside(self, ref: SagaRef) -> None:
        """Postpone a schedule that cannot be read: otherwise each run
        of the reconciler would make one more dead letter of it.
        """
        now = self._p.clock.now()
        try:
            await self._p.call(self._p.log.postpone, ref, now, now + self._p.limits.unreadable_pause_ms)
        except EngineFault:
            logger.warning("a schedule that cannot be read stays due", extra={"schedule": str(ref)})

    def _tell(self, before: ScheduleRecord, after: ScheduleRecord) -> None:
        last = after.recent[-1] if after.recent else None
        if last is None or after.recent == before.recent:
            return
        level = logging.INFO if after.started > before.started else logging.WARNING
        said = {"tenant": after.tenant, "schedule": after.workflow, "tick": last.tick, "saga": last.saga}
        logger.log(level, "tick %s", last.what, extra={**said, "count": last.count, "why": last.why})
        counts = {
            "TicksSkipped": after.skipped - before.skipped,
            "TicksMissed": after.missed - before.missed,
            "TicksRefused": after.refused - before.refused,
        }
        figures = {name: count for name, count in counts.items() if count}
        self._engine.metrics.ticks(after.workflow, figures, self._p.clock.now())


def _started(there: ScheduleRecord) -> str:
    """Return the reference of the version that a schedule starts."""
    tag = there.schedule.tag if there.schedule is not None else ""
    return f"{there.workflow}@{tag}" if tag else there.workflow


def saga_of(there: ScheduleRecord, tick: int, cell: int) -> str:
    """Return the id of the saga that a tick starts."""
    return named_id(cell, BY_TICK, there.tenant, there.workflow, tick)
