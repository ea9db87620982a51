"""Virtual time: an event loop whose clock jumps to the next timer instead of waiting for it.

It waits for real only while a tool or a model waits for something real: a socket, a process, or a thread (threads.py). Clock
and randomness over it are the same in every run.
"""

from __future__ import annotations

import asyncio
import hashlib
import selectors
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from typing import Any, TypeVar, TypeVarTuple

from baton.adapters.clock import SystemClock
from baton.testing.threads import OtherThreads

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
MAX_ROUNDS = 200_000  # of the loop without any time passing; a chain of 10,000 steps takes 30,000
SLICE_S = 0.01  # of real time, until it is looked again whether anything real is under way
LAST_S = 60.0  # virtual seconds that what is cancelled at the end has


class _Selector(selectors.DefaultSelector):
    """Adds the time that would be waited to `passed`, or really waits for what `is_real` says is real."""

    def __init__(self) -> None:
        super().__init__()
        self.passed = 0.0
        self.is_real: Callable[[], bool] = lambda: False
        self._clock = SystemClock()
        self._rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is not None and timeout <= 0:
            self._rounds += 1
            if self._rounds > MAX_ROUNDS:
                self._rounds = 0  # the end needs some of its own
                raise RuntimeError("a tool runs in circles: it gives way again and again, and no time passes")
            return self._ready(0)
        self._rounds = 0
        left = timeout
        while self.is_real() and (left is None or left > 0):
            began = self._clock.now()
            most = SLICE_S if left is None else min(left, SLICE_S)
            ready = self._ready(most)
            waited = (self._clock.now() - began) / 1_000 if ready else most
            self.passed += waited
            if ready:
                return ready
            left = None if left is None else left - waited
        ready = self._ready(0)  # what a thread has left before it ended
        if ready:
            return ready
        if left is None:
            raise RuntimeError("a tool waits for something that can never happen")
        self.passed += max(0.0, left)
        return self._ready(0)

    def _ready(self, timeout: float | None) -> list[tuple[selectors.SelectorKey, int]]:
        ready: list[tuple[selectors.SelectorKey, int]] = super().select(timeout)
        return ready

    def sockets(self) -> int:
        """How many are waited for, besides the loop's own."""
        return len(self.get_map()) - 1


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time. `tools_running`: tools and models that are asked, which may wait for something real."""

    def __init__(self) -> None:
        self.tools_running = 0
        self._threads = OtherThreads()
        self._jobs = 0
        self._virtual = _Selector()
        super().__init__(self._virtual)
        # Half a year from its start a float cannot tell nanoseconds apart, and a timer would never be reached.
        self._clock_resolution = 1e-6
        self._virtual.is_real = lambda: bool(
            self._jobs
            or (self.tools_running and (self._virtual.sockets() > 0 or self._threads.are_at_work()))
        )

    def time(self) -> float:
        return self._virtual.passed

    @contextmanager
    def asking(self) -> Iterator[None]:
        """While a tool or a model is asked."""
        self.tools_running += 1
        try:
            yield
        finally:
            self.tools_running -= 1

    @contextmanager
    def left(self) -> Iterator[None]:
        """As in a thread of its own, where plain functions run when they are deployed: they may have a loop."""
        asyncio._set_running_loop(None)  # noqa: SLF001  # made for those who write event loops
        try:
            yield
        finally:
            asyncio._set_running_loop(self)  # noqa: SLF001  # as above

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """As always; time does not jump until it is done."""
        job = super().run_in_executor(executor, func, *args)
        self._jobs += 1
        job.add_done_callback(self._job_is_done)
        return job

    def _job_is_done(self, _: object) -> None:
        self._jobs -= 1


def run_virtual(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Run `main(loop)` to its end on a loop of its own; what is still running then is cancelled."""
    if _is_in_a_loop():
        raise RuntimeError("baton.testing has an event loop of its own: call it from a plain function")
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(main(loop))
    finally:
        _cancel_rest(loop)
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


def _cancel_rest(loop: asyncio.AbstractEventLoop) -> None:
    rest = asyncio.all_tasks(loop)
    for task in rest:
        task.cancel()
    if rest:
        # Not for ever: there are some that do not let themselves be cancelled.
        loop.run_until_complete(asyncio.wait(rest, timeout=LAST_S))


class LoopClock:
    """The loop's time, counted from `begin` (UTC epoch ms)."""

    def __init__(self, loop: asyncio.AbstractEventLoop, begin: int) -> None:
        self._loop, self._begin = loop, begin

    def now(self) -> int:
        return self._begin + round(self._loop.time() * 1_000)


class CountedEntropy:
    """Names that are the same in every run; they need not be hard to guess."""

    def __init__(self) -> None:
        self._count = 0

    def token(self, bits: int) -> str:
        self._count += 1
        return hashlib.sha512(str(self._count).encode()).hexdigest()[: bits // 4]

    def uniform(self) -> float:
        return 0.5
