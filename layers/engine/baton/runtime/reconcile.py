"""The reconciler: the one clock. It wakes sagas that are due without any queue, and times those that are nearly due.

It knows nothing of a saga but its key; the worker's own rules decide whether there is anything to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from baton.core.limits import Limits
from baton.errors import StoreUnavailable
from baton.ports import Clock, DeadLetters, Due, Invoker, Log, Message, Offload, Queue
from baton.runtime.turns import by_turns

logger = logging.getLogger("baton.reconciler")

PER_PAGE = 1_000
PER_CALL = 10  # wakes of one invocation, messages of one request
SIDE_BY_SIDE = 8  # calls: one that hangs must not stop the rest
RESERVE_MS = (
    7_000  # from the beginning of the last call to the end of the run; a client gives up after six seconds
)
PERIODS_AHEAD = 2  # the schedule starts a run somewhere in its minute, so the next one may be nearly two away

_Act: TypeAlias = Callable[[Sequence[Due]], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Sweep:
    """What one run over one shard did: sagas woken and timed, and calls that failed. `more`: some were left for the next."""

    woken: int
    timed: int
    failed: int
    more: bool


@dataclass
class _Run:
    """A run that is under way. It begins no call after `until`."""

    shard: int
    until: int
    more: bool = False
    failures: list[Exception] = field(default_factory=list)
    slots: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(SIDE_BY_SIDE))

    def failed(self, error: Exception) -> None:
        self.failures.append(error)
        logger.warning("left for the next run", extra={"shard": self.shard, "fault": repr(error)})


class Reconciler:
    """The reconciler function's job. `period` is the time between two runs in ms."""

    def __init__(
        self,
        log: Log,
        queue: Queue,
        invoker: Invoker,
        dead_letters: DeadLetters,
        clock: Clock,
        offload: Offload,
        period: int,
    ) -> None:
        self._log = log
        self._queue = queue
        self._invoker = invoker
        self._dead_letters = dead_letters
        self._clock = clock
        self._offload = offload
        self._period = period

    async def sweep(self, shard: int, left: int) -> Sweep:
        """Wake everything in a shard that is due now; then time what falls due before the next run. `left`: ms it has.

        A call that fails stops no other: its sagas are due in the next run. A timer that two runs send is a wake too
        many, which costs a read. Raises what the first call met if something failed and nothing could be done.
        """
        now = self._clock.now()
        ahead = now + min(PERIODS_AHEAD * self._period, Limits().timer_by_message_ms)
        run = _Run(shard, now + left - RESERVE_MS)
        woken = await self._each(run, 0, now, self._wake)
        timed = await self._each(run, now + 1, ahead, self._time)
        sweep = Sweep(woken=woken, timed=timed, failed=len(run.failures), more=run.more)
        level = logging.ERROR if sweep.failed else logging.INFO
        figures = {"woken": woken, "timed": timed, "failed": sweep.failed, "more": sweep.more}
        logger.log(level, "swept", extra={"shard": shard, **figures})
        if run.failures and not (woken or timed):
            raise run.failures[0]
        return sweep

    async def _each(self, run: _Run, since: int, until: int, act: _Act) -> int:
        """Do something with all that is due in a span of time, page by page. How many it was done with."""
        done, after = 0, None
        while not self._is_over(run):
            try:
                page = await self._offload(self._log.due, run.shard, since, until, PER_PAGE, after)
            except Exception as error:  # noqa: BLE001  # timers do not depend on it
                run.failed(error)
                run.more = True
                break
            last = page[-1] if page else None
            page = by_turns(page, lambda due: due[0].tenant)
            parts = [page[start : start + PER_CALL] for start in range(0, len(page), PER_CALL)]
            done += sum(await asyncio.gather(*(self._part(run, act, part) for part in parts)))
            if len(page) < PER_PAGE:
                break
            after = last
        return done

    async def _part(self, run: _Run, act: _Act, part: Sequence[Due]) -> int:
        async with run.slots:
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
        await self._offload(self._invoker.invoke, [Message(str(ref)) for ref, _ in part])
        return len(part)

    async def _time(self, part: Sequence[Due]) -> int:
        now = self._clock.now()
        messages = [(Message(str(ref)), max(0, -((now - at) // 1_000))) for ref, at in part]
        return len(part) - len(await self._offload(self._queue.send, messages))

    def _is_over(self, run: _Run) -> bool:
        if self._clock.now() < run.until:
            return False
        run.more = True
        return True

    def watch_dead_letters(self) -> int:
        """The number of dead letters; more than none is an error in the log."""
        count = self._dead_letters.count()
        if count:
            logger.error("there are dead letters", extra={"dead_letters": count})
        return count
