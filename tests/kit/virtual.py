"""Virtual time: an event loop whose clock jumps to the next timer, and the clock and randomness over it."""

from __future__ import annotations

import asyncio
import logging
import math
import random
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context, copy_context
from functools import cached_property
from heapq import heappop, heappush
from typing import Any, TypeVar, TypeVarTuple

from tests.kit.faults import Crash

logger = logging.getLogger("virtual time")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
MAX_ROUNDS = 100_000  # of the loop without any time passing
RESOLUTION_S = (
    1e-6  # after half a year of seconds a float has no nanoseconds left, and a timer would never be due
)
ROUNDS_OF_A_SLEEP = 2  # in one its timer is due, in the next one its task goes on
EPOCH = 1_790_000_000_000  # where virtual time begins, UTC epoch ms


class Livelock(Exception):
    """The simulation goes on and on. `at_s`: how much time has passed in it."""

    def __init__(self, rounds: int, at_s: float) -> None:
        super().__init__(f"no end after {rounds:,} rounds and {at_s:,.0f} s")


class _Handle(asyncio.Handle):
    """What asyncio gives for a callback, without its questions whether the loop debugs. `at`: when a timer is due.

    It is one of asyncio's, since the engine's watch knows what holds a loop by the frame of `Handle._run`.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        callback: Any,
        arguments: Sequence[Any],
        context: Context | None,
        at: float = 0,
    ) -> None:
        self._loop, self._callback, self._args, self._at = loop, callback, arguments, at
        self._context = copy_context() if context is None else context
        self._cancelled = False
        self._source_traceback = None

    def cancel(self) -> None:
        self._cancelled = True
        self._callback, self._args = None, ()

    def when(self) -> float:
        return self._at


class VirtualLoop(asyncio.BaseEventLoop):
    """An event loop in virtual time: what it would wait is added to its clock. No thread and no socket can wake it.

    asyncio's own looks for sockets in every round and checks every callback; most of a simulation is rounds.
    """

    _stopping: bool
    _ready: deque[asyncio.Handle]

    # asyncio asks for each task and future.
    get_debug: Any = staticmethod(bool)

    def __init__(self, most_rounds: int = 0) -> None:
        """`most_rounds`: with more of them it is a livelock; 0: any number."""
        super().__init__()
        self._rounds, self._most_rounds = 0, most_rounds
        self._passed = 0.0
        self._idle_rounds = 0
        # Timers of the same moment in the order in which they were set.
        self._timers: list[tuple[float, int, _Handle]] = []
        self._count = 0

    def time(self) -> float:
        return self._passed

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> Any:
        timer = _Handle(self, callback, args, context, when)
        self._count += 1
        heappush(self._timers, (when, self._count, timer))
        return timer

    def call_later(
        self, delay: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> Any:
        return self.call_at(self._passed + delay, callback, *args, context=context)

    def call_soon(self, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None) -> Any:
        handle = _Handle(self, callback, args, context)
        self._ready.append(handle)
        return handle

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """One line, and none for a process of a simulation that died.

        This may be in the middle of anything, since it is said when garbage is collected. A traceback would be parsed for
        its carets; within another parse, such as pytest's of a failure, that is an error of CPython 3.11.
        """
        error = context.get("exception")
        if not isinstance(error, Crash):
            logger.error("%s: %r", context["message"], error)

    def _write_to_self(self) -> None:
        """It never waits, so that nothing has to wake it."""

    def _run_once(self) -> None:
        """Rounds until it is stopped, in the order of asyncio's own: the timers that are due, then all that was ready before."""
        timers, ready = self._timers, self._ready
        while True:
            self._rounds += 1
            if self._rounds == self._most_rounds:  # once: what is left is cancelled in rounds, too
                raise Livelock(self._rounds, self._passed)
            while timers and timers[0][2]._cancelled:
                heappop(timers)
            if ready or (timers and timers[0][0] <= self._passed):
                self._idle_rounds += 1
                if self._idle_rounds > MAX_ROUNDS:
                    raise RuntimeError("the simulation runs in circles: no time passes")
            elif not timers:
                raise RuntimeError("the simulation waits for something that can never happen")
            else:
                self._idle_rounds = 0
                self._passed = timers[0][0]
            due = self._passed + RESOLUTION_S
            while timers and timers[0][0] < due:
                ready.append(heappop(timers)[2])
            for _ in range(len(ready)):
                handle = ready.popleft()
                if not handle._cancelled:
                    handle._run()
            if self._stopping:
                return

    def pass_time(self, seconds: float) -> None:
        """As when what runs in the loop does not give it back for so long."""
        self._passed += seconds

    def passes(self, seconds: float) -> bool:
        """Let so much time pass at once, where nothing else would happen meanwhile: what runs goes on as after a sleep.

        False where something would; then the caller has to sleep. It counts for the rounds that the sleep would take.
        """
        timers, after = self._timers, self._passed + seconds
        while timers and timers[0][2]._cancelled:
            heappop(timers)
        if self._ready or (timers and timers[0][0] < after + 2 * RESOLUTION_S):
            return False
        if self._rounds < self._most_rounds <= self._rounds + ROUNDS_OF_A_SLEEP:
            return False
        self._rounds, self._passed = self._rounds + ROUNDS_OF_A_SLEEP, after
        return True

    def quiet_s(self) -> float:
        """How long nothing will happen; 0 while something does. What was given up in time happens no more."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:
            heappop(timers)
        return 0 if self._ready or not timers else timers[0][0] - self._passed


def passes(seconds: float) -> bool:
    """`VirtualLoop.passes` of the running loop."""
    loop = asyncio.get_running_loop()
    return isinstance(loop, VirtualLoop) and loop.passes(seconds)


async def until_something_happens(step_s: float) -> None:
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


def run_virtual(main: Coroutine[Any, Any, T], most_rounds: int = 0) -> T:
    """Run to the end in virtual time. Raises `Livelock` after so many rounds."""
    loop = VirtualLoop(most_rounds)
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
        self._seed = seed

    @cached_property
    def _random(self) -> random.Random:
        """Made by the first that draws: most invocations need no randomness, and seeding takes as long as hundreds of draws."""
        return random.Random(self._seed)

    def token(self, bits: int) -> str:
        return f"{self._random.getrandbits(bits):0{bits // 4}x}"

    def uniform(self) -> float:
        return self._random.random()
