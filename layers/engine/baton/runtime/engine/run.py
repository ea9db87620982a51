"""Run of one saga in one invocation: its attempts under way, its memory, the writer of its log, and
performers of commands. Children are in runtime/worker/children.py, an attempt in runtime/steps/steps.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, KeysView, Mapping, Sequence
from decimal import Decimal
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from baton.core.conditions import SandboxAnswer
from baton.core.decide.context import NOTHING, FetchedValues
from baton.core.decide.decide import Advance, RunStep, advance
from baton.core.decide.decision import (
    Command,
    Decision,
    FetchValues,
    JudgeConditions,
    RunSteps,
    SendNotices,
    StopSteps,
)
from baton.core.decide.outcomes import Outcome, spent_by
from baton.core.decide.program import Program
from baton.core.decide.spending import Bounds
from baton.core.effects.rows import Row
from baton.core.effects.toolspec import ONCE
from baton.core.log import events as ev
from baton.core.log.events import Entry, Failure
from baton.core.log.folding.received import cancelling_signal, said_of
from baton.core.log.records import Child
from baton.core.log.state import FAULT, Origin, State
from baton.core.log.work import Callback
from baton.core.models.usage import Usage
from baton.core.money import assumed_in, micro_dollars
from baton.core.on_demand import OnDemand
from baton.errors import CorruptLog, Standstill
from baton.ports import NoRoom
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.attempt import AttemptInput, LazyJournal
from baton.runtime.invocation.context import Alarm, Deadline, DurationEstimator, InvocationContext, Overdue
from baton.runtime.log.history import History, Superseded
from baton.runtime.log.lease import Lease
from baton.runtime.people.notices import Notifier
from baton.runtime.steps.steps import Steps

if TYPE_CHECKING:
    from baton.core.decide import schema_changes
    from baton.ports import UnitLog
    from baton.runtime.money.ledger import Ledger
    from baton.runtime.steps import journal as journals
    from baton.runtime.steps.journal import KnownUnits, UnitQueue
else:
    schema_changes = OnDemand("baton.core.decide.schema_changes")
    journals = OnDemand("baton.runtime.steps.journal")

NO_UNITS: Mapping[str, KnownUnits] = MappingProxyType({})
AT_ONCE_S = 0.01
"""Longest wait, in seconds, of a join's successors for the costs of the steps that it stopped."""


class _RunningAttempt(Struct, frozen=True, eq=False):
    """An attempt that began here at `started`, and what it has spent so far."""

    step: RunStep
    started: int
    spent: list[Decimal]
    usage: list[Usage]
    task: asyncio.Task[Outcome]


