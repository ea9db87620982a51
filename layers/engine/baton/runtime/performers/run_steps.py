"""Start the steps that are ready, as far as there is time and room for them. Their outcomes are collected later."""

from __future__ import annotations

from baton.core.decide.commands import RunSteps
from baton.core.log.folding.callbacks import said_of
from baton.core.log.work import Callback
from baton.runtime.engine.parts import Parts
from baton.runtime.engine.run import Run


class StepStarter:
    """Starts steps; those that have no time here are left to another invocation."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

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
