"""The reconciler: the one clock. What is due is woken without any queue; what is nearly due is timed.

It knows nothing of a saga but its key; the worker's own rules decide whether there is anything to do.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass

from baton.core.limits import Limits
from baton.ports import Clock, DeadLetters, Invoker, Log, Message, Queue

logger = logging.getLogger("baton.reconciler")

PER_INVOCATION = 10
PERIODS_AHEAD = 2  # the schedule starts a run somewhere in its minute, so the next one may be nearly two away


@dataclass(frozen=True, slots=True)
class Sweep:
    """What one run over one shard did."""

    woken: int
    timed: int
    more: bool


class Reconciler:
    """The reconciler function's job. `period` is the time between two runs in ms."""

    def __init__(
        self, log: Log, queue: Queue, invoker: Invoker, dead_letters: DeadLetters, clock: Clock, period: int
    ) -> None:
        self._log = log
        self._queue = queue
        self._invoker = invoker
        self._dead_letters = dead_letters
        self._clock = clock
        self._period = period

    def sweep(self, shard: int, limit: int = 1_000) -> Sweep:
        """Wake everything in a shard that is due now, and time what falls due before the next run.

        The queue may refuse or lose a timer: the saga is then due in the next run. A timer that two runs send
        is a wake too many, which costs a read.
        """
        now = self._clock.now()
        ahead = min(PERIODS_AHEAD * self._period, Limits().timer_by_message_ms)
        due = self._log.due(shard, now + ahead, limit)
        overdue = [Message(str(ref)) for ref, at in due if at <= now]
        soon = [(Message(str(ref)), -((now - at) // 1_000)) for ref, at in due if at > now]
        if soon:
            self._queue.send(soon)
        for start in range(0, len(overdue), PER_INVOCATION):
            self._invoker.invoke(overdue[start : start + PER_INVOCATION])
        sweep = Sweep(woken=len(overdue), timed=len(soon), more=len(due) >= limit)
        logger.info(
            "swept", extra={"shard": shard, "woken": sweep.woken, "timed": sweep.timed, "more": sweep.more}
        )
        return sweep

    def watch_dead_letters(self) -> int:
        """The number of dead letters; more than none is an error in the log."""
        count = self._dead_letters.count()
        if count:
            logger.error("there are dead letters", extra={"dead_letters": count})
        return count