class InFlight:
    """Running attempts by slot.

    `_full`: tools that had no room in this process, with when to ask again and the pause before that.
    `_fault`: the fault that kept the engine from finishing one. `_unknown`: slots where such a fault has
    ended an attempt that may have acted, which the log does not know yet. `_cancelled`: attempts that were
    cancelled here, or ended by such a fault, whose costs the log may still lack. A tool may take its time to
    end, so that one stays there until its costs were given out as an outcome.

    An attempt is cancelled at the end of its invocation (`cut_off`), after a fault (`rescue`), when the saga
    stops (`abort`), or when the log no longer waits for it (`cancel_unneeded`, `cancel_all`).
    """

    def __init__(
        self, context: InvocationContext, steps: Steps, durations: DurationEstimator, deadline: Deadline
    ) -> None:
        self._steps = steps
        self._durations = durations
        self._context, self._clock, self._limits = context, context.clock, context.limits
        self._deadline = deadline
        self.units: UnitQueue | None = None
        self._running: dict[str, _RunningAttempt] = {}
        self._cancelled: list[_RunningAttempt] = []
        self._begun = 0
        self._full: dict[str, tuple[int, int]] = {}
        self._ask_again: int | None = None
        self._fault: BaseException | None = None
        self._unknown: set[str] = set()
        self._alarm = Alarm()
        self._woken: asyncio.Future[None] | None = None

    @property
    def slots(self) -> KeysView[str]:
        """Slots with a running attempt."""
        return self._running.keys()

    @property
    def busy(self) -> Collection[str]:
        """The slots that a decision must not take for free: those that run, and
        those where a fault has ended what may have acted.
        """
        return {*self._running, *self._unknown} if self._unknown else self._running.keys()

    @property
    def unpaid(self) -> list[str]:
        """Slots whose spending the log lacks: those that run, and those that were cancelled. Also the keys of
        units that wait for their entry.
        """
        running = [*self._running, *(self.units.waiting if self.units else ())]
        return running + [one.step.slot for one in self._cancelled] if self._cancelled else running

    @property
    def is_busy(self) -> bool:
        """True if a step is running here, or would be if it had room."""
        return bool(self._running) or self._ask_again is not None

    def _journal(self, attempt: AttemptInput, ledger: Callable[[], Ledger], known: Any) -> UnitLog:
        """Return the journal of a running attempt, for the first unit of its work."""
        if self.units is None:
            self.units = journals.UnitQueue(self._context, self._running, self._wake, self._steps)
        return self.units.journal(attempt, ledger, known)

    def start(
        self,
        state: State,
        steps: tuple[RunStep, ...],
        traceparent: str,
        known: Mapping[str, KnownUnits] = NO_UNITS,
    ) -> bool:
        """Start what fits. True when something is ready that only another invocation has time for.

        The first steps of an invocation always start: one that needs more than this invocation has needs more
        than any, and is found out by being cut off.
        """
        wants_more, is_first = False, not self._begun
        self._ask_again = None
        for step in steps:
            if len(self._running) >= self._limits.concurrent_steps:
                break
            now = self._clock.now()
            timeout = self._steps.timeout(step)
            expected = self._durations.expected(state.origin.graph, step.node.name, step.node.tool, timeout)
            again, _ = self._full.get(step.node.tool, (now, 0))
            if not (self._deadline.fits(now, expected) or (is_first and now < self._deadline.cut_off)):
                wants_more = True
            elif again > now:
                self._ask_again = again if self._ask_again is None else min(again, self._ask_again)
            else:
                spent: list[Decimal] = []
                usage: list[Usage] = []
                journal = LazyJournal(self._journal, known.get(step.slot))
                attempt = self._steps.run(state, step, traceparent, spent, usage, journal)
                task = asyncio.create_task(attempt, name=f"{state.origin.saga}/{step.slot}")
                task.add_done_callback(self._wake)
                self._running[step.slot] = _RunningAttempt(step, now, spent, usage, task)
                self._begun += 1
        return wants_more

    def has_time(self, at: int) -> bool:
        """Return true if a step that begins then can be expected to end in this invocation."""
        return self._deadline.fits(at, self._limits.step_estimate_ms)

    async def wait(self, until: int) -> None:
        """Wait until a step is done, there may be room for another, or the time has come."""
        until = until if self._ask_again is None else min(until, self._ask_again)
        left = max(until - self._clock.now(), 0) / 1_000
        if not self.units and not any(one.task.done() for one in self._running.values()):
            self._woken = asyncio.get_running_loop().create_future()
            try:
                await self._alarm.within(left, self._woken)
            except Overdue:
                return

    def _wake(self, _: asyncio.Task[Outcome] | None = None) -> None:
        """Wake the waiter: a running attempt is done, or a unit of one."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def collect(self, state: State) -> list[Outcome]:
        """Return the outcomes of all steps that are done.
        An engine fault inside a step comes out of `check`.
        """
        outcomes = [] if self.units is None else self.units.take()
        for one in [one for one in self._running.values() if one.task.done()]:
            step = one.step
            del self._running[step.slot]
            if self.units is not None:
                self.units.end(step.slot)
            if one.task.cancelled():
                failure = Failure("tool_error", "the tool cancelled itself", step.node.name)
                outcomes.append(replace(self._interrupted(one), failure=failure))
                continue
            fault = one.task.exception()
            if isinstance(fault, NoRoom):
                self._begun -= 1
                self._no_room_for(step.node.tool)
                continue
            if fault is not None:
                self._fault = self._fault or fault
                self._unknown.add(step.slot)
                self._cancelled.append(one)  # what it has spent is spent
                continue
            outcome = one.task.result()
            if outcome.why:  # it was not carried through, which tells nothing of its time
                outcomes.append(outcome)
                continue
            self._full.pop(step.node.tool, None)
            lasted = outcome.ended_at - outcome.started_at
            self._durations.observe(state.origin.graph, step.node.name, step.node.tool, lasted)
            outcomes.append(outcome)
        return outcomes

    def check(self) -> None:
        """Raise the engine fault that `collect` met in a step, once what was
        collected beside it is in the log.
        """
        if self._fault is not None:
            raise self._fault

    def _no_room_for(self, tool: str) -> None:
        """Let it be for a while: neither the step nor its saga has done anything wrong."""
        now = self._clock.now()
        again, pause = self._full.get(tool, (0, 0))
        if again <= now:
            pause = min(max(2 * pause, self._limits.room_pause_first_ms), self._limits.room_pause_longest_ms)
            self._full[tool] = (now + pause, pause)

    async def cut_off(self, state: State) -> list[Outcome]:
        """Interrupt the running steps at the end of the invocation, and keep what finished just now."""
        late = await self._interrupt()
        outcomes = self.collect(state)
        now = self._clock.now()
        for one in late:
            self._cancelled.remove(one)  # its outcome says what it has spent
            self._durations.cut_off(state.origin.graph, one.step.node.name, now - one.started)
            outcomes.append(self._interrupted(one))
        return outcomes

    async def rescue(self, state: State) -> list[Outcome]:
        """Stop all steps after a fault.
        Return the costs and possible acts of those that did not finish, and the outcomes of others.
        """
        await self._interrupt(self._cancelled)
        finished = self.collect(state)
        gone, self._cancelled = self._cancelled, []
        self._unknown.clear()
        stopped = [replace(self._outcome_of(one), why=FAULT, halt=None) for one in gone if _may_matter(one)]
        return [*stopped, *finished]

    async def _interrupt(self, others: Sequence[_RunningAttempt] = ()) -> list[_RunningAttempt]:
        """Cancel what is running and wait for it, and for `others`.
        Return those that have no outcome of their own.
        """
        running = list(self._running.values())
        for one in running:
            one.task.cancel()
        await self._wait_for([*running, *others])
        late = [one for one in running if not one.task.done() or one.task.cancelled()]
        self._cancel([one.step.slot for one in late])
        return late

    async def abort(self, slots: Collection[str] = ()) -> list[Outcome]:
        """Cancel what is running at these slots, or all of it.
        What has an outcome finished just now, has cost money, or may have acted.
        """
        gone = self._cancel([slot for slot in self._running if not slots or slot in slots])
        await self._wait_for(gone)
        self._cancelled = [one for one in self._cancelled if one not in gone]
        return [
            end
            for one in gone
            # What may happen only once, or is reversible, may have happened: the log has to know.
            if (end := self._outcome_of(one)).cost or _result_of(one) or _may_matter(one)
        ]

    async def cancel_unneeded(self, state: State) -> list[Outcome]:
        """Cancel the attempts at slots that the log no longer waits for.

        Return the costs of those that have ended by now, also of some that were cancelled before. The saga
        does not wait for one that is slow to end: a later call returns its costs.
        """
        self._ask_again = None
        if not (self._running or self._cancelled):
            return []
        unneeded = self._cancel([slot for slot in self._running if slot not in state.tokens])
        if not self._cancelled:
            return []
        # One that has spent something may use up the budget of what comes next.
        await self._wait_for([one for one in unneeded if one.spent], AT_ONCE_S)
        return self._costs_of([one for one in self._cancelled if one.task.done()])

    async def cancel_all(self) -> list[Outcome]:
        """Cancel all attempts and wait briefly for their ends; those that do not end are abandoned.
        Return their costs.
        """
        self._cancel(list(self._running))
        await self._wait_for(self._cancelled)
        units = [] if self.units is None else spent_by(self.units.take())
        return [*units, *self._costs_of(self._cancelled)]

    def _cancel(self, slots: Collection[str]) -> list[_RunningAttempt]:
        """Cancel the attempts at these slots.
        They do not run any more, and count as cancelled until their costs are known.
        """
        cancelled = [self._running.pop(slot) for slot in slots]
        for one in cancelled:
            one.task.cancel()
            if self.units is not None:
                self.units.end(one.step.slot)
            one.task.remove_done_callback(self._wake)
            one.task.add_done_callback(_retrieve)
        self._cancelled += cancelled
        return cancelled

    async def _wait_for(self, attempts: Sequence[_RunningAttempt], seconds: float | None = None) -> None:
        if tasks := [one.task for one in attempts if not one.task.done()]:
            await asyncio.wait(tasks, timeout=self._deadline.reserve / 6_000 if seconds is None else seconds)

    def _costs_of(self, ended: Sequence[_RunningAttempt]) -> list[Outcome]:
        """Return the costs of these cancelled attempts, and forget them: the log has them once."""
        self._cancelled = [one for one in self._cancelled if one not in ended]
        return spent_by(map(self._outcome_of, ended))

    def _outcome_of(self, one: _RunningAttempt) -> Outcome:
        """Return the step's own outcome where it came to one, else that it was interrupted."""
        return _result_of(one) or self._interrupted(one)

    def _interrupted(self, one: _RunningAttempt) -> Outcome:
        return Outcome(
            slot=one.step.slot,
            attempt=one.step.attempt,
            started_at=one.started,
            ended_at=self._clock.now(),
            budget_ms=max(self._deadline.cut_off - one.started, 0),
            cost=micro_dollars(one.spent),
            assumed=assumed_in(one.spent),
            usage=tuple(one.usage),
        )


