"""The reconciler: the one clock.
It wakes sagas that are due without any queue, and times those that are nearly due.

The lanes of the due index are gone through side by side, each with calls
of its own, so that none waits for another. It knows nothing of a saga but
its key; the worker's own rules decide whether there is anything to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TypeAlias

from baton.core.limits import DAY_MS, Limits
from baton.errors import EngineFault, StoreUnavailable
from baton.ports import (
    LANES,
    PARKED,
    TIMER,
    WORK,
    Clock,
    Due,
    Invoker,
    Log,
    Message,
    Offload,
    Place,
    Queue,
    SagaRef,
)
from baton.runtime.invocation.context import by_turns
from baton.runtime.mending import DeployedBuild

logger = logging.getLogger("baton.reconciler")

PER_PAGE = 1_000
PER_CALL = 10  # wakes of one invocation, messages of one request
SIDE_BY_SIDE = 8  # calls of one lane: one that hangs must not stop the rest
CALLS = 7 * SIDE_BY_SIDE  # of one invocation: four lanes wake, two are sent ahead, and code may mend
RUNS = 32  # invocations that share the shards, since a state machine does no more than 40 things at once
RESERVE_MS = (
    7_000  # from the beginning of the last call to the end of the run; a client gives up after six seconds
)
MENDED_A_MINUTE = 300  # of all shards: sagas that code may mend, beside those that are at work
LOOKS_EVERY = 10  # runs: one of them looks at a page of the lists, for sagas that no index leads to
LOOKED_AT = 25
TENANTS = 100  # that were met last, in turn
LOST_AFTER_MS = 8 * DAY_MS  # no sweep lets a saga wait as long
PERIODS_AHEAD = 2  # the schedule starts a run somewhere in its minute, so the next one may be nearly two away

OPEN = ("open", "waiting")
"""Groups of the lists in which a saga is in the due index."""
_Act: TypeAlias = Callable[[Sequence[Due]], Awaitable[int]]
_Span: TypeAlias = tuple[int, int]  # of due times


@dataclass(frozen=True, slots=True)
class Sweep:
    """Result of one run in its shards: sagas woken and timed, and calls that failed.

    `more`: some were left for the next. `mended`: sagas parked for a defect that other code may mend.
    `found`: sagas in no index that were made due.
    """

    woken: int
    timed: int
    failed: int
    more: bool
    mended: int = 0
    found: int = 0


@dataclass
class _Run:
    """A run over some shards that is under way. It begins no call after `until`."""

    shards: Sequence[int]
    until: int
    more: bool = False
    failures: list[Exception] = field(default_factory=list)

    def failed(self, error: Exception) -> None:
        self.failures.append(error)
        logger.warning("left for the next run", extra={"shard": self.shards[0], "fault": repr(error)})


class Reconciler:
    """The reconciler function's job. `period` is the time between two runs in ms."""

    def __init__(
        self,
        log: Log,
        queue: Queue,
        invoker: Invoker,
        clock: Clock,
        offload: Offload,
        period: int,
        deployment: DeployedBuild | None = None,
    ) -> None:
        self._log = log
        self._queue = queue
        self._invoker = invoker
        self._clock = clock
        self._offload = offload
        self._period = period
        self._deployment = deployment
        self._lists = OrderedDict[str, tuple[int, Place | None]]()
        """Tenants that were met, each with the list and the place in it to look at next."""
        # Where the code is not known, no saga waits for other code.
        self.lanes = LANES if deployment is not None else tuple(lane for lane in LANES if lane != PARKED)

    async def sweep(self, shard: int, left: int) -> Sweep:
        """Wake all that is due now; time what falls due before the next run: timers, and sagas at work, whose
        holders may have died. `left`: ms it has.

        A run takes each `RUNS`th shard from `shard` on, all of them side by side. A call that fails stops no
        other: its sagas are due in the next run. A timer that two runs send is a wake too many, which costs a
        read. Raises what the first call met if something failed and nothing could be done.
        """
        now = self._clock.now()
        ahead = now + min(PERIODS_AHEAD * self._period, Limits().timer_by_message_ms)
        run = _Run(range(shard, self._log.limits.due_shards, RUNS), now + left - RESERVE_MS)
        *wakings, timers, held, mended = await asyncio.gather(
            *(self._lane(run, lane, (0, now), self._wake) for lane in self.lanes),
            self._lane(run, TIMER, (now + 1, ahead), self._time),
            self._lane(run, WORK, (now + 1, ahead), self._time),
            self._mend(run, now),
        )
        woken, found = sum(wakings), await self._look(run, now)
        timed = timers + held
        sweep = Sweep(
            woken=woken, timed=timed, failed=len(run.failures), more=run.more, mended=mended, found=found
        )
        level = logging.ERROR if sweep.failed else logging.INFO
        figures = {"woken": woken, "timed": timed, "failed": sweep.failed, "more": sweep.more}
        figures |= {name: count for name, count in (("mended", mended), ("found", found)) if count}
        logger.log(level, "swept", extra={"shard": shard, **figures})
        if run.failures and not (woken or timed or mended):
            raise run.failures[0]
        return sweep

    async def _lane(self, run: _Run, lane: str, span: _Span, act: _Act) -> int:
        """Apply `act` to all that is due in a lane of the run's shards. Return the number of successes."""
        slots = asyncio.Semaphore(SIDE_BY_SIDE)
        return sum(
            await asyncio.gather(*(self._each(run, lane, shard, span, act, slots) for shard in run.shards))
        )

    async def _each(
        self, run: _Run, lane: str, shard: int, span: _Span, act: _Act, slots: asyncio.Semaphore
    ) -> int:
        """Act on each saga of one shard, page by page."""
        done, after = 0, None
        while not self._is_over(run):
            try:
                page = await self._offload(self._log.due, lane, shard, *span, PER_PAGE, after)
            except Exception as error:  # noqa: BLE001  # the other lanes do not depend on it
                run.failed(error)
                run.more = True
                break
            last = page[-1] if page else None
            for ref, _ in page:
                self._lists.setdefault(ref.tenant, (0, None))
            page = by_turns(page, lambda due: due[0].tenant)
            parts = [page[start : start + PER_CALL] for start in range(0, len(page), PER_CALL)]
            done += sum(await asyncio.gather(*(self._part(run, act, part, slots) for part in parts)))
            if len(page) < PER_PAGE:
                break
            after = last
        return done

    async def _part(self, run: _Run, act: _Act, part: Sequence[Due], slots: asyncio.Semaphore) -> int:
        async with slots:
            if self._is_over(run):
                return 0
            try:
                done = await act(part)
            except Exception as error:  # noqa: BLE001  # a defect of ours must not stop the others either
                run.failed(error)
                return 0
            if done < len(part):
                run.failed(StoreUnavailable(f"{len(part) - done} of {len(part)} were not accepted"))
            return done

    async def _wake(self, part: Sequence[Due]) -> int:
        """Invoke the worker. Where that fails, the queue may bring one even so."""
        messages = [Message(str(ref)) for ref, _ in part]
        try:
            await self._offload(self._invoker.invoke, messages)
        except EngineFault:
            with suppress(EngineFault):
                await self._offload(self._queue.send, [(message, 0) for message in messages])
            raise
        return len(part)

    async def _mend(self, run: _Run, now: int) -> int:
        """Send messages for some of those that are parked for a defect and were
        not tried with this code, over the time to the next run.
        """
        deployment = self._deployment
        if deployment is None or self._is_over(run):
            return 0
        try:
            before = await deployment.tries_before()
            if before is None:
                return 0
            sent, until = 0, before + Limits().parked_look_ms
            for shard in run.shards:
                if self._is_over(run):
                    break
                page = await self._offload(self._log.due, PARKED, shard, now + 1, until, PER_PAGE, None)
                sent += await self._send(self._some(page, now), deployment.build)
        except Exception as error:  # noqa: BLE001  # nothing else depends on it, and they are there in the next run
            run.failed(error)
            return 0
        return sent

    async def _look(self, run: _Run, now: int) -> int:
        """Look at a page of a tenant's open sagas. Make those due that no index leads to; return how many.

        It is the net below all others: a saga gets there only by a lost or a tampered item. A process goes
        through the lists of the tenants that it has met in turn, and begins anew when it is replaced.
        """
        if now // self._period % LOOKS_EVERY or not self._lists or self._is_over(run):
            return 0
        while len(self._lists) > TENANTS:
            self._lists.popitem(last=False)
        tenant, (part, after) = self._lists.popitem(last=False)
        shards = range(run.shards[0], self._log.limits.status_shards, RUNS)
        parts = [(group, shard) for group in OPEN for shard in shards]
        try:
            if not parts:
                return 0
            group, shard = parts[part % len(parts)]
            rows, place = await self._offload(
                self._log.listed, tenant, group, shard, limit=LOOKED_AT, after=after
            )
            found = await asyncio.gather(*(self._restore(SagaRef(tenant, row.id), now) for row in rows))
            part, after = (part, place) if place is not None else (part + 1, None)
            return sum(found)
        except Exception as error:  # noqa: BLE001  # nothing else depends on it
            run.failed(error)
            return 0
        finally:
            self._lists[tenant] = part, after

    async def _restore(self, ref: SagaRef, now: int) -> bool:
        """Make a saga due that is in no index, or so far away that no sweep comes to it.
        Return false if another writer was first.
        """
        head = await self._offload(self._log.read_head, ref)
        if head is None or head.group not in OPEN:
            return False
        if head.lane and head.due_at is not None and head.due_at <= now + LOST_AFTER_MS:
            return False
        if not head.owner or head.until <= now:
            done = await self._offload(self._log.arm, head, now)
        elif head.until > now + LOST_AFTER_MS:  # no invocation lasts as long
            take = self._log.take
            done = await self._offload(take, ref, head.owner, now, head.epoch, now) is not None
        else:
            return False
        if done:
            logger.warning(
                "repaired a saga", extra={"saga": ref.id, "finding": "not_due", "by": "reconciler"}
            )
        return done

    def _some(self, page: Sequence[Due], now: int) -> Sequence[Due]:
        """Return as many as are woken in one run, others in the next:
        no saga that cannot be tried keeps the rest from it.
        """
        most = max(1, MENDED_A_MINUTE * self._period // 60_000 // self._log.limits.due_shards)
        step = max(1, len(page) // most)
        return page[now // self._period % step :: step][:most]

    async def _send(self, some: Sequence[Due], build: str) -> int:
        seconds = min(self._period, Limits().timer_by_message_ms) // 1_000
        messages = [
            (Message(str(ref), build=build, due=at), number * seconds // len(some))
            for number, (ref, at) in enumerate(some)
        ]
        sent = 0
        for start in range(0, len(messages), PER_CALL):
            part = messages[start : start + PER_CALL]
            sent += len(part) - len(await self._offload(self._queue.send, part))
        return sent

    async def _time(self, part: Sequence[Due]) -> int:
        now = self._clock.now()
        messages = [(Message(str(ref)), max(0, -((now - at) // 1_000))) for ref, at in part]
        return len(part) - len(await self._offload(self._queue.send, messages))

    def _is_over(self, run: _Run) -> bool:
        if self._clock.now() < run.until:
            return False
        run.more = True
        return True
