"""What is done with a saga when a fault keeps the engine from going on: finished outcomes are saved, the lease is given back.

All of it is best effort: the fault before it is the one to be told of.
"""

from __future__ import annotations

import logging

from baton.core.decide.outcomes import refused
from baton.core.log import events as ev
from baton.errors import RowsRefused
from baton.ports import SagaRef
from baton.runtime.engine.log_writer import LogWriter
from baton.runtime.engine.parts import Parts
from baton.runtime.engine.run import Run
from baton.runtime.log.history import History
from baton.runtime.log.lease import Lease
from baton.runtime.steps.inflight import spent_by, undecided

logger = logging.getLogger("baton.worker")


class Faults:
    """For the sagas of one invocation."""

    def __init__(self, parts: Parts, log: LogWriter) -> None:
        self._p = parts
        self._log = log

    async def give_up(
        self, ref: SagaRef, pause: int, lease: Lease | None = None, history: History | None = None
    ) -> None:
        """Give the lease back after a fault, or else say in the log that it will run out without a death.

        A store may refuse what its indexes show, and append all the same: an entry is in none. Nothing is said where the log has not
        been read. Where it lacks the death of the holder before, neither is done, or that death would be taken for told: the lease runs
        out, and the next worker tells of this one's in its place.
        """
        if history is not None and history.owes_death:
            logger.warning("the death before is left to the next worker", extra={"saga": ref.id})
            return
        may_say = history is not None and history.state.version > 0
        now, end = self._p.clock.now(), self._p.invocation.deadline - self._p.limits.answer_ms // 2
        soon = now + (end - now) // 2 if may_say else end
        if await self._p.leases.give_up(ref, pause, soon) or lease is None or history is None or not may_say:
            return
        history.hurry(self._p.call.until(end))
        try:
            while history.state.ended is None:
                if await self._log.append(lease, history, (ev.GaveUp(),)):
                    return
                await self._log.news(lease, history)
        except Exception:  # whatever it is, the fault before it is the one to be told of
            logger.warning("a death will be counted", exc_info=True, extra={"saga": ref.id})

    async def rescue(self, run: Run) -> None:
        """After a fault, append finished outcomes and the costs of stopped steps. Undecidable outcomes count as stopped."""
        try:
            rescued = await run.attempts.rescue(run.history.state)
            self._p.ledger.leave(str(run.lease.ref))  # those that ended by the fault have settled nothing
            before = run.history.unanswered
            if before is not None and await self._log.put(run.lease, run.history, *before):
                run.outcomes = run.outcomes[run.sent :]
            run.outcomes = [*rescued, *run.outcomes]
            run.in_turn, size = False, len(run.outcomes)  # none waits for children that are to be cancelled
            while run.outcomes:
                advance, appended = (
                    run.advance(self._p.clock.now(), self._p.bounds, together=True, size=size),
                    False,
                )
                try:
                    slim = await self._p.slim(run.history.state.origin, advance.events)
                    appended = not slim or await self._log.append(run.lease, run.history, slim, advance.rows)
                    instead = None if advance.taken else undecided(run.outcomes[0])  # it lacks something
                except RowsRefused as error:
                    instead = refused(run.outcomes[0], str(error))
                if instead is not None:
                    if size == 1:
                        run.outcomes[0] = instead
                    size = max(size // 2, 1)  # until it is found which of them it is
                    continue
                if appended:
                    run.outcomes = run.outcomes[advance.taken :]
                elif await self._log.news(run.lease, run.history):
                    run.outcomes = spent_by(run.outcomes)
                size = len(run.outcomes)
        except Exception:  # whatever it is, the fault before it is the one to be told of
            logger.warning("not rescued", exc_info=True, extra={"saga": run.lease.ref.id})