def _may_matter(one: _RunningAttempt) -> bool:
    """Return true if the log must record an attempt that did not finish."""
    by_another = one.step.way is not None and bool(one.step.way.tool)
    may_stand = one.step.node.effect == ONCE or one.step.reversible
    return bool(one.spent) or by_another or may_stand


def _result_of(one: _RunningAttempt) -> Outcome | None:
    task = one.task
    has_one = task.done() and not task.cancelled() and task.exception() is None
    return task.result() if has_one else None


def _retrieve(task: asyncio.Task[Outcome]) -> None:
    """Retrieve the exception, so that asyncio does not complain about what was dropped on purpose."""
    if not task.cancelled():
        task.exception()


class Run(Struct):
    """Saga as this invocation knows it, and the work under way.

    `origin`: that of the state which `program` was loaded for: a change of the graph makes another one.
    `absent`: blobs that cannot be read, with the reason. `entries`: of its log, by version, if it needs some.
    `asked`: children that this invocation has asked, or need not ask. `looked`: by slot, when it
    has polled work elsewhere (core/decide/context.py). `found`: these, for the next decision. `heard`: the
    count of the inbox that was taken in. `looked_at`: when the head was read last. `looks_at`: when it must
    be read again; None while no child is open. `outcomes`: those that the log does not have yet, with the
    costs of stopped steps. `sent`: the number of them in the entry that is being appended. `early`: slots of
    pure steps that began before the log had what they follow from. `ahead`: outcomes of these in no entry.
    `is_careful`: the worker before has died. `stopped`: slots stopped for the end that it decides now, which
    may have acted. `cancelled`: children that this invocation has asked to stop, and true if they must take
    their effects back. `handlers`: failure handlers that it has started, or why one cannot be. `put_off`:
    until when children wait because their tenant has no room, or those before a fork have not ended.
    `wants_more`: a step is ready that only another invocation has time for. `began`: by slot, the version of
    the log at which its last attempt began. `notices`: its notifier, once it has had a notice.
    """

    lease: Lease
    history: History
    program: Program
    origin: Origin
    attempts: InFlight
    notify: Callable[[], Notifier]
    deadline: Deadline
    blobs: dict[str, Any] = field(default_factory=dict)
    absent: dict[str, str] = field(default_factory=dict)
    entries: dict[int, Entry] = field(default_factory=dict)
    answers: dict[str, SandboxAnswer] = field(default_factory=dict)
    asked: set[str] = field(default_factory=set)
    looked: dict[str, tuple[int, bool]] = field(default_factory=dict)
    heard: int = 0
    looked_at: int = 0
    looks_at: int | None = None
    outcomes: list[Outcome] = field(default_factory=list)
    sent: int = 0
    early: set[str] = field(default_factory=set)
    ahead: list[Outcome] = field(default_factory=list)
    is_careful: bool = False
    stopped: frozenset[str] = frozenset()
    cancelled: set[tuple[str, bool]] = field(default_factory=set)
    handlers: dict[str, ev.Failure | None] = field(default_factory=dict)
    put_off: int | None = None
    wants_more: bool = False
    began: dict[str, int] = field(default_factory=dict)
    notices: Notifier | None = None
    found: FetchedValues = NOTHING

    def __post_init__(self) -> None:
        """Give each decision what is fetched and done meanwhile."""
        fetched = self.blobs, self.answers, self.absent, self.looked, self.entries
        self.found = FetchedValues(*fetched, self.cancelled, self.handlers)

    def mark(self, child: Child) -> str:
        """Return the mark of a child that was asked.

        A new try, a request to stop, and one to take its effects back have another mark.
        """
        state = self.history.state
        if state.is_stopping and state.will_revert:
            return f"{child.saga} revert"
        is_off = state.is_stopping or child.overdue or cancelling_signal(state, child) is not None
        return f"{child.saga} off" if is_off else child.saga

    @property
    def notifier(self) -> Notifier:
        """Notifier of the saga, made with the first notice."""
        if self.notices is None:
            self.notices = self.notify()
        return self.notices

    @property
    def told_again_at(self) -> int | None:
        """Time of the next try for notices that could not be sent."""
        return None if self.notices is None else self.notices.again

    @property
    def end(self) -> int:
        """Time until which work may begin."""
        return self.deadline.cut_off

    @property
    def known(self) -> tuple[int, int, int, int]:
        """Measure of the known facts: it changes with each entry, each outcome, each attempt that begins or
        is stopped, and each saga that is asked to stop or started.
        """
        others = len(self.cancelled) + len(self.handlers)
        return self.history.state.version, len(self.outcomes), len(self.attempts.slots), others

    def has_moved(self, known: tuple[int, int, int, int]) -> None:
        """Assert that the run has something new to decide by. Raises `Standstill`."""
        if self.known == known:
            raise Standstill(f"{self.lease.ref} has nothing new to decide by at version {known[0]}")

    def taken_in(self, decision: Decision) -> None:
        """Assert that no attempt of outcomes without effect must be made again. Raises `Standstill`."""
        if not self.outcomes:
            return
        run, version = decision.of(RunSteps), self.history.state.version
        ended = {(one.slot, one.attempt) for one in self.outcomes}
        for step in () if run is None else run.steps:
            if (step.slot, step.attempt) in ended and self.began.get(step.slot) == version:
                text = f"attempt {step.attempt} of `{step.slot}` has come to nothing at version {version}, and is to be made again"
                raise Standstill(f"{self.lease.ref}: {text}")
        self.outcomes = []

    def advance(
        self,
        now: int,
        bounds: Bounds,
        *,
        together: bool,
        size: int | None = None,
        after: Advance | None = None,
    ) -> Advance:
        """Decide from the values in memory.
        With a `size`, use the first outcomes only; the others, and the slots just stopped, count as running.
        `after`: use the outcomes that are `ahead`, from the state that this leads to.
        """
        busy = self.stopped if size is None else {*self.stopped, *(one.slot for one in self.outcomes[size:])}
        state, outcomes = self.history.state, self.outcomes[:size]
        if after is not None:
            state, outcomes, bounds = after.state, self.ahead, replace(bounds, entry_bytes=after.room)
        running = {*self.attempts.busy, *busy} if busy else self.attempts.busy
        return advance(self.program, state, outcomes, now, running, self.found, bounds, together=together)


