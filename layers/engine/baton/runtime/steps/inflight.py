"""The attempts of one saga that are running in this invocation: start, wait, collect, cancel.

Which steps begin, and what their outcomes mean, is decided elsewhere
(core/decide/decide.py, worker/runner.py). How one attempt goes is in steps.py.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, KeysView, Sequence
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import replace

from baton.core.decide.decide import RunStep
from baton.core.decide.outcomes import STOPPED, Outcome
from baton.core.effects.toolspec import ONCE
from baton.core.log.events import Failure
from baton.core.log.state import FAULT, State
from baton.core.models.usage import Usage
from baton.core.money import assumed_in, micro_dollars
from baton.ports import NoRoom
from baton.runtime.invocation.context import Alarm, Deadline, DurationEstimator, InvocationContext, Overdue
from baton.runtime.steps.steps import Steps

AT_ONCE_S = 0.01
"""Longest wait, in seconds, of a join's successors for the costs of the steps it stopped: these may use up
the budget.
"""


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

    An attempt is cancelled because its invocation ends (`cut_off`), because of a fault (`rescue`), because
    the saga was told to stop (`abort`), because the log no longer waits for it (`cancel_unneeded`), or
    because nothing here is carried on (`cancel_all`).
    """

    def __init__(
        self, context: InvocationContext, steps: Steps, durations: DurationEstimator, deadline: Deadline
    ) -> None:
        self._steps = steps
        self._durations = durations
        self._clock = context.clock
        self._deadline = deadline
        self._limits = context.limits
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
        """The slots of which the log does not know yet what was spent there:
        those that run, and those that were cancelled.
        """
        running = list(self._running)
        return running + [one.step.slot for one in self._cancelled] if self._cancelled else running

    @property
    def is_busy(self) -> bool:
        """True if a step is running here, or would be if it had room."""
        return bool(self._running) or self._ask_again is not None

    def start(self, state: State, steps: tuple[RunStep, ...], traceparent: str) -> bool:
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
                attempt = self._steps.run(state, step, traceparent, spent, usage)
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
        if not any(one.task.done() for one in self._running.values()):
            self._woken = asyncio.get_running_loop().create_future()
            try:
                await self._alarm.within(left, self._woken)
            except Overdue:
                return

    def _wake(self, _: asyncio.Task[Outcome]) -> None:
        """Wake the waiter: a running attempt is done."""
        if self._woken is not None and not self._woken.done():
            self._woken.set_result(None)

    def collect(self, state: State) -> list[Outcome]:
        """Return the outcomes of all steps that are done.
        An engine fault inside a step comes out of `check`.
        """
        outcomes = []
        for one in [one for one in self._running.values() if one.task.done()]:
            step = one.step
            del self._running[step.slot]
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
            # What may happen only once, or what something undoes, may have happened: the log has to know.
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
        return self._costs_of(self._cancelled)

    def _cancel(self, slots: Collection[str]) -> list[_RunningAttempt]:
        """Cancel the attempts at these slots.
        They do not run any more, and count as cancelled until their costs are known.
        """
        cancelled = [self._running.pop(slot) for slot in slots]
        for one in cancelled:
            one.task.cancel()
            one.task.remove_done_callback(self._wake)
            one.task.add_done_callback(_retrieve)
        self._cancelled += cancelled
        return cancelled

    async def _wait_for(self, attempts: Sequence[_RunningAttempt], seconds: float | None = None) -> None:
        if tasks := [one.task for one in attempts if not one.task.done()]:
            await asyncio.wait(tasks, timeout=self._deadline.reserve / 6_000 if seconds is None else seconds)

    def _costs_of(self, ended: Sequence[_RunningAttempt]) -> list[Outcome]:
        """Return the costs of these cancelled attempts, and forget them: the log records them once."""
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


def spent_by(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """Return the costs and notices of attempts whose results the saga no longer needs."""
    return [replace(one, why=STOPPED, halt=None) for one in outcomes if one.cost or one.usage or one.notices]


def undecided_outcome(outcome: Outcome) -> Outcome:
    """Return the outcome in place of one that a fault keeps from being decided: the attempt has spent,
    and runs again.
    """
    left = {
        "cost": max(outcome.cost, 0),
        "assumed": max(outcome.assumed, 0),
    }  # what was given back is given back by the next
    return replace(outcome, output=None, failure=None, rows=(), halt=None, why=FAULT, **left)


def _may_matter(one: _RunningAttempt) -> bool:
    """Return true if the log must record an attempt that did not finish."""
    by_another = one.step.way is not None and bool(one.step.way.tool)
    return bool(one.spent) or by_another or _may_stand(one)


def _may_stand(one: _RunningAttempt) -> bool:
    """Return true if it may have done a once-only effect, or one with an inverse."""
    return one.step.node.effect == ONCE or bool(one.step.node.undo)


def _result_of(one: _RunningAttempt) -> Outcome | None:
    task = one.task
    has_one = task.done() and not task.cancelled() and task.exception() is None
    return task.result() if has_one else None


def _retrieve(task: asyncio.Task[Outcome]) -> None:
    """Retrieve the exception, so that asyncio does not complain about what was dropped on purpose."""
    if not task.cancelled():
        task.exception()
