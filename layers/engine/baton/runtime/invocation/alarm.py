"""Ends what takes longer than it may, with one timer of the event loop for all that is under way.

A timer for each call costs a tenth of a step. Here a call notes when its time is over, and the timer is set for the first
of them; a call that ends before leaves the timer as it is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from math import inf
from typing import Any, TypeVar

from msgspec import Struct

T = TypeVar("T")


class Overdue(TimeoutError):
    """The time of a call is over. No other `TimeoutError` is one, such as a socket's."""


class _Call(Struct, eq=False):
    """A call that is under way in a task. `cancels`: how often that task had been cancelled before."""

    task: asyncio.Task[Any]
    cancels: int
    at: float
    is_over: bool = False


class Alarm:
    """For one event loop. Times are the loop's own."""

    def __init__(self) -> None:
        # In the order in which they began: calls that are over at the same moment end in it.
        self._calls: dict[_Call, None] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._rings_at = inf

    async def within(self, seconds: float, what: Awaitable[T]) -> T:
        """The result of the call. When its time is over it is cancelled, and `Overdue` is raised."""
        loop = asyncio.get_running_loop()
        task = asyncio.current_task(loop)
        assert task is not None
        at = loop.time() + seconds
        call = _Call(task, task.cancelling(), at)
        self._calls[call] = None
        if at < self._rings_at:
            self._set(loop, at)
        try:
            return await what
        except asyncio.CancelledError as error:
            if call.is_over and task.cancelling() <= call.cancels + 1:  # no other caller has cancelled it
                raise Overdue from error
            raise
        finally:
            self._calls.pop(call, None)
            if call.is_over:
                task.uncancel()

    def _set(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._rings_at = loop.call_at(at, self._ring, loop, at), at

    def _ring(self, loop: asyncio.AbstractEventLoop, at: float) -> None:
        self._timer, self._rings_at = None, inf
        now = max(loop.time(), at)  # a loop may ring a little early
        for call in self._calls:
            if call.at <= now and not call.is_over:
                call.is_over = True
                call.task.cancel()
        if later := [call.at for call in self._calls if not call.is_over]:
            self._set(loop, min(later))