class LogWriter:
    """Writer of the logs of one invocation's sagas."""

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    def check_lease(self, lease: Lease) -> None:
        """Raise `Superseded` when the time of a lease of this invocation is over."""
        if self._p.clock.now() >= self._p.context.tenure.until:
            raise Superseded

    async def append(
        self,
        lease: Lease,
        history: History,
        events: Sequence[ev.Event],
        rows: Sequence[Row] = (),
        after: State | None = None,
    ) -> bool:
        """Append the next entry. Return false when another one is stored: catch up, and decide again."""
        ledger = self._p.known_ledger
        if ledger is not None and any(isinstance(one, ev.StepInterrupted) and one.cost for one in events):
            await ledger.closed(str(lease.ref))  # no log has more than accounts that answer, if this dies
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
        """Append an entry that is made already.
        Raises `Superseded` also if a read that has failed since had found a newer holder.
        """
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
        """Read entries that others appended.
        Return true if one was a fork; raises `Superseded` for a newer holder.
        """
        branch = history.state.lineage.branch
        await self.read_news(lease, history)
        return history.state.lineage.branch != branch

    async def read_news(self, lease: Lease, history: History) -> Sequence[ev.Entry]:
        """Return the entries that others appended. Raises `Superseded` for a newer holder."""
        news = await history.catch_up()
        if any(entry.epoch > lease.epoch for entry in news):
            raise Superseded
        return news

    async def news_of(self, run: Run) -> bool:
        """Read the news as `news`; from a change of its graph on, the saga goes on with that."""
        is_fork = await self.news(run.lease, run.history)
        await self.follow_graph(run)
        return is_fork

    async def follow_graph(self, run: Run) -> None:
        """Load the program that the saga runs now, unless the run has it: a load before may have failed."""
        state = run.history.state
        if run.origin is not state.origin:
            run.program = await self._p.catalog.running(run.lease.ref.tenant, state)
            run.origin = state.origin

    async def catch_up(self, run: Run) -> bool:
        """Read the news for a running saga.
        Return true after a fork: the work under way belongs to the old branch.
        """
        if not await self.news_of(run):
            return False
        run.outcomes = [*await run.attempts.cancel_all(), *spent_by(run.outcomes)]
        run.asked.clear()
        return True


