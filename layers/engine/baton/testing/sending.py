"""Signals that a test sends at moments of its own choice, whatever the workers do just then.

To which sagas they go is in deployment.py, and so are the signals that are sent as soon as a wait is open.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from baton.core.expressions.durations import LONGEST_MS, parse_duration
from baton.errors import UserError

At = str | float | timedelta
_is_start = re.compile("0+ *(ms|[smhd])").fullmatch
_EXAMPLE = 'write a list of (at, name, payload), such as [("2h", "approved", {})]'


@dataclass(frozen=True, slots=True)
class TimedSignal:
    """A signal and its moment: `after_ms` after the start of the saga, `at` in the words of the test."""

    after_ms: int
    at: str
    name: str
    payload: Any


def timed_signals(given: Sequence[Any]) -> list[TimedSignal]:
    """The signals in the order of their times. Raises `ValueError` for what is none."""
    if isinstance(given, tuple) and [*map(type, given[1:2])] == [str]:
        raise ValueError(f"signals: `{given!r:.80}` is one signal; {_EXAMPLE}")
    if not isinstance(given, (list, tuple)):
        raise ValueError(f"signals: {_EXAMPLE}")
    found = [_signal(f"signal {number}", signal) for number, signal in enumerate(given, 1)]
    return sorted(found, key=lambda signal: signal.after_ms)


def _signal(which: str, given: Any) -> TimedSignal:
    if not isinstance(given, (tuple, list)) or [len(given), type(given[1])] != [3, str]:
        raise ValueError(f"{which}: {_EXAMPLE}")
    at, name, payload = given
    return TimedSignal(_moment(which, at), str(at), name, payload)


def _moment(which: str, at: Any) -> int:
    """Milliseconds after the start; 0 is the start itself, which is no duration elsewhere."""
    if isinstance(at, timedelta) or (isinstance(at, (int, float)) and not isinstance(at, bool)):
        seconds = at.total_seconds() if isinstance(at, timedelta) else at
        if not 0 <= seconds * 1_000 <= LONGEST_MS:
            raise ValueError(f"{which}: `{at}` must be between 0 and 366 days")
        return round(seconds * 1_000)
    if isinstance(at, str) and _is_start(at):
        return 0
    try:
        return parse_duration(at)
    except ValueError as error:
        raise ValueError(f"{which}: {error}") from None


class Post:
    """Sends each signal at its moment, beside everything else that goes on. `ahead`: those that were not sent yet."""

    def __init__(
        self,
        signals: Sequence[TimedSignal],
        begin: int,
        now: Callable[[], int],
        send: Callable[[TimedSignal, str], Awaitable[None]],
    ) -> None:
        self.ahead = list(signals)
        self._begin, self._now, self._send = begin, now, send
        self._task = asyncio.create_task(self._run())

    def next_moment(self) -> int | None:
        """When the next one is sent, in epoch ms. Raises what the last one was refused with."""
        if self._task.done():
            self._task.result()
        return self._begin + self.ahead[0].after_ms if self.ahead else None

    async def _run(self) -> None:
        for number, signal in enumerate(list(self.ahead), 1):
            await asyncio.sleep(max(0, self._begin + signal.after_ms - self._now()) / 1_000)
            try:
                await self._send(signal, f"test-at-{number}")
            except UserError as error:
                error.add_note(f"the signal `{signal.name}`, {signal.at} after the start")
                raise
            self.ahead.pop(0)
