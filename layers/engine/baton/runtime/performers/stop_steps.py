"""Stop running steps. Their costs, and outcomes that came just now, are recorded next."""

from __future__ import annotations

from baton.core.decide.commands import StopSteps
from baton.runtime.engine.run import Run


class StepStopper:
    """Stops all that runs, or what runs at some slots."""

    async def perform(self, run: Run, command: StopSteps) -> bool:
        run.outcomes += await run.attempts.abort(command.slots)
        return True