C_contra = TypeVar("C_contra", bound=Command, contravariant=True)


class CommandPerformer(Protocol[C_contra]):
    """Performer of one kind of command for the sagas of one invocation."""

    async def perform(self, run: Run, command: C_contra) -> bool:
        """Perform the command.
        Return true when more is known now than before: the saga needs a new decision.
        """
        ...


class StepStarter:
    """Performer that starts steps; those without time here are left to another invocation."""

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    async def perform(self, run: Run, command: RunSteps) -> bool:
        state = run.history.state
        known = NO_UNITS
        if state.journals:
            known = await journals.read_known(run.history, self._p.blobs, self._p.call, command.steps)
        steps, unfit = command.steps, run.program.unfit
        steps = schema_changes.with_unfit(steps, unfit) if unfit else steps
        if run.attempts.start(state, steps, self._p.traceparent(state.origin.traceparent), known):
            run.wants_more = True
        for step in command.steps:
            run.began[step.slot] = state.version
            work = state.open.get(step.slot)
            if isinstance(work, Callback) and step.slot in run.attempts.slots:
                is_said = said_of(state, work.id) is not None
                run.looked[step.slot] = (self._p.clock.now(), is_said)
        return False


class StepStopper:
    """Performer that stops all running steps, or those at some slots."""

    async def perform(self, run: Run, command: StopSteps) -> bool:
        run.outcomes += await run.attempts.abort(command.slots)
        return True


