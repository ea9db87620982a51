"""Start the steps that are ready, as far as there is time and room for them. Their outcomes are collected later."""

from __future__ import annotations

from baton.core.decide.commands import RunSteps
from baton.runtime.parts import Parts
from baton.runtime.run import Run


class StepStarter:
    """Starts steps; what has no time here is left to another invocation."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    async def perform(self, run: Run, command: RunSteps) -> bool:
        state = run.history.state
        if run.steps.start(state, command.steps, self._p.traceparent(state.origin.traceparent)):
            run.wants_more = True
        return False
