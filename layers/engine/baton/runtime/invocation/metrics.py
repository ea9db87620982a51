"""The figures of a process: collected with each entry that it appends, written when an invocation ends.

The figures themselves are in core/read/metrics.py. Where a line goes is set in wiring.py.

A line reaches CloudWatch as it is, and as a whole, only by standard output: what goes through `logging` is wrapped into
an object of Lambda's own when the function's log format is JSON, and a document inside of another is none; what is
printed is passed on as it was. Sources: "Log and monitor Python Lambda functions" (Lambda developer guide: output of
`print` stays plain text), "Using the embedded metric format with Lambda" (CloudWatch user guide: written to standard
output; what is not written when the invocation times out is lost).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import msgspec

from baton.core.log.events import Event
from baton.core.read.metrics import Document, Figures, document

QUIET_MS = 60_000
"""So long the figures of a tool are kept whose steps all succeed at once. They are lost with their process."""

_encode = msgspec.json.Encoder().encode


class Metrics:
    """The figures of all sagas of a process. Without `write` there are none."""

    def __init__(
        self, write: Callable[[str], None] | None = None, deployment: str = "", *, counts_ends: bool = False
    ) -> None:
        """`write` takes one line without its end; `deployment` names this one among those of the account.

        `counts_ends`: of sagas, for an error budget.
        """
        self._write = write
        self._deployment = deployment
        self._figures = Figures(counts_ends=counts_ends)

    def heard(self, workflow: str, events: Iterable[Event], now: int) -> None:
        """An entry was appended at `now` (epoch ms) to the log of a saga of this workflow."""
        if self._write is not None:
            self._figures.heard(workflow, events, now)

    def flush(self, now: int) -> None:
        """Write what is due; at the end of an invocation. No step is worse off if it cannot be written."""
        self._put(self._figures.take(now, QUIET_MS, self._deployment))

    def blocked(self, tool: str, now: int) -> None:
        """A tool blocks the event loop. Written at once, from any thread: the invocation may not live to its end."""
        self._say(now, {"LoopBlocked": 1}, tool=tool)

    def dead_letters(self, moved: int, pending: int, age: int, now: int) -> None:
        """What a look at the dead letters has found: messages that were new, letters that are pending, age of the oldest in ms."""
        self._say(now, {"DeadMessages": moved, "DeadLetters": pending, "DeadLetterAge": age})

    def ticks(self, workflow: str, figures: Mapping[str, int], now: int) -> None:
        """Ticks of a workflow's schedule that started nothing, by metric. Written at once: they are rare."""
        self._say(now, figures, workflow=workflow)

    def events(self, figures: Mapping[str, int], now: int) -> None:
        """What an event from outside did not do, by metric."""
        self._say(now, figures)

    def opened(self, breaker: str, now: int) -> None:
        """A circuit breaker has opened. Written at once: it is rare, and people are waiting to know."""
        self._say(now, {"BreakerOpened": 1}, breaker=breaker)

    def _say(self, now: int, figures: Mapping[str, int], **about: str) -> None:
        self._put([document(now, {"function": self._deployment, **about}, figures)] if figures else [])

    def _put(self, documents: Iterable[Document]) -> None:
        if self._write is None:
            return
        for one in documents:
            try:
                self._write(_encode(one).decode())
            except OSError:
                return
