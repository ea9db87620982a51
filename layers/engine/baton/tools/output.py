"""Output of tools: a printed line becomes a line of the log, and each line of the log names its step.

A line of a thread that a tool has started itself names no step, unless it copies the tool's context. Output
of other programs that a tool starts, and what is written to a file descriptor, passes as it is.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final, TextIO, TypeAlias

from baton.core.log.slots import slot_of
from baton.ports import StepContext

Running: TypeAlias = tuple[str, StepContext]  # a tool, or a workflow function, and its step
RUNNING: ContextVar[Running | None] = ContextVar("running", default=None)
unfinished: dict[tuple[str, int], str] = {}
"""Beginnings of printed lines, by stream and by the identity of their step."""


def step_fields(running: Running | None) -> dict[str, Any]:
    """Return the fields of a log line about a step: tool, saga, node, attempt; `slot` in a loop or a map."""
    if running is None:
        return {}
    tool, of = running
    fields = {"tool": tool, "saga": of.saga, "node": of.node, "attempt": of.attempt}
    if of.iteration or of.item:
        fields["slot"] = slot_of(of.node, of.iteration, of.item)
    return fields


class StepFilter(logging.Filter):
    """Log filter that adds the step to each record that is made while a tool runs."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add the missing fields, and let the record through."""
        if (running := RUNNING.get()) is not None:
            for name, value in step_fields(running).items():
                vars(record).setdefault(name, value)
        return True


class Printed:
    """Standard output or error. Text that a tool prints goes to the log by lines; other text passes.

    `step` returns the identity of the step that prints, or None.
    """

    def __init__(self, stream: TextIO, name: str, level: int, step: Callable[[], int | None]) -> None:
        self.stream, self._step, self._level = stream, step, level
        self._logger = logging.getLogger(name)

    def write(self, text: str) -> int:
        step = self._step()
        if step is None:
            return self.stream.write(text)
        *lines, rest = (unfinished.pop((self._logger.name, step), "") + text).split("\n")
        for line in lines:
            self._say(line)
        if rest:
            unfinished[self._logger.name, step] = rest
        return len(text)

    def writelines(self, lines: list[str]) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self.stream.flush()

    def finish(self, step: int) -> None:
        """Write the rest of a step's output that has no end of line."""
        if rest := unfinished.pop((self._logger.name, step), ""):
            self._say(rest)

    def _say(self, line: str) -> None:
        if line.strip():
            # Whatever the level of the log is: a printed line is meant to be seen.
            self._logger.handle(
                self._logger.makeRecord(self._logger.name, self._level, "", 0, line, (), None)
            )

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def raw(stream: TextIO) -> TextIO:
    """Return the stream that passes everything."""
    return stream.stream if isinstance(stream, Printed) else stream


def finish_line(step: int) -> None:
    """Write the rest of a step's output that has no end of line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, Printed):
            stream.finish(step)


STREAMS: Final = (("stdout", logging.INFO), ("stderr", logging.WARNING))


def take_printed(step: Callable[[], int | None]) -> None:
    """Let printed lines of tools go to the log from now on."""
    for name, level in STREAMS:
        setattr(sys, name, Printed(raw(getattr(sys, name)), name, level, step))


def name_steps(logger: logging.Logger) -> None:
    """Let the log of this process name steps, and take their printed lines."""
    for handler in logger.handlers:
        if not any(isinstance(known, StepFilter) for known in handler.filters):
            handler.addFilter(StepFilter())
            vars(handler)["emit"] = _emit_outside(handler.emit)  # it may print, too
    take_printed(_present_step)


def _present_step() -> int | None:
    return None if (running := RUNNING.get()) is None else id(running[1])


def _emit_outside(emit: Callable[[logging.LogRecord], None]) -> Callable[[logging.LogRecord], None]:
    def emitted(record: logging.LogRecord) -> None:
        token = RUNNING.set(None)
        try:
            emit(record)
        finally:
            RUNNING.reset(token)

    return emitted
