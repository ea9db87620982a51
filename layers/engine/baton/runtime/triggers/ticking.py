"""A look at a schedule that is due: what becomes of its tick is decided and written, and only then started.

The rules are in core/schedules/record.py, the order of the writes in the tick row of docs/protocols.md. Only a worker that is woken
for a schedule imports this.
"""

from __future__ import annotations

import asyncio
import logging

from baton.core.schedules.record import (
    FAILED,
    ScheduleRecord,
    decided,
    given_up,
    opened,
    put_off,
    registered,
)
from baton.errors import EngineFault, TooManyRequests, Unreadable, UserError
from baton.ports import Head, SagaRef
from baton.ports.log import SCHEDULE
from baton.runtime.engine.ids import BY_TICK, named_id
from baton.runtime.engine.parts import Engine, Parts
from baton.runtime.starting.start import body_hash
from baton.runtime.triggers.ruled_start import start_by_rule

logger = logging.getLogger("baton.schedules")

NOT_DUE, LOOKED, LEFT = "not due", "looked at", "left for the next run"
_A_LOOK_MS = 2_000  # none begins later than that before the end


class Ticker:
    """Looks at schedules for one invocation."""

    def __init__(self, engine: Engine, parts: Parts) -> None:
        self._engine, self._p = engine, parts
        self._schedules = engine.store.schedules

    async def run(self, ref: SagaRef) -> str:
        """Deal with all that is due. Returns in words how that ended."""
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
        """What is to be put in the place of a record that is due."""
        if there.opening is not None:
            return await self._started(there)
        newest = await self._p.catalog.find(there.tenant, there.workflow)
        if newest.version > there.version:
            graph = await self._p.catalog.graph(there.tenant, newest.graph)
            args = there.tenant, there.workflow, newest.version, there.by, graph.schedule
            if (after := registered(there, *args, self._p.clock.now())) is not None:
                return after
        at_work = tuple([saga for saga in there.running if await self._is_at_work(there.tenant, saga)])
        return decided(there, at_work, self._p.clock.now())

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
        return opened(there, ref.id)

    async def _start(self, there: ScheduleRecord, ref: SagaRef) -> None:
        p, opening = self._p, there.opening
        assert opening is not None
        newest = await p.catalog.find(there.tenant, there.workflow)
        await start_by_rule(
            self._engine,
            p,
            ref,
            newest,
            given=opening.given,
            user=there.by,
            # Whatever version of the document starts it: the tick is the same.
            body_hash=body_hash([there.workflow, opening.tick]),
            labels=opening.labels,
        )

    async def _set_aside(self, ref: SagaRef) -> None:
        """Otherwise each run of the reconciler would make one more dead letter of it."""
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


def saga_of(there: ScheduleRecord, tick: int, cell: int) -> str:
    """The id of the saga that a tick starts."""
    return named_id(cell, BY_TICK, there.tenant, there.workflow, tick)
