"""The outer loop of one saga in one invocation: take, load, decide, perform, append, release.

All decisions are core/decide.py's. A stale runner stops itself: past its lease it appends nothing and
starts nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import msgspec

from baton.core import events as ev
from baton.core.decide import Advance, Decision, RunStep, advance
from baton.core.outcomes import Outcome
from baton.core.program import Program
from baton.errors import CorruptLog, EngineFault, UnknownEntry
from baton.ports import Message, SagaRef
from baton.runtime.budget import Budget
from baton.runtime.history import History, wake_of_end
from baton.runtime.lease import Lease
from baton.runtime.parts import Parts

YIELDED, FINISHED, IDLE, SUPERSEDED = "yielded", "finished", "idle", "superseded"


class _Superseded(Exception):
    """Somebody else holds this saga now, or our own time is over."""


@dataclass
class _Run:
    """What one saga's run holds in memory. `begun`: a step was started in this invocation."""

    lease: Lease
    history: History
    program: Program
    blobs: dict[str, Any] = field(default_factory=dict)
    tasks: dict[str, asyncio.Task[Outcome]] = field(default_factory=dict)
    started: dict[str, int] = field(default_factory=dict)
    begun: bool = False
    asked_children: set[str] = field(default_factory=set)


class Runner:
    """Runs sagas for one invocation; `parts` are its collaborators."""

    def __init__(self, parts: Parts, budget: Budget | None = None) -> None:
        self._p = parts
        self._budget = budget or Budget.of(parts.invocation, parts.limits)

    async def run(self, message: Message, *, alone: bool) -> str:
        """Carry the saga as far as it goes. Returns in one word how that ended.

        Raises `EngineFault` when a store failed for longer than the budget lasts, or when the log is not
        what this version can read; the saga is then left as it was.
        """
        ref = SagaRef.parse(message.saga)
        lease = await self._p.leases.acquire(ref, message, alone=alone)
        if isinstance(lease, str):
            return lease
        history = History(self._p.log, self._p.call, ref)
        run: _Run | None = None
        try:
            program = await self._load(lease, history)
            run = _Run(lease, history, program)
            return await self._carry(run)
        except _Superseded:
            return SUPERSEDED
        except (UnknownEntry, CorruptLog):
            await self._leave_for_later(lease)
            raise
        finally:
            if run is not None:
                await self._stop_tasks(run)

    async def _load(self, lease: Lease, history: History) -> Program:
        head = lease.before
        entries = await history.load(head)
        if history.state.version == 0:
            await self._p.starter.put_entry_one(head)
            entries = await history.catch_up()
        program = await self._p.catalog.program(lease.ref.tenant, history.state.graph)
        self._p.pace.learn(history.state.workflow, entries)
        if lease.died:
            await self._record_death(lease, history)
        return program

    async def _record_death(self, lease: Lease, history: History) -> None:
        """The first entry of a revival is also the fence that stops the old invocation for good."""
        before = lease.before
        while history.state.ended is None:
            self._check_lease(lease)
            now = self._p.clock.now()
            death = ev.Revived(dead=before.owner, dead_epoch=before.epoch, dead_until=before.until, at=now)
            if await self._append(lease, history, (death,)):
                return
            await self._news(lease, history)

    async def _carry(self, run: _Run) -> str:
        outcomes: list[Outcome] = []
        while True:
            decision = await self._record(run, outcomes)
            outcomes = []
            if decision.children and await self._tend_children(run, decision):
                continue
            if decision.abort:
                await self._stop_tasks(run)
                continue
            wants_more = self._start_steps(run, decision)
            if run.tasks:
                outcomes = await self._wait(run, decision)
                continue
            if await self._p.leases.release(run.lease, run.history, again=wants_more, due=decision.due):
                if wants_more:
                    return YIELDED
                return FINISHED if run.history.state.ended is not None else IDLE
            await self._refused(run)

    async def _record(self, run: _Run, outcomes: Sequence[Outcome]) -> Decision:
        """Append what the outcomes mean; the decision that holds afterwards."""
        pending = list(outcomes)
        while True:
            self._check_lease(run.lease)
            chunk = self._chunk(pending)
            step = await self._advance(run, chunk)
            events = step.events
            if step.decision.cancel:
                await self._p.children.cancel(run.lease.ref, step.decision.cancel)
                events += step.decision.record
            if not events:
                return step.decision
            if await self._append(run.lease, run.history, events):
                pending = pending[len(chunk) :]
                if not pending and not step.decision.cancel:
                    return step.decision
                continue
            if await self._news(run.lease, run.history):
                pending = []
                await self._stop_tasks(run)

    async def _advance(self, run: _Run, outcomes: Sequence[Outcome]) -> Advance:
        while True:
            now = self._p.clock.now()
            step = advance(run.program, run.history.state, outcomes, now, run.tasks.keys(), run.blobs)
            if not step.decision.needs:
                return step
            for ref in step.decision.needs:
                data = await self._p.call(self._p.blobs.get, run.lease.ref.tenant, ref)
                run.blobs[ref] = msgspec.json.decode(data)

    def _chunk(self, outcomes: list[Outcome]) -> list[Outcome]:
        """As many outcomes as surely fit into one entry together; at least one."""
        room = self._p.limits.entry // (self._p.limits.inline + 1_024)
        return outcomes[: max(room, 1)]

    async def _append(self, lease: Lease, history: History, events: Sequence[ev.Event]) -> bool:
        slim = [await self._p.slim(lease.ref.tenant, event) for event in events]
        entry = history.next_entry(
            slim,
            at=self._p.clock.now(),
            invocation=self._p.invocation.id,
            epoch=lease.epoch,
            cold=self._p.invocation.cold,
            trace=self._p.traceparent(history.state.traceparent),
        )
        self._check_lease(lease)
        return await history.append(entry, wake_of_end(history.state, entry))

    async def _news(self, lease: Lease, history: History) -> bool:
        """Read what others appended. True when it was a fork; `_Superseded` when it was a newer holder."""
        branch = history.state.branch
        for entry in await history.catch_up():
            if entry.epoch > lease.epoch:
                raise _Superseded
        return history.state.branch != branch

    def _start_steps(self, run: _Run, decision: Decision) -> bool:
        """Start what fits into the budget. True when something is ready that does not."""
        self._check_lease(run.lease)
        wants_more = False
        for step in decision.run:
            now = self._p.clock.now()
            timeout = self._p.steps.timeout(step)
            expected = self._p.pace.expected(run.history.state.workflow, step.node.name, step.node.tool, timeout)
            if self._budget.fits(now, expected) or (not run.begun and self._budget.is_fresh(now)):
                self._start(run, step, now)
            else:
                wants_more = True
        return wants_more

    def _start(self, run: _Run, step: RunStep, now: int) -> None:
        state = run.history.state
        attempt = self._p.steps.run(state, step, self._p.traceparent(state.traceparent))
        run.tasks[step.slot] = asyncio.create_task(attempt, name=f"{run.lease.ref}/{step.slot}")
        run.started[step.slot] = now

    async def _wait(self, run: _Run, decision: Decision) -> list[Outcome]:
        """Outcomes of the steps that are done, when one is, or time has brought something else."""
        run.begun = True
        now = self._p.clock.now()
        until = min(
            self._budget.cut_off, now + self._p.limits.news_every, decision.due or self._budget.cut_off
        )
        await asyncio.wait(
            run.tasks.values(), timeout=max(until - now, 0) / 1_000, return_when=asyncio.FIRST_COMPLETED
        )
        now = self._p.clock.now()
        if now >= run.lease.until:
            raise _Superseded
        outcomes = self._collect(run)
        if now >= self._budget.cut_off and run.tasks:
            outcomes += await self._interrupt(run)
        elif not outcomes and await self._news(run.lease, run.history):
            await self._stop_tasks(run)
        return outcomes

    def _collect(self, run: _Run) -> list[Outcome]:
        outcomes = []
        for slot in [slot for slot, task in run.tasks.items() if task.done()]:
            task = run.tasks.pop(slot)
            node, started, now = slot.partition("@")[0], run.started[slot], self._p.clock.now()
            if task.cancelled():
                failure = ev.Failure("tool_error", "the tool cancelled itself", node)
                outcomes.append(
                    Outcome(slot=slot, attempt=1, started_at=started, ended_at=now, failure=failure)
                )
                continue
            outcome = task.result()
            tool = run.program.nodes[node].tool
            self._p.pace.observe(run.history.state.workflow, node, tool, outcome.ended_at - outcome.started_at)
            outcomes.append(outcome)
        return outcomes

    async def _interrupt(self, run: _Run) -> list[Outcome]:
        """The invocation ends: cut off what is still running, and keep what finished just now."""
        slots = list(run.tasks)
        await self._stop_tasks(run, keep_finished=True)
        outcomes = self._collect(run)
        finished = {outcome.slot for outcome in outcomes}
        now = self._p.clock.now()
        for slot in slots:
            if slot not in finished:
                started = run.started[slot]
                self._p.pace.cut_off(run.history.state.workflow, slot.partition("@")[0], now - started)
                budget = self._budget.cut_off - self._budget.started
                outcomes.append(
                    Outcome(slot=slot, attempt=1, started_at=started, ended_at=now, budget_ms=budget)
                )
        return outcomes

    async def _stop_tasks(self, run: _Run, *, keep_finished: bool = False) -> None:
        """Cancel all running steps and wait, briefly, until they are gone; one that will not is abandoned."""
        tasks = list(run.tasks.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._budget.reserve / 6_000)
        keep = {
            slot: task
            for slot, task in run.tasks.items()
            if keep_finished and task.done() and not task.cancelled() and task.exception() is None
        }
        for task in tasks:
            if task.done() and not task.cancelled():
                task.exception()  # retrieved, so that asyncio does not complain about what was dropped on purpose
        run.tasks = keep

    async def _tend_children(self, run: _Run, decision: Decision) -> bool:
        """Start children that are to be started, ask open ones once; True when one of them has ended."""
        open_children = [(slot, child) for slot, child in decision.children if slot not in run.asked_children]
        run.asked_children.update(slot for slot, _ in open_children)
        reports = await self._p.children.tend(run.lease.ref, run.history.state, open_children)
        while reports:
            self._check_lease(run.lease)
            if await self._append(run.lease, run.history, reports):
                return True
            if await self._news(run.lease, run.history):
                return True
        return False

    async def _refused(self, run: _Run) -> None:
        """A release was refused: read the head, then the log; go on unless the lease is lost."""
        head = await self._p.call(self._p.log.read_head, run.lease.ref)
        if head is None or head.owner != run.lease.owner or head.epoch != run.lease.epoch:
            raise _Superseded
        run.lease = replace(run.lease, armed=head.armed)
        if await self._news(run.lease, run.history):
            await self._stop_tasks(run)
        if head.nudge > run.history.state.version:
            raise CorruptLog(f"{run.lease.ref}: a nudge names version {head.nudge}, which is not in the log")

    def _check_lease(self, lease: Lease) -> None:
        if self._p.clock.now() >= lease.until:
            raise _Superseded

    async def _leave_for_later(self, lease: Lease) -> None:
        """The log cannot be read by this version: free the lease and change nothing else."""
        plan = self._p.leases.untouched(lease)
        try:
            await self._p.call(self._p.log.release, lease.ref, lease.owner, lease.epoch, plan)
        except EngineFault:
            return  # the lease runs out by itself
