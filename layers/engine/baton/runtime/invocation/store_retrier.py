"""Port calls off the event loop, repeated with growing, jittered pauses while a store is busy.

A call gives up, and lets the fault out, when the next pause would not end in time; one that hangs is ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, ParamSpec, TypeVar

from baton.core.limits import Limits
from baton.errors import StoreUnavailable, Throttled
from baton.ports import Clock, Entropy, Offload
from baton.runtime.invocation.alarm import Alarm, Overdue

P = ParamSpec("P")
T = TypeVar("T")


class StoreRetrier:
    """Awaitable port calls for one invocation that must end by `deadline`.

    `cut_off`: when what is running in this invocation is interrupted. Without one there is nothing to be done after a
    call that fails.
    """

    def __init__(
        self,
        offload: Offload,
        clock: Clock,
        entropy: Entropy,
        limits: Limits,
        deadline: int,
        cut_off: int | None = None,
    ) -> None:
        self._offload = offload
        self._clock = clock
        self._entropy = entropy
        self._limits = limits
        self.deadline = deadline
        self._cut_off = deadline if cut_off is None else min(cut_off, deadline)
        self._least = (deadline - self._cut_off) // 2
        self._alarm = Alarm()

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The call's result. A repeated call may have happened before: callers recognise their own writes.

        Raises `StoreUnavailable` when there is no answer in time. Then the call may still happen.
        """
        return (await self.tried(function, *args, **kwargs))[0]

    async def tried(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> tuple[T, int]:
        """The same, and how often it was called: the calls before the last may still happen, too."""
        now, tries = self._clock.now(), 0
        end = self._end(now)
        ceiling = self._limits.store_pause_first_ms
        while True:
            try:
                left, tries = max(end - now, 0) / 1_000, tries + 1
                try:
                    return await self._alarm.within(left, self._offload(function, *args, **kwargs)), tries
                except Overdue as error:
                    raise _no_answer(function) from error
            except (Throttled, StoreUnavailable):
                pause = ceiling * (0.5 + self._entropy.uniform() / 2)
                if self._clock.now() + pause >= end:
                    raise
                await asyncio.sleep(pause / 1_000)
                ceiling = min(ceiling * 2, self._limits.store_pause_longest_ms)
                now = self._clock.now()

    def _end(self, began: int) -> int:
        """When a call that begins now gives up.

        A call that begins before the cut-off ends at it, so that there is time left to say so. An ordinary call that
        is under way just then is not one that hangs: it gets half of the time after the cut-off, at least.
        """
        return max(self._cut_off, began + self._least) if began < self._cut_off else self.deadline

    def within(self, ms: int) -> StoreRetrier:
        """The same port calls, where an answer is not worth more time than that."""
        end = min(self.deadline, self._clock.now() + ms)
        return StoreRetrier(self._offload, self._clock, self._entropy, self._limits, end, self._cut_off)

    def until(self, deadline: int) -> StoreRetrier:
        """The same port calls, for what may take until another time."""
        return StoreRetrier(self._offload, self._clock, self._entropy, self._limits, deadline)


def _no_answer(function: Callable[..., Any]) -> StoreUnavailable:
    return StoreUnavailable(f"`{getattr(function, '__name__', 'a call')}` gave no answer in time")


class Threads:
    """The `Offload` for adapters that wait on a network. Its threads are its own, so that no tool starves it."""

    def __init__(self, size: int = 32) -> None:
        self._pool = ThreadPoolExecutor(size, thread_name_prefix="baton-io")

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return await asyncio.get_running_loop().run_in_executor(
            self._pool, partial(function, *args, **kwargs)
        )


async def inline(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """The `Offload` for adapters that never wait, such as those in memory."""
    return function(*args, **kwargs)
