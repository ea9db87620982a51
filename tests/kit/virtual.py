"""Virtual time: an event loop whose clock jumps to the next timer, and the clock and randomness over it."""

from __future__ import annotations

import asyncio
import heapq
import math
import random
import selectors
from collections import deque
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

T = TypeVar("T")
MAX_ROUNDS = 100_000  # of the loop without any time passing
RESOLUTION_S = 1e-6
EPOCH = 1_790_000_000_000  # where virtual time begins, UTC epoch ms


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time; no thread and no socket can wake it."""

    _scheduled: list[asyncio.TimerHandle]
    _ready: deque[asyncio.Handle]
    _stopping: bool

    def __init__(self) -> None:
        super().__init__(selectors.SelectSelector())
        self._passed = 0.0
        self._idle_rounds = 0

    def time(self) -> float:
        return self._passed

    def pass_time(self, seconds: float) -> None:
        """As when what runs in the loop does not give it back for so long."""
        self._passed += seconds

    def quiet_s(self) -> float:
        """How long nothing will happen; 0 while something does."""
        if self._ready or not self._scheduled:
            return 0
        return self._scheduled[0].when() - self._passed

    def call_at(
        self, when: float, callback: Callable[..., object], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = asyncio.TimerHandle(when, callback, args, self, context)
        heapq.heappush(self._scheduled, timer)
        return timer

    def _run_once(self) -> None:
        """What asyncio does in a round, without what only sockets, threads and a real clock need: a third of the time."""
        timers, ready = self._scheduled, self._ready
        while timers and timers[0].cancelled():
            heapq.heappop(timers)
        if ready or self._stopping:
            self._idle_rounds += 1
            if self._idle_rounds > MAX_ROUNDS:
                raise RuntimeError("the simulation runs in circles: no time passes")
        elif timers:
            self._idle_rounds = 0
            self._passed = max(self._passed, timers[0].when())
        else:
            raise RuntimeError("the simulation waits for something that can never happen")
        # After half a year of seconds a float has no nanoseconds left, and a timer would never be due.
        end = self._passed + RESOLUTION_S
        while timers and timers[0].when() < end:
            ready.append(heapq.heappop(timers))
        for _ in range(len(ready)):
            handle = ready.popleft()
            if not handle.cancelled():
                handle._run()


async def until_something_happens(step_s: int) -> None:
    """Sleep for a step, or for as many steps as nothing else in the loop is due in."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    await asyncio.sleep(step_s * max(1, math.ceil(loop.quiet_s() / step_s)))


async def stand_still(seconds: float) -> None:
    """Sleep as what is frozen does: the timer of the call itself stands still, too; who stops its step comes through."""
    loop = asyncio.get_running_loop()
    thaw = loop.time() + seconds
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        await asyncio.sleep(thaw - loop.time())


def run_virtual(main: Coroutine[Any, Any, T]) -> T:
    """Run to the end in virtual time."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main)
    finally:
        _cancel_rest(loop)
        loop.close()


def _cancel_rest(loop: asyncio.AbstractEventLoop) -> None:
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    if rest:
        loop.run_until_complete(asyncio.gather(*rest, return_exceptions=True))


class VirtualClock:
    """The running loop's virtual time; `skew` ms are added to it, so that a process's clock can jump."""

    def __init__(self) -> None:
        self.skew = 0

    def now(self) -> int:
        return EPOCH + round(asyncio.get_running_loop().time() * 1_000) + self.skew


class SeededEntropy:
    """Randomness that is the same in every run."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def token(self, bits: int) -> str:
        return f"{self._random.getrandbits(bits):0{bits // 4}x}"

    def uniform(self) -> float:
        return self._random.random()
