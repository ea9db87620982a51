"""Memory of one saga's run in one invocation, the writer of its log, and performers of commands.

Performers about children are in runtime/worker/children.py, and the loop is the runner's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec
from msgspec import Struct, field

from baton.core.conditions import SandboxAnswer
from baton.core.decide.commands import (
    Command,
    Decision,
    FetchValues,
    JudgeConditions,
    RunSteps,
    SendNotices,
    StopSteps,
)
from baton.core.decide.context import NOTHING, FetchedValues
from baton.core.decide.decide import Advance, advance
from baton.core.decide.outcomes import Outcome
from baton.core.decide.program import Program
from baton.core.decide.spending import Bounds
from baton.core.decide.unknown_outcomes import will_roll_back
from baton.core.effects.rows import Row
from baton.core.log import events as ev
from baton.core.log.events import Entry, Event
from baton.core.log.folding.received import cancelling_signal, said_of
from baton.core.log.records import Child
from baton.core.log.state import State
from baton.core.log.work import Callback, Open, responses_left
from baton.core.on_demand import OnDemand
from baton.errors import CorruptLog, Standstill
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.context import Deadline
from baton.runtime.log.history import History
from baton.runtime.log.lease import Lease
from baton.runtime.people.notices import Notifier
from baton.runtime.steps.inflight import InFlight, spent_by

if TYPE_CHECKING:
    from baton.runtime.models import model_request
else:
    model_request = OnDemand("baton.runtime.models.model_request")


class Run(Struct):
    """Saga as this invocation knows it, and the work under way.

    `absent`: blobs that cannot be read, with the reason. `entries`: of its log, by version, while it undoes
    something. `asked`: children that this invocation has asked, or need not ask. `looked`: by slot, when it
    has polled work elsewhere (core/decide/context.py). `found`: these, for the next decision. `heard`: the
    count of the inbox that was taken in. `looked_at`: when the head was read last. `looks_at`: when it must
    be read again; None while no child is open. `outcomes`: those that the log does not have yet, with the
    costs of stopped steps. `sent`: the number of them in the entry that is being appended. `cancelled`:
    children that this invocation has asked to stop, and true if they must undo their steps. `handlers`:
    failure handlers that it has started, or why one cannot be. `put_off`: until when children wait because
    their tenant has no room, or those before a fork have not ended. `wants_more`: a step is ready that only
    another invocation has time for. `began`: by slot, the version of the log at which its last attempt
    began. `notices`: its notifier, once it has had a notice.
    """

    lease: Lease
    history: History
    program: Program
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

        A new try, a request to stop, and one to undo have another mark.
        """
        state = self.history.state
        if state.is_stopping and will_roll_back(state):
            return f"{child.saga} undo"
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
        return min(self.deadline.cut_off, self.lease.until)

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
        stopped: frozenset[str] = frozenset(),
    ) -> Advance:
        """Decide from the values in memory.
        With a `size`, use the first outcomes only; the others, and the `stopped` slots, count as running.
        """
        busy = stopped if size is None else stopped.union(one.slot for one in self.outcomes[size:])
        return advance(
            self.program,
            self.history.state,
            self.outcomes[:size],
            now,
            {*self.attempts.busy, *busy} if busy else self.attempts.busy,
            self.found,
            bounds,
            together=together,
        )


class Superseded(Exception):
    """Error that ends work on a saga: another invocation holds it now, or the time of this one is over."""


class LogWriter:
    """Writer of the logs of one invocation's sagas."""

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    def check_lease(self, lease: Lease) -> None:
        """Raise `Superseded` when the time of the lease is over."""
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

    async def catch_up(self, run: Run) -> bool:
        """Read the news for a running saga.
        Return true after a fork: the work under way belongs to the old branch.
        """
        if not await self.news(run.lease, run.history):
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
        if run.attempts.start(state, command.steps, self._p.traceparent(state.origin.traceparent)):
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


class ResponseCanceller:
    """Canceller of background requests to models, after an append: the log drops a request first, so that its
    end is no failure.
    """

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    async def left(self, run: Run, before: Mapping[str, Open], events: Sequence[Event]) -> None:
        """Cancel the requests that these events have dropped. `before` is the open work before the events."""
        if not any(isinstance(work, Callback) for work in before.values()):
            return  # most have handed nothing over
        ended = {event.callback for event in events}
        left = responses_left(before, run.history.state.open, ended)
        if left and (models := self._p.models) is not None:
            await model_request.cancel_response(models, left)
