"""Cancel what providers of models work on and nothing waits for any more. Best effort: a worker that dies here does not come back to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from baton.core.log.events import Event
from baton.core.log.work import Callback, Open, responses_left
from baton.runtime.engine.parts import Parts
from baton.runtime.engine.run import Run


class ResponseCanceller:
    """After an append: what it has dropped was cancelled by the log first, so that its end is no failure."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    async def left(self, run: Run, before: Mapping[str, Open], events: Sequence[Event]) -> None:
        """`before` is the open work before these events."""
        if not any(isinstance(work, Callback) for work in before.values()):
            return  # most have handed nothing over
        ended = {getattr(event, "callback", "") for event in events}
        left = responses_left(before, run.history.state.open, ended)
        if left and (models := self._p.models) is not None:
            from baton.runtime.models.background import cancel

            await cancel(models, left)
