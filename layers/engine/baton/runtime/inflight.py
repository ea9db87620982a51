"""The steps of one saga that are running in this invocation: start, wait, collect, cut off.

Which steps, and what their outcomes mean, is decided elsewhere (core/decide.py, runner.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, KeysView
from dataclasses import replace
from decimal import Decimal

from baton.core.decide import RunStep
from baton.core.events import Failure
from baton.core.limits import Limits
from baton.core.money import micro_dollars
from baton.core.outcomes import Outcome
from baton.core.state import State
from baton.core.toolspec import ONCE
from baton.ports import Clock, NoRoom
from baton.runtime.budget import Budget
from baton.runtime.pace import Pace
from baton.runtime.steps import Steps


class InFlight:
    """Running attempts by slot.

    `_full`: tools that had no room in this process, with when to ask again and the pause before that.
    """

    def __init__(self, steps: Steps, pace: Pace, clock: Clock, budget: Budget, limits: Limits) -> None:
        self._steps = steps
        self._pace = pace
        self._clock = clock
        self._budget = budget
        self._limits = limits
        self._tasks: dict[str, asyncio.Task[Outcome]] = {}
        self._begun: dict[str, tuple[int, RunStep]] = {}
        self._spent: dict[str, list[Decimal]] = {}
        self._full: dict[str, tuple[int, int]] = {}
        self._ask_again: int | None = None
        self._dying: list[asyncio.Task[Outcome]] = []

    @property
    def slots(self) -> KeysView[str]:
        return self._tasks.keys()

    @property
    def paying(self) -> list[str]:
        """The slots of those that have spent something."""
        return [slot for slot in self._tasks if self._spent[slot]]

    @property
    def is_busy(self) -> bool:
        """Whether something is running here, or would be if there were room for it."""
        return bool(self._tasks) or self._ask_again is not None

    def start(self, state: State, steps: tuple[RunStep, ...], traceparent: str) -> bool:
        """Start what fits. True when something is ready that only another invocation has time for.

        The first steps of an invocation always start: one that needs more than this budget needs more
        than any, and is found out by being cut off.
        """
        wants_more, is_first = False, not self._begun
        self._ask_again = None
        for step in steps:
            if len(self._tasks) >= self._limits.concurrent_steps:
                break
            now = self._clock.now()
            timeout = self._steps.timeout(step)
            expected = self._pace.expected(state.graph, step.node.name, step.node.tool, timeout)
            again, _ = self._full.get(step.node.tool, (now, 0))
            if not (self._budget.fits(now, expected) or (is_first and now < self._budget.cut_off)):
                wants_more = True
            elif again > now:
                self._ask_again = again if self._ask_again is None else min(again, self._ask_again)
            else:
                spent = self._spent[step.slot] = []
                attempt = self._steps.run(state, step, traceparent, spent)
                self._tasks[step.slot] = asyncio.create_task(attempt, name=f"{state.saga}/{step.slot}")
                self._begun[step.slot] = (now, step)
        return wants_more

    def has_time(self, at: int) -> bool:
        """Whether a step that begins then can be expected to end in this invocation."""
        return self._budget.fits(at, self._limits.step_estimate_ms)

    async def wait(self, until: int) -> None:
        """Until one is done, there may be room for another, or the time has come."""
        until = until if self._ask_again is None else min(until, self._ask_again)
        left = max(until - self._clock.now(), 0) / 1_000
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=left, return_when=asyncio.FIRST_COMPLETED)
        else:
            await asyncio.sleep(left)

    def collect(self, state: State) -> list[Outcome]:
        """The outcomes of all that are done. Engine faults inside a step come out here."""
        outcomes = []
        for slot in [slot for slot, task in self._tasks.items() if task.done()]:
            task = self._tasks.pop(slot)
            _, step = self._begun[slot]
            if task.cancelled():
                failure = Failure("tool_error", "the tool cancelled itself", step.node.name)
                outcomes.append(replace(self._interrupted(slot), failure=failure))
                continue
            if isinstance(task.exception(), NoRoom):
                del self._begun[slot]
                self._no_room_for(step.node.tool)
                continue
            outcome = task.result()
            if outcome.why:  # it was not carried through, which tells nothing of its time
                outcomes.append(outcome)
                continue
            self._full.pop(step.node.tool, None)
            lasted = outcome.ended_at - outcome.started_at
            self._pace.observe(state.graph, step.node.name, step.node.tool, lasted)
            outcomes.append(outcome)
        return outcomes

    def _no_room_for(self, tool: str) -> None:
        """Let it be for a while: neither the step nor its saga has done anything wrong."""
        now = self._clock.now()
        again, pause = self._full.get(tool, (0, 0))
        if again <= now:
            pause = min(max(2 * pause, self._limits.room_pause_first_ms), self._limits.room_pause_longest_ms)
            self._full[tool] = (now + pause, pause)

    async def cut_off(self, state: State) -> list[Outcome]:
        """The invocation ends: interrupt what is running, and keep what finished just now."""
        slots = list(self._tasks)
        await self.stop(keep_finished=True)
        outcomes = self.collect(state)
        finished = {outcome.slot for outcome in outcomes}
        now = self._clock.now()
        for slot in slots:
            if slot not in finished:
                started, step = self._begun[slot]
                self._pace.cut_off(state.graph, step.node.name, now - started)
                outcomes.append(self._interrupted(slot))
        return outcomes

    async def abort(self, slots: Collection[str] = ()) -> list[Outcome]:
        """Cancel what is running at these slots, or all of it. What has an outcome has cost money by then, or may have acted."""
        gone = [slot for slot in self._tasks if not slots or slot in slots]
        if tasks := self._drop(gone):
            await asyncio.wait(tasks, timeout=self._budget.reserve / 6_000)
        return [
            outcome
            for outcome in map(self._interrupted, gone)
            # What may happen only once may have happened: the log has to know.
            if outcome.cost or self._begun[outcome.slot][1].node.effect == ONCE
        ]

    def _interrupted(self, slot: str) -> Outcome:
        started, step = self._begun[slot]
        return Outcome(
            slot=slot,
            attempt=step.attempt,
            started_at=started,
            ended_at=self._clock.now(),
            budget_ms=max(self._budget.cut_off - started, 0),
            cost=micro_dollars(self._spent[slot]),
        )

    def forsake(self, state: State) -> None:
        """Cancel what is running at slots where nobody waits for it any more. Its outcome is nobody's."""
        self._drop([slot for slot in self._tasks if slot not in state.tokens])

    def _drop(self, slots: Collection[str]) -> list[asyncio.Task[Outcome]]:
        tasks = [self._tasks.pop(slot) for slot in slots]
        for task in tasks:
            task.cancel()
            task.add_done_callback(_hear)
        self._dying += tasks
        return tasks

    async def stop(self, *, keep_finished: bool = False) -> None:
        """Cancel all and wait, briefly, until they are gone; one that will not go is abandoned."""
        tasks = [*self._tasks.values(), *(task for task in self._dying if not task.done())]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=self._budget.reserve / 6_000)
        keep = {
            slot: task
            for slot, task in self._tasks.items()
            if keep_finished and task.done() and not task.cancelled() and task.exception() is None
        }
        for task in tasks:
            if task.done():
                _hear(task)
        self._tasks = keep


def _hear(task: asyncio.Task[Outcome]) -> None:
    """Retrieve the exception, so that asyncio does not complain about what was dropped on purpose."""
    if not task.cancelled():
        task.exception()
