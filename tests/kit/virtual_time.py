"""Virtual time for simulations, and the clock and randomness over it."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from asyncio import get_running_loop
from collections.abc import Coroutine
from functools import cached_property
from typing import Any, TypeVar

from baton.testing.loop import RESOLUTION_S, VirtualLoop
from tests.kit.faults import Crash

logger = logging.getLogger("virtual time")

T = TypeVar("T")
ROUNDS_OF_A_SLEEP = 2  # in one its timer is due, in the next one its task goes on
EPOCH = 1_790_000_000_000  # where virtual time begins, UTC epoch ms


def _log_in_one_line(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    """One line, and none for a process of a simulation that died.

    This may be in the middle of anything, since it is said when garbage is collected. A traceback would be parsed for
    its carets; within another parse, such as pytest's of a failure, that is an error of CPython 3.11.
    """
    error = context.get("exception")
    if not isinstance(error, Crash):
        logger.error("%s: %r", context["message"], error)


class Livelock(Exception):
    """A run goes on and on. `at_s`: how much time has passed in it."""

    def __init__(self, rounds: int, at_s: float) -> None:
        super().__init__(f"no end after {rounds:,} rounds and {at_s:,.0f} s")


class SimulationLoop(VirtualLoop):
    """The loop of `baton.testing`, which also counts its rounds; its time can pass without a sleep."""

    def __init__(self, most_rounds: int = 0) -> None:
        """`most_rounds`: with more of them it is a livelock; 0: any number."""
        super().__init__()
        self._rounds, self._most_rounds = 0, most_rounds

    def _begin_round(self) -> None:
        self._rounds += 1
        if self._rounds == self._most_rounds:  # once: what is left is cancelled in rounds, too
            raise Livelock(self._rounds, self._passed)
        super()._begin_round()

    def pass_time(self, seconds: float) -> None:
        """As when what runs in the loop does not give it back for so long."""
        self._passed += seconds

    def passes(self, seconds: float) -> bool:
        """Let so much time pass at once, where nothing else would happen meanwhile: what runs goes on as after a sleep.

        False where something would; then the caller has to sleep. It counts for the rounds that the sleep would take.
        """
        timers, after = self._timers, self._passed + seconds
        super()._begin_round()
        if self._ready or (timers and timers[0][0] < after + 2 * RESOLUTION_S):
            return False
        if self._rounds < self._most_rounds <= self._rounds + ROUNDS_OF_A_SLEEP:
            return False
        self._rounds, self._passed = self._rounds + ROUNDS_OF_A_SLEEP, after
        return True

    def quiet_s(self) -> float:
        """Return the seconds until the next timer; 0 while something is ready. A cancelled timer does not count."""
        timers = self._timers
        super()._begin_round()
        return 0 if self._ready or not timers else timers[0][0] - self._passed


def passes(seconds: float) -> bool:
    """`SimulationLoop.passes` of the running loop."""
    loop = asyncio.get_running_loop()
    return isinstance(loop, SimulationLoop) and loop.passes(seconds)


async def until_something_happens(step_s: float) -> None:
    """Sleep for a step, or for as many steps as nothing else in the loop is due in."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, SimulationLoop)
    await asyncio.sleep(step_s * max(1, math.ceil(loop.quiet_s() / step_s)))


async def stand_still(seconds: float) -> None:
    """Sleep as what is frozen does: the timer of the call itself stands still, too; who stops its step comes through."""
    loop = asyncio.get_running_loop()
    thaw = loop.time() + seconds
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        await asyncio.sleep(thaw - loop.time())


def run_virtual(main: Coroutine[Any, Any, T], most_rounds: int = 0) -> T:
    """Run to the end in virtual time. Raises `Livelock` after so many rounds."""
    loop = SimulationLoop(most_rounds)
    loop.set_exception_handler(_log_in_one_line)
    try:
        return loop.run_until_complete(main)
    finally:
        _cancel_rest(loop)
        loop.close()


def _cancel_rest(loop: asyncio.AbstractEventLoop) -> None:
    """Cancel all tasks until they have ended: what stands still survives a first cancellation, and would go on for ever."""
    while rest := asyncio.all_tasks(loop):
        for task in rest:
            task.cancel()
        ended, _ = loop.run_until_complete(asyncio.wait(rest, timeout=1))
        _ = [
            task.cancelled() or task.exception() for task in ended
        ]  # so that none is reported as never looked at


class VirtualClock:
    """The running loop's virtual time; `skew` ms are added to it, so that a process's clock can jump."""

    def __init__(self) -> None:
        self.skew = 0

    def now(self) -> int:
        return EPOCH + round(get_running_loop().time() * 1_000) + self.skew


class SeededEntropy:
    """Randomness that is the same in every run."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    @cached_property
    def _random(self) -> random.Random:
        """Made by the first that draws: most invocations need no randomness, and seeding takes as long as hundreds of draws."""
        return random.Random(self._seed)

    def token(self, bits: int) -> str:
        return f"{self._random.getrandbits(bits):0{bits // 4}x}"

    def uniform(self) -> float:
        return self._random.random()