class ValueFetcher:
    """Performer that loads values into the memory of a run.
    A missing value is the document's fault if the document names it.
    """

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    async def perform(self, run: Run, command: FetchValues) -> bool:
        for version in command.entries - run.entries.keys():
            run.entries.update({one.version: one for one in await run.history.entries_to(version)})
        for ref in command.refs:
            try:
                data = await self._p.call(self._p.blobs.get, run.lease.ref.tenant, ref)
                run.blobs[ref] = msgspec.json.decode(data)
            except (CorruptLog, msgspec.DecodeError) as error:
                run.absent[ref] = str(error)
        return True


class ConditionJudge:
    """Performer that evaluates conditions and keeps the answers in the memory of a run."""

    def __init__(self, scope: InvocationScope) -> None:
        self._sandbox = scope.sandbox

    async def perform(self, run: Run, command: JudgeConditions) -> bool:
        asked = list(command.questions)
        answers = await asyncio.gather(*map(self._sandbox.answer, asked))
        run.answers.update(zip((question.key for question in asked), answers, strict=True))
        return True


class NoticeSender:
    """Performer that sends notices while the steps of a saga run, and never instead of them."""

    def __init__(self, writer: LogWriter) -> None:
        self._writer = writer

    async def perform(self, run: Run, command: SendNotices) -> bool:
        if run.history.state.ended is not None:
            return False
        notifier, is_busy = run.notifier, run.attempts.is_busy
        notifier.begin(run.history.state, command.pending)
        if not is_busy:
            await notifier.wait()
        news = notifier.heard()
        if news is None or (is_busy and notifier.can_wait):
            return False
        if await self._writer.append(run.lease, run.history, (news,)):
            notifier.noted((news,))
        else:
            await self._writer.catch_up(run)
        return True
