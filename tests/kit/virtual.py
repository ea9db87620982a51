"""Virtual time: an event loop whose clock jumps to the next timer, and the clock and randomness over it."""

from __future__ import annotations

import asyncio
import math
import random
import selectors
from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
MAX_ROUNDS = 100_000  # of the loop without any time passing
EPOCH = 1_790_000_000_000  # where virtual time begins, UTC epoch ms


class _Selector(selectors.SelectSelector):
    """Never waits: time that would be waited is added to the loop's clock."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0
        self.idle_rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("the simulation waits for something that can never happen")
        self.idle_rounds = 0 if timeout else self.idle_rounds + 1
        if self.idle_rounds > MAX_ROUNDS:
            raise RuntimeError("the simulation runs in circles: no time passes")
        self.passed += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time; no thread and no socket can wake it."""

    _scheduled: list[asyncio.TimerHandle]
    _ready: deque[asyncio.Handle]

    def __init__(self) -> None:
        self._virtual = _Selector()
        super().__init__(self._virtual)
        # After half a year of seconds a float has no nanoseconds left, and a timer would never be due.
        self._clock_resolution = 1e-6

    def time(self) -> float:
        return self._virtual.passed

    def pass_time(self, seconds: float) -> None:
        """As when what runs in the loop does not give it back for so long."""
        self._virtual.passed += seconds

    def quiet_s(self) -> float:
        """How long nothing will happen; 0 while something does."""
        if self._ready or not self._scheduled:
            return 0
        return self._scheduled[0].when() - self.time()


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
