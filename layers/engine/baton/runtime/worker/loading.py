"""Loading a saga that was taken: its log and its program, and the entries that come before any decision.

These are the death of the worker that had it before, and the parking of a saga whose user may spend nothing more.
"""

from __future__ import annotations

from collections.abc import Sequence

from baton.core.decide.program import Program
from baton.core.log import events as ev
from baton.ports import Head
from baton.runtime.engine.log_writer import LogWriter, Superseded
from baton.runtime.engine.parts import Parts
from baton.runtime.log.history import History
from baton.runtime.log.lease import Lease
from baton.runtime.money.billed import Left


class Loader:
    """For the sagas of one invocation."""

    def __init__(self, parts: Parts, log: LogWriter) -> None:
        self._p = parts
        self._log = log

    async def load(self, lease: Lease, history: History) -> Program:
        """Fold the log, and return the program that the saga runs. Raises `Superseded`."""
        history.owes_death = lease.dead is not None
        entries = await history.load(lease.before)
        if history.state.version == 0:
            await self._p.starter.put_entry_one(lease.before)
            entries = await history.catch_up()
        if history.state.epoch > lease.epoch:
            raise Superseded
        history.owes_death = lease.dead is not None and not _gave_up(lease.dead, entries)
        program = await self._p.catalog.program(lease.ref.tenant, history.state.origin.graph)
        self._p.durations.learn(history.state.origin.graph, entries)
        if lease.dead is not None and history.owes_death:
            # Before the entry: a worker that stood still meanwhile learns from the entry that it is too late.
            dead = lease.dead
            holders = (dead.owner, *_silent_deaths(dead, entries))
            left = await self._p.ledger.revived(
                history.state, program.graph, dead.until, holders, shares=program.shares
            )
            await self._record_death(lease, history, left)
            history.owes_death = False
        await self._check_money(lease, history, program)
        return program

    async def _check_money(self, lease: Lease, history: History, program: Program) -> None:
        """A saga whose user may spend nothing more today is parked before any step of it begins."""
        parked = await self._p.ledger.blocked(history.state, program.graph)
        while parked is not None and history.state.parked is None and history.state.ended is None:
            if await self._log.append(lease, history, (parked,)):
                return
            await self._log.news(lease, history)

    async def _record_death(self, lease: Lease, history: History, left: Left) -> None:
        """The first entry of a revival is also the fence that stops the old invocation for good."""
        dead = lease.dead
        while dead is not None and history.state.ended is None:
            now = self._p.clock.now()
            death = ev.Revived(
                dead=dead.owner,
                dead_epoch=dead.epoch,
                dead_until=dead.until,
                at=now,
                assumed=left.costs,
                tokens=left.tokens,
            )
            if await self._log.append(lease, history, (death,)):
                return
            await self._log.news(lease, history)


def _gave_up(dead: Head, entries: Sequence[ev.Entry]) -> bool:
    """Whether the holder of a lease that ran out has said that it would. It has written nothing after that."""
    mine = [entry for entry in entries if (entry.epoch, entry.invocation) == (dead.epoch, dead.owner)]
    return bool(mine) and isinstance(mine[-1].events[-1], ev.GaveUp)


def _silent_deaths(dead: Head, entries: Sequence[ev.Entry]) -> tuple[str, ...]:
    """The worker that wrote last, if another has died since without a word: it may have died before that, and no entry says so."""
    last = next((one for one in reversed(entries) if one.epoch), None)
    return (last.invocation,) if last is not None and last.epoch < dead.epoch else ()
