"""Port calls off the event loop, repeated with growing, jittered pauses while a store is busy.

Gives up, and lets the fault out, when the next pause would not end before the deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import ParamSpec, TypeVar

from baton.core.limits import Limits
from baton.errors import StoreUnavailable, Throttled
from baton.ports import Clock, Entropy, Offload

P = ParamSpec("P")
T = TypeVar("T")


class Patience:
    """Awaitable port calls for one invocation that must end by `deadline`."""

    def __init__(
        self, offload: Offload, clock: Clock, entropy: Entropy, limits: Limits, deadline: int
    ) -> None:
        self._offload = offload
        self._clock = clock
        self._entropy = entropy
        self._limits = limits
        self.deadline = deadline

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """The call's result. A repeated call may have happened before: callers recognise their own writes."""
        ceiling = self._limits.store_pause_first_ms
        while True:
            try:
                return await self._offload(function, *args, **kwargs)
            except (Throttled, StoreUnavailable):
                pause = ceiling * (0.5 + self._entropy.uniform() / 2)
                if self._clock.now() + pause >= self.deadline:
                    raise
                await asyncio.sleep(pause / 1_000)
                ceiling = min(ceiling * 2, self._limits.store_pause_longest_ms)


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
