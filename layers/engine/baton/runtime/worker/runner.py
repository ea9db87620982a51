"""The outer loop of one saga in one invocation: take, load, decide, perform, append, release.

`Loader` loads a saga, `Faults` handles a fault, `Runner` runs the loop. All decisions are
core/decide/decide.py's. A stale runner stops itself: past its lease it appends nothing and starts no step.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from baton.core.decide.decide import Advance, RunStep
from baton.core.decide.decision import (
    CancelChildren,
    Command,
    Decision,
    FetchValues,
    JudgeConditions,
    LookAtStanding,
    RunFunctions,
    RunSteps,
    SendNotices,
    StartHandler,
    StopSteps,
    TendChildren,
)
from baton.core.decide.outcomes import Outcome, refused_rows, spent_by, undecided_outcome
from baton.core.decide.program import Program
from baton.core.log import events as ev
from baton.core.log.folding.received import before_the_end
from baton.core.log.slots import Slot
from baton.core.log.state import FAULT, Failing
from baton.core.log.work import Callback, Open, responses_left
from baton.core.on_demand import OnDemand
from baton.errors import CorruptLog, EngineFault, RowsRefused, UnknownEntry, Unreadable
from baton.ports import Head, Message, SagaRef
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.engine.run import (
    CommandPerformer,
    ConditionJudge,
    InFlight,
    LogWriter,
    NoticeSender,
    Run,
    StepStarter,
    StepStopper,
    ValueFetcher,
)
from baton.runtime.invocation.context import Deadline
from baton.runtime.log.history import History, Superseded
from baton.runtime.log.lease import Lease
from baton.runtime.money.accounts import Left

if TYPE_CHECKING:
    from baton.runtime.models import model_request
    from baton.runtime.requests import answers
    from baton.runtime.worker import children, functions, pinned
else:
    model_request = OnDemand("baton.runtime.models.model_request")
    answers = OnDemand("baton.runtime.requests.answers")
    children = OnDemand("baton.runtime.worker.children")
    functions = OnDemand("baton.runtime.worker.functions")
    pinned = OnDemand("baton.runtime.worker.pinned")


class Loader:
    """Loader of the sagas of one invocation."""

    def __init__(self, scope: InvocationScope, log: LogWriter) -> None:
        self._p = scope
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
        program = await self._p.catalog.program(lease.ref.tenant, graph := history.state.origin.graph)
        self._p.durations.learn(graph, entries)
        if lease.dead is not None and history.owes_death:
            # Before the entry: a worker that stood still meanwhile learns from the entry that it is too late.
            left = await self._left_by(lease.dead, entries, history, program)
            while (news := await self._record_death(lease, history, left)) is not None:
                # An entry of a dead worker may have landed late: it says itself what those before it left.
                entries = (*entries, *news)
                left = await self._left_by(lease.dead, entries, history, program)
            history.owes_death = False
        await self._check_money(lease, history, program)
        if history.state.graphs or history.state.origin.graph != graph:  # by an entry that came meanwhile
            program = await self._p.catalog.running(lease.ref.tenant, history.state)
        return program

    async def _check_money(self, lease: Lease, history: History, program: Program) -> None:
        """Park a saga whose user may spend nothing more today, before any step of it begins."""
        if not (history.state.money.spent or program.graph.costs):
            return
        parked = await self._p.ledger.blocked(history.state, program.graph)
        while parked is not None and history.state.parked is None and history.state.ended is None:
            if await self._log.append(lease, history, (parked,)):
                return
            await self._log.news(lease, history)

    async def _left_by(
        self, dead: Head, entries: Sequence[ev.Entry], history: History, program: Program
    ) -> Left:
        """Free what the dead worker and silent ones before it held, and return what they left."""
        return await self._p.ledger.revived(
            history.state,
            program.graph,
            dead.until,
            (dead.owner, *_silent_deaths(dead, entries)),
            _logged_by(dead, entries),
            shares=program.shares,
        )

    async def _record_death(self, lease: Lease, history: History, left: Left) -> Sequence[ev.Entry] | None:
        """Append the death of the last holder, unless the saga has ended. Return the news that came first.
        This first entry of a revival also fences the old invocation off for good.
        """
        dead = lease.dead
        if dead is None or history.state.ended is not None:
            return None
        death = ev.Revived(
            dead=dead.owner,
            dead_epoch=dead.epoch,
            dead_until=dead.until,
            at=self._p.clock.now(),
            assumed=left.costs,
            tokens=left.tokens,
        )
        if await self._log.append(lease, history, (death,)):
            return None
        return await self._log.read_news(lease, history)


def _gave_up(dead: Head, entries: Sequence[ev.Entry]) -> bool:
    """Return true if the holder of an expired lease has recorded that it would give up.
    It has written nothing after that.
    """
    mine = [entry for entry in entries if (entry.epoch, entry.invocation) == (dead.epoch, dead.owner)]
    return bool(mine) and isinstance(mine[-1].events[-1], ev.GaveUp)


def _silent_deaths(dead: Head, entries: Sequence[ev.Entry]) -> tuple[str, ...]:
    """Return the worker that wrote last, if another has died since without an entry: it may have died before
    that, unrecorded.
    """
    last = next((one for one in reversed(entries) if one.epoch), None)
    return (last.invocation,) if last is not None and last.epoch < dead.epoch else ()


def _logged_by(dead: Head, entries: Sequence[ev.Entry]) -> dict[str, dict[str, int]]:
    """Return, by worker and by slot, the costs in the log of steps that wait or were cut off.

    Their workers began none of them again: a step waits for a callback, or the last entry of a worker says
    that its time was over, or that it could not go on. Their accounts may still hold the most for these
    steps, if they gave no answer: the log needs only the rest of that.
    """
    costs = defaultdict[str, dict[str, int]](dict)
    last = None
    for entry in entries:
        last = entry if entry.epoch else last
        for one in entry.events:
            if isinstance(one, ev.CallbackOpened):
                costs[entry.invocation][one.slot] = one.cost
            elif isinstance(one, ev.AttemptFailed):
                for by_slot in costs.values():
                    by_slot.pop(one.slot, None)
    if last is None or (last.invocation == dead.owner and last.epoch != dead.epoch):
        return costs
    mine = costs[last.invocation]
    for one in last.events:
        if isinstance(one, ev.StepInterrupted) and one.why in ("", FAULT):  # else it may have gone on
            mine[one.slot] = mine.get(one.slot, 0) + one.cost
    return costs


logger = logging.getLogger("baton.worker")


class Faults:
    """Fault handling for the sagas of one invocation."""

    def __init__(self, scope: InvocationScope, log: LogWriter) -> None:
        self._p = scope
        self._log = log

    async def give_up(
        self, ref: SagaRef, pause: int, lease: Lease | None = None, history: History | None = None
    ) -> None:
        """Give the lease back after a fault, or else record in the log that it will run out without a death.

        A store may refuse a write that its indexes show, and append all the same: an entry is in no index.
        Nothing is recorded without a lease to write under, or if the log has not been read. If the log lacks
        the death of the previous holder, neither is done, or that death would count as recorded: the lease
        runs out, and the next worker records this worker's death in its place.
        """
        if history is not None and history.owes_death:
            logger.warning("the death before is left to the next worker", extra={"saga": ref.id})
            return
        may_say = lease is not None and history is not None and history.state.version > 0
        now, end = self._p.clock.now(), self._p.invocation.deadline - self._p.limits.answer_ms // 2
        soon = now + (end - now) // 2 if may_say else end
        if await self._p.leases.give_up(ref, pause, soon) or lease is None or history is None or not may_say:
            return
        history.hurry(self._p.call.until(end))
        try:
            while history.state.ended is None:
                if await self._log.append(lease, history, (ev.GaveUp(),)):
                    self._p.leases.forget(ref)
                    return
                await self._log.news(lease, history)
        except Exception:  # whatever it is, the fault before it is the one to be told of
            logger.warning("a death will be counted", exc_info=True, extra={"saga": ref.id})

    async def rescue(self, run: Run) -> None:
        """Append finished outcomes and the costs of stopped steps, after a fault.
        Undecidable outcomes count as stopped.
        """
        try:
            rescued = await run.attempts.rescue(run.history.state)
            if (ledger := self._p.known_ledger) is not None:
                ledger.leave(str(run.lease.ref))  # those that ended by the fault have settled nothing
            before = run.history.unanswered
            if before is not None and await self._log.put(run.lease, run.history, *before):
                run.outcomes = run.outcomes[run.sent :]
            await self._log.follow_graph(run)
            run.outcomes = [*rescued, *run.outcomes, *spent_by(run.ahead)]
            size = len(run.outcomes)
            while run.outcomes:
                advance, appended = (
                    run.advance(self._p.clock.now(), self._p.bounds, together=True, size=size),
                    False,
                )
                try:
                    facts = await self._p.offload_values(run.history.state.origin, advance.events)
                    appended = not facts or await self._log.append(
                        run.lease, run.history, facts, advance.rows
                    )
                    instead = (
                        None if advance.taken else undecided_outcome(run.outcomes[0])
                    )  # it lacks something
                except RowsRefused as error:
                    instead = refused_rows(run.outcomes[0], str(error))
                if instead is not None:
                    if size == 1:
                        run.outcomes[0] = instead
                    size = max(size // 2, 1)  # until it is found which of them it is
                    continue
                if appended:
                    run.outcomes = run.outcomes[advance.taken :]
                elif await self._log.news_of(run):
                    run.outcomes = spent_by(run.outcomes)
                size = len(run.outcomes)
        except Exception:  # whatever it is, the fault before it is the one to be told of
            logger.warning("not rescued", exc_info=True, extra={"saga": run.lease.ref.id})


class ResponseCanceller:
    """Canceller of background requests to models, after an append: the log drops a request first, so that its
    end is no failure.
    """

    def __init__(self, scope: InvocationScope) -> None:
        self._p = scope

    async def left(self, run: Run, before: Mapping[str, Open], events: Sequence[ev.Event]) -> None:
        """Cancel the requests that these events have dropped. `before` is the open work before the events."""
        if not any(isinstance(work, Callback) for work in before.values()):
            return  # most have handed nothing over
        ended = {event.callback for event in events}
        left = responses_left(before, run.history.state.open, ended)
        if left and (models := self._p.models) is not None:
            await model_request.cancel_response(models, left)


YIELDED, FINISHED, IDLE, SUPERSEDED = "yielded", "finished", "idle", "superseded"
AHEAD_MS = 250
"""Longest time in milliseconds for which the ends of pure steps wait for each other to share an entry."""
_QUIET = (
    *(ev.StepSucceeded, ev.NodePassed, ev.NodeSkipped, ev.NodeAdmitted, ev.JoinFired),
    *(ev.MapBegan, ev.ItemsBegan, ev.ItemsGathered, ev.MapClosed),
    *(ev.FunctionBegan, ev.OperationsBegan, ev.FunctionClosed),
)
"""Events that open nothing and tell no one: they may wait for others before they are written."""
BLOBS_KEPT = 32
ANSWERS_KEPT = 256


PERFORMERS: Mapping[type[Command], Callable[[InvocationScope, LogWriter], CommandPerformer[Any]]] = {
    FetchValues: lambda scope, _: ValueFetcher(scope),
    JudgeConditions: lambda scope, _: ConditionJudge(scope),
    LookAtStanding: lambda scope, _: children.StandingLooker(scope),
    StopSteps: lambda *_: StepStopper(),
    CancelChildren: lambda *made: children.ChildCanceller(*made),  # noqa: PLW0108  # loaded with the first
    StartHandler: lambda scope, _: children.HandlerStarter(scope),
    RunSteps: lambda scope, _: StepStarter(scope),
    TendChildren: lambda *made: children.ChildTender(*made),  # noqa: PLW0108  # loaded with the first
    SendNotices: lambda _, log: NoticeSender(log),
    RunFunctions: lambda scope, _: functions.FunctionRunner(scope),
}


class _Performers(dict[type[Command], CommandPerformer[Any]]):
    """Performers of one invocation, each made with the first command of its kind."""

    def __init__(self, scope: InvocationScope, log: LogWriter) -> None:
        super().__init__()
        self._made_of = scope, log

    def __missing__(self, kind: type[Command]) -> CommandPerformer[Any]:
        performer = self[kind] = PERFORMERS[kind](*self._made_of)
        return performer


class Runner:
    """Runner of sagas for one invocation; `parts` are its collaborators."""

    def __init__(self, scope: InvocationScope, deadline: Deadline | None = None) -> None:
        self._p = scope
        self._deadline = deadline or scope.deadline
        self._log = log = LogWriter(scope)
        self._loader, self._faults = Loader(scope, log), Faults(scope, log)
        self._performers = _Performers(scope, log)

    async def run(self, message: Message, *, alone: bool, gone: str = "") -> str:
        """Run the saga as far as it goes.
        Return in one word how that ended. `gone`: a build that does not exist.

        Raises the error that stopped the engine: an `EngineFault`, or a defect. The lease is then given back,
        so that it does not look as if one of the saga's steps had killed its worker.
        """
        ref = SagaRef.parse(message.saga)
        try:
            lease = await self._p.leases.acquire(ref, message, alone=alone, gone=gone)
        except EngineFault:
            await self._faults.give_up(ref, self._p.limits.fault_pause_ms)
            raise
        if isinstance(lease, str):
            return lease
        self._p.held[str(ref)] = lease.epoch, lease.before.watched
        steps = InFlight(self._p.context, self._p.steps, self._p.durations, self._deadline)
        history = History(self._p.log, self._p.blobs, self._p.call, ref)
        run = None
        try:
            program = await self._loader.load(lease, history)
            run = Run(lease, history, program, history.state.origin, steps, self._p.notifier, self._deadline)
            run.looked_at = self._p.clock.now()
            run.is_careful = bool(history.state.recovery.consecutive_crashes)
            if lease.rested_until is not None:  # only the inbox has woken it: it has started its children
                run.asked.update(map(run.mark, history.state.children.values()))
            if history.state.pinned and await self._is_anothers(run, gone):
                return YIELDED
            return await self._carry(run)
        except Superseded:
            self._p.leases.lose(ref)
            return SUPERSEDED
        except Exception as error:
            if run is not None:  # else it was its own log that could not be read
                await self._faults.rescue(run)
            await steps.cancel_all()
            pause = self._pause_after(error, history.state.last_at)
            writes = None if isinstance(error, UnknownEntry) else lease if run is None else run.lease
            await self._faults.give_up(ref, pause, writes, history)
            raise
        finally:
            if run is not None and run.notices is not None:
                run.notices.stop()
            if run is not None and run.found.functions is not None:
                functions.close(run)
            self._p.drop(ref)
            await steps.cancel_all()
            await self._p.drain(ref)

    @cached_property
    def hand_over(self) -> pinned.HandOver:
        """Wakes for other builds of the code."""
        assert self._p.builds is not None, "a worker has them"
        return pinned.HandOver(self._p.builds, self._p.call.deadline)

    async def _is_anothers(self, run: Run, gone: str) -> bool:
        """Give a saga back that stays with another build; park it if that is `gone`."""
        build = run.history.state.pinned
        if build == self._p.limits.build:
            return False
        if build == gone:
            await pinned.park_without_its_code(self._log, run, self._p.clock)
            return False
        # The last holder has died before it told the head.
        while not await self._p.leases.release(
            run.lease, run.history, run.program, again=True, is_heard=False
        ):
            await self._refused(run)
        return True

    def _pause_after(self, error: Exception, last_at: int) -> int:
        """Return the pause of a saga after an error, in milliseconds.

        A saga that a newer version has written comes again while that is deployed: soon, then after as long
        as its entry is old.
        """
        limits = self._p.limits
        if isinstance(error, UnknownEntry):
            error.at = error.at or last_at
            age = self._p.clock.now() - error.at
            return min(max(age, limits.fault_pause_ms), limits.unreadable_pause_ms)
        return limits.unreadable_pause_ms if isinstance(error, Unreadable) else limits.fault_pause_ms

    async def _carry(self, run: Run) -> str:
        """Record, perform and wait until nothing is left to do here and the lease is given back."""
        while True:
            run.wants_more, run.looks_at = False, None
            decision = await self._record(run)
            run.attempts.check()
            known = run.known
            if await self._perform(run, decision):
                run.has_moved(known)
                continue
            if run.attempts.is_busy or self._is_near(run, decision.again):
                await self._wait(run, decision)
                continue
            if owed := await run.attempts.cancel_all():
                run.outcomes += owed
                continue
            state = run.history.state
            if state.ended is not None and state.outbox.rows:
                run.wants_more = not await run.notifier.withdraw(state, is_heir=state.epoch < run.lease.epoch)
            if await self._p.leases.release(
                run.lease,
                run.history,
                run.program,
                again=run.wants_more,
                due=min(filter(None, (decision.due, run.told_again_at, run.put_off)), default=None),
                is_heard=not run.wants_more or run.heard == run.lease.inbox,
            ):
                if run.wants_more:
                    return YIELDED
                return self._finished(run) if run.history.state.ended is not None else IDLE
            await self._refused(run)

    async def _perform(self, run: Run, decision: Decision) -> bool:
        """Perform the decision. Return true when more is known now, so that a new decision is due."""
        if (stop := decision.of(StopSteps)) is not None:
            return await self._performers[StopSteps].perform(run, stop)
        if owed := await run.attempts.cancel_unneeded(run.history.state):
            run.outcomes += owed
            return True
        self._log.check_lease(run.lease)
        if (ledger := self._p.known_ledger) is not None:
            ledger.see(run.history.state, run.attempts.unpaid)
        for command in decision.commands:
            if command.when == "after" and await self._performers[type(command)].perform(run, command):
                return True
        return False

    async def _record(self, run: Run) -> Decision:
        """Decide, and append the events of the decision, until nothing is left to record.
        Return the decision that holds then, or an empty one when more must be appended than this invocation
        has time for: rounds that run nothing.
        """
        together, run.stopped = True, frozenset()
        while True:
            self._log.check_lease(run.lease)
            advance = await self._advance(run, together)
            if not advance.events and not advance.more:
                run.taken_in(advance.decision)
                return advance.decision
            goes_on = advance.more
            if run.program.has_pure and not run.is_careful:
                advance = await self._run_ahead(run, advance)
                goes_on = advance.more or bool(run.early)
            try:
                noted = await self._append(run, advance)
            except RowsRefused as error:
                taken = run.outcomes[: 0 if together else advance.taken]
                run.outcomes[: len(taken)] = [refused_rows(one, str(error)) for one in taken]
                together = False  # so that no step pays for another one's rows
                continue
            if noted is False and not goes_on:
                return advance.decision
            is_over = self._deadline.is_spent(self._p.clock.now())
            if noted is not None and advance.more and not run.outcomes and is_over:
                run.wants_more = True
                return Decision()

    async def _append(self, run: Run, advance: Advance) -> bool | None:
        """Append the events. Return true if the entry has more than these, so that the decision may not hold.
        Return None if another writer was first, and read what it has written. Raises `RowsRefused`.
        """
        facts = await self._p.offload_values(run.history.state.origin, advance.events)
        if run.notices is not None:
            facts = run.notices.with_news(facts)
        # The state after the entry is known where it holds the very events that were decided.
        after = advance.state if facts is advance.events else None
        open_before, failing_before = run.history.state.open, run.history.state.failing
        run.sent = advance.taken
        if facts and not await self._log.append(run.lease, run.history, facts, advance.rows, after):
            run.sent, run.stopped = 0, frozenset()
            await self._forget_early(run)
            await self._log.catch_up(run)
            return None
        run.sent, run.outcomes = 0, run.outcomes[advance.taken :]
        if run.attempts.units is not None:
            run.attempts.units.recorded(facts)
        if run.early:
            run.outcomes += run.ahead
            run.early, run.ahead = set(), []
        if open_before:
            await ResponseCanceller(self._p).left(run, open_before, facts)
        if failing_before:
            await self._mended(run, failing_before)
        return run.notices is not None and run.notices.noted(facts)

    async def _run_ahead(self, run: Run, advance: Advance) -> Advance:
        """Run the pure steps that follow from an entry before it is written, and return it with their ends.

        It waits no more than `AHEAD_MS` for them; a step that takes longer goes on beside the append.
        An entry with the end of any other step does not wait.
        """
        steps = _pure_next(advance)
        if steps is None or run.attempts.slots or not all(_is_pure(run, one) for one in run.outcomes):
            return advance
        until = self._p.clock.now() + AHEAD_MS
        while steps is not None and self._p.clock.now() < until:
            if steps:
                trace = self._p.traceparent(advance.state.origin.traceparent)
                run.attempts.start(advance.state, steps, trace)
                run.early.update(run.attempts.slots)
                run.began.update((step.slot, run.history.state.version) for step in steps)
            if not run.attempts.slots:
                break
            await run.attempts.wait(until)
            self._log.check_lease(run.lease)
            run.ahead = run.attempts.collect(advance.state)
            if not run.ahead or not all(map(_is_plain, run.ahead)):
                break
            later = await self._advance(run, together=True, after=advance)
            if later.taken < len(run.ahead) or (later.state.ended is not None and run.attempts.unpaid):
                break
            advance, run.ahead = advance.then(later), []
            steps = _pure_next(advance)
        return advance

    async def _forget_early(self, run: Run) -> None:
        """Stop the steps that ran ahead of an entry that is not in the log, and drop their outcomes."""
        if run.early:
            left = await run.attempts.abort(slots) if (slots := run.early & run.attempts.slots) else []
            run.outcomes += spent_by([*run.ahead, *left])
            run.early, run.ahead = set(), []

    async def _mended(self, run: Run, before: Mapping[str, Failing]) -> None:
        """Resolve the incidents of defects that a deploy of other code has mended."""
        failing = run.history.state.failing
        slots = [slot for slot, one in before.items() if one.incident and not one.ask and slot not in failing]
        if slots and (run.history.state.failure is None or any(Slot.parse(slot).scope for slot in slots)):
            await _resolve_incidents(self._p, run, slots)

    async def _advance(self, run: Run, together: bool, after: Advance | None = None) -> Advance:
        """Decide from the values in memory. Values and answers of conditions that the decision lacks are
        fetched until it is complete.

        A saga about to end stops the attempts that it no longer needs, and decides again: nothing may follow
        an end, so they report their costs before it. They count as running in that entry, for they may have
        acted. `after`: decide by the outcomes of the steps that run ahead of the log.
        """
        if len(run.blobs) > BLOBS_KEPT:
            run.blobs.clear()
        run.absent.clear()  # asked for anew with each decision
        if len(run.answers) > ANSWERS_KEPT:
            run.answers.clear()
        while True:
            advance = run.advance(self._p.clock.now(), self._p.bounds, together=together, after=after)
            if not advance.decision.is_lacking:
                if after is not None or advance.state.ended is None or not run.attempts.unpaid:
                    return advance
                run.stopped = frozenset(run.attempts.slots)
                run.outcomes = [*await run.attempts.cancel_all(), *run.outcomes]
                continue
            for command in advance.decision.commands:
                if command.when == "first":
                    await self._performers[type(command)].perform(run, command)

    async def _wait(self, run: Run, decision: Decision) -> None:
        """Wait until a step is done or a time is due, then collect the outcomes of steps that are done."""
        now, cut_off = self._p.clock.now(), self._deadline.cut_off
        news_at = run.looks_at or now + self._p.limits.news_every_ms
        await run.attempts.wait(min(cut_off, news_at, decision.due or cut_off))
        self._log.check_lease(run.lease)
        run.outcomes += run.attempts.collect(run.history.state)
        if run.attempts.slots and self._p.clock.now() >= cut_off:
            run.outcomes += await run.attempts.cut_off(run.history.state)
        elif not run.outcomes:
            await self._log.catch_up(run)

    def _finished(self, run: Run) -> str:
        for notice in before_the_end(run.history.state):
            logger.error(
                "a saga ends with a notice that not every channel has sent",
                extra={"saga": run.lease.ref.id, "key": notice.key, "code": notice.code},
            )
        return FINISHED

    def _is_near(self, run: Run, again: int | None) -> bool:
        """Return true if the next attempt of a step is near enough to wait for it here: giving the saga away
        costs more than a short pause.
        """
        if again is None:
            return False
        pause = again - self._p.clock.now()
        return pause <= self._p.limits.retry_inside_ms and run.attempts.has_time(again)

    async def _refused(self, run: Run) -> None:
        """Handle a refused release: read the head, then the log; go on unless the lease is lost."""
        head = await self._p.call(self._p.log.read_head, run.lease.ref)
        if head is None or head.owner != run.lease.owner or head.epoch != run.lease.epoch:
            if self._p.clock.now() < self._p.context.tenure.until:  # a release whose answer was lost
                self._p.leases.forget(run.lease.ref)
            raise Superseded
        if head.armed != run.lease.armed and run.notices is not None:
            run.notices.retry()  # it was armed for that: a person has a place again
        run.lease = replace(run.lease, armed=head.armed, inbox=head.inbox)
        await self._log.catch_up(run)
        if head.pending_wake > run.history.state.version:
            raise CorruptLog(
                f"{run.lease.ref}: wake {head.pending_wake} was left, but the log ends before it"
            )


def _is_plain(outcome: Outcome) -> bool:
    return not (outcome.why or outcome.cost or outcome.usage or outcome.notices)


def _is_pure(run: Run, outcome: Outcome) -> bool:
    """Return true if nothing is lost when the log does not get the outcome: the step runs again."""
    state = run.history.state
    if not _is_plain(outcome) or outcome.slot not in state.tokens:
        return False
    node = run.program.node_at(state, outcome.slot)
    return node.is_pure and outcome.tool in {"", node.tool}


def _pure_next(advance: Advance) -> tuple[RunStep, ...] | None:
    """Return the pure steps to run next; None if anything else is to be done."""
    if advance.more or advance.rows:
        return None
    for event in advance.events:
        if not isinstance(event, _QUIET):
            return None
    commands = advance.decision.commands
    if not commands:
        return ()
    run = commands[0]
    if len(commands) > 1 or not isinstance(run, RunSteps):
        return None
    is_pure = all(step.node.is_pure and step.way is None and not step.hooks for step in run.steps)
    has_units = advance.state.journals and any(step.slot in advance.state.journals for step in run.steps)
    return run.steps if is_pure and not has_units else None  # what a journal has is read first


async def _resolve_incidents(scope: InvocationScope, run: Run, slots: Collection[str]) -> None:
    """Resolve the incidents of these steps. One that cannot be resolved stays open, for an operator."""
    given_up = run.history.state.given_up
    ref = run.lease.ref
    service = answers.IncidentService(
        scope.context.store.notice_record, scope.call, scope.clock, ref.tenant, by="deploy"
    )
    try:
        for node in {
            place.node: None
            for place in map(Slot.parse, slots)
            if not (place.scope and place.subject.text in given_up)
        }:
            await service.resolve_all(ref.id, node)
    except EngineFault:
        logger.warning("an incident is left open", exc_info=True, extra={"saga": ref.id})
