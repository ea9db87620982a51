"""The steps of one saga that are running in this invocation: start, wait, collect, cut off.

Which steps, and what their outcomes mean, is decided elsewhere (core/decide.py, runner.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import KeysView

from baton.core.decide import RunStep
from baton.core.events import Failure
from baton.core.outcomes import Outcome
from baton.core.state import State
from baton.ports import Clock
from baton.runtime.budget import Budget
from baton.runtime.limits import Limits
from baton.runtime.pace import Pace
from baton.runtime.steps import Steps


class InFlight:
    """Running attempts by slot."""

    def __init__(self, steps: Steps, pace: Pace, clock: Clock, budget: Budget, limits: Limits) -> None:
        self._steps = steps
        self._pace = pace
        self._clock = clock
        self._budget = budget
        self._limits = limits
        self._tasks: dict[str, asyncio.Task[Outcome]] = {}
        self._begun: dict[str, tuple[int, RunStep]] = {}
        self._any_yet = False

    @property
    def slots(self) -> KeysView[str]:
        return self._tasks.keys()

    def start(self, state: State, steps: tuple[RunStep, ...], traceparent: str) -> bool:
        """Start what fits. True when something is ready that only another invocation has time for.

        The first steps of an invocation always start: one that needs more than this budget needs more
        than any, and is found out by being cut off.
        """
        wants_more = False
        for step in steps:
            if len(self._tasks) >= self._limits.concurrent_steps:
                break
            now = self._clock.now()
            timeout = self._steps.timeout(step)
            expected = self._pace.expected(state.graph, step.node.name, step.node.tool, timeout)
            if self._budget.fits(now, expected) or (not self._any_yet and now < self._budget.cut_off):
                attempt = self._steps.run(state, step, traceparent)
                self._tasks[step.slot] = asyncio.create_task(attempt, name=f"{state.saga}/{step.slot}")
                self._begun[step.slot] = (now, step)
            else:
                wants_more = True
        self._any_yet = self._any_yet or bool(self._tasks)
        return wants_more

    async def wait(self, until: int) -> None:
        """Until one is done, or the time has come."""
        left = max(until - self._clock.now(), 0) / 1_000
        await asyncio.wait(self._tasks.values(), timeout=left, return_when=asyncio.FIRST_COMPLETED)

    def collect(self, state: State) -> list[Outcome]:
        """The outcomes of all that are done. Engine faults inside a step come out here."""
        outcomes = []
        for slot in [slot for slot, task in self._tasks.items() if task.done()]:
            task = self._tasks.pop(slot)
            started, step = self._begun[slot]
            if task.cancelled():
                failure = Failure("tool_error", "the tool cancelled itself", step.node.name)
                ended = self._clock.now()
                outcomes.append(
                    Outcome(slot=slot, attempt=1, started_at=started, ended_at=ended, failure=failure)
                )
                continue
            outcome = task.result()
            lasted = outcome.ended_at - outcome.started_at
            self._pace.observe(state.graph, step.node.name, step.node.tool, lasted)
            outcomes.append(outcome)
        return outcomes

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
                budget = max(self._budget.cut_off - started, 0)
                outcomes.append(
                    Outcome(slot=slot, attempt=1, started_at=started, ended_at=now, budget_ms=budget)
                )
        return outcomes

    async def stop(self, *, keep_finished: bool = False) -> None:
        """Cancel all and wait, briefly, until they are gone; one that will not go is abandoned."""
        tasks = list(self._tasks.values())
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
            if task.done() and not task.cancelled():
                task.exception()  # retrieved, so that asyncio does not complain about what was dropped on purpose
        self._tasks = keep
