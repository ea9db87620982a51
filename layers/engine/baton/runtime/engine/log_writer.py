"""Appends to the logs of sagas that are held, and only while they are; reads what others have appended meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from baton.core.effects.rows import Row
from baton.core.log import events as ev
from baton.core.log.state import State
from baton.runtime.engine.parts import Parts
from baton.runtime.engine.run import Run
from baton.runtime.log.history import History
from baton.runtime.log.lease import Lease
from baton.runtime.steps.inflight import spent_by


class Superseded(Exception):
    """Another invocation holds this saga now, or the time of this one is over."""


class LogWriter:
    """For the sagas of one invocation."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def check_lease(self, lease: Lease) -> None:
        """Raises `Superseded` when its time is over."""
        if self._p.clock.now() >= lease.until:
            raise Superseded

    async def append(
        self,
        lease: Lease,
        history: History,
        events: Sequence[ev.Event],
        rows: Sequence[Row] = (),
        after: State | None = None,
    ) -> bool:
        """Put the next entry. False when another one is there: catch up, and decide again."""
        if any(isinstance(event, ev.StepInterrupted) and event.cost for event in events):
            # No log has more than accounts that answer, if this dies.
            await self._p.ledger.closed(str(lease.ref))
        entry = history.next_entry(
            events,
            at=self._p.clock.now(),
            invocation=self._p.invocation.id,
            epoch=lease.epoch,
            cold=self._p.invocation.cold,
            trace=self._p.traceparent(history.state.origin.traceparent),
        )
        return await self.put(lease, history, entry, rows, after)

    async def put(
        self, lease: Lease, history: History, entry: ev.Entry, rows: Sequence[Row], after: State | None = None
    ) -> bool:
        """Put an entry that is made already. Raises `Superseded` also where a read that has failed since had found a newer holder."""
        self.check_lease(lease)
        if history.state.epoch > lease.epoch:
            raise Superseded
        appended = await history.append(entry, rows, after)
        if appended:
            if history.watched:
                self._p.live.heard(lease.ref, history.watched)
            self._p.metrics.heard(history.state.origin.workflow, entry.events, entry.at)
        return appended

    async def news(self, lease: Lease, history: History) -> bool:
        """Read what others appended. True when it was a fork; raises `Superseded` when it was a newer holder."""
        branch = history.state.lineage.branch
        for entry in await history.catch_up():
            if entry.epoch > lease.epoch:
                raise Superseded
        return history.state.lineage.branch != branch

    async def catch_up(self, run: Run) -> bool:
        """The news for a running saga. True after a fork: what was under way belongs to the old branch."""
        if not await self.news(run.lease, run.history):
            return False
        run.outcomes = [*await run.attempts.cancel_all(), *spent_by(run.outcomes)]
        run.asked.clear()
        return True
