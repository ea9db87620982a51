"""Virtual time: an event loop whose clock jumps to the next timer instead of waiting for it.

The loop waits in real time only while a tool or a model waits for a socket, a process, or a working thread.
Clock and randomness based on it are the same in every run.
"""

from __future__ import annotations

import asyncio
import hashlib
import queue
import selectors
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from types import FrameType
from typing import Any, TypeVar, TypeVarTuple

from baton.adapters.clock import SystemClock, SystemMeter, thread_pulse
from baton.core.expressions import lasting
from baton.runtime.invocation.watch import Held, Watch, own_ms

_Place = tuple[tuple[object, int], ...]
_POOL = "concurrent/futures/thread.py"
_WATCHDOG = "watchdog"  # of the engine itself (adapters/clock.py)


class OtherThreads:
    """Detector of working threads.

    A thread that has not moved since the start of the run is idle, such as that of a debugger. A thread that
    waits without timeout for another thread to wake it is also idle: a thread of a pool without work, or one
    that waits for the event loop.
    """

    def __init__(self) -> None:
        self._here = threading.get_ident()
        self._began = {name: _place(frame) for name, frame in sys._current_frames().items()}  # noqa: SLF001  # documented

    def are_at_work(self) -> bool:
        if threading.active_count() == 1:
            return False
        known = {thread.ident for thread in threading.enumerate() if thread.name != _WATCHDOG}
        return any(
            name in known and name != self._here and not self._is_at_rest(name, frame)
            for name, frame in sys._current_frames().items()  # noqa: SLF001  # documented
        )

    def _is_at_rest(self, name: int, frame: FrameType) -> bool:
        woken = _is_woken(frame)
        return _place(frame) == self._began.get(name) if woken is None else not woken


def _place(frame: FrameType | None) -> _Place:
    """Return the position of the thread in each of its functions."""
    found: list[tuple[object, int]] = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def _is_woken(frame: FrameType) -> bool | None:
    """For a thread that waits for work or without timeout for another thread: return true if it is about to
    continue. None for others.
    """
    name, file, names = frame.f_code.co_name, frame.f_code.co_filename.replace("\\", "/"), frame.f_locals
    if name == "_worker" and file.endswith(_POOL):
        return not names["work_queue"].empty()
    is_waiting = frame.f_code is threading.Condition.wait.__code__ and names.get("timeout") is None
    if not is_waiting:
        return None
    its = frame.f_back.f_locals.get("self") if frame.f_back is not None else None
    has_work = isinstance(its, queue.Queue) and bool(its.queue)
    return has_work or "waiter" not in names or not names["waiter"].locked()


T = TypeVar("T")
Ts = TypeVarTuple("Ts")
MAX_ROUNDS = 200_000  # of the loop without any time passing; a chain of 10,000 steps takes 30,000
SLICE_S = 0.01  # of real time, until it is looked again whether anything real is under way
LAST_S = 60.0  # virtual seconds that what is cancelled at the end has


class _Selector(selectors.DefaultSelector):
    """Selector that adds the waiting time to `passed`, or waits in real time if `is_real` returns true."""

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
        """Number of sockets that are waited for, besides the loop's own."""
        return len(self.get_map()) - 1


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time. `tools_running` counts running tools and model requests, which may wait
    in real time.
    """

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
        """Mark a request to a tool or a model as running."""
        self.tools_running += 1
        try:
            yield
        finally:
            self.tools_running -= 1

    @contextmanager
    def left(self) -> Iterator[None]:
        """Leave the event loop as in a thread of its own, so that plain functions can run a loop, as when
        deployed.
        """
        asyncio._set_running_loop(None)  # noqa: SLF001  # made for those who write event loops
        try:
            yield
        finally:
            asyncio._set_running_loop(self)  # noqa: SLF001  # as above

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run the function in the executor. Time does not jump until it returns."""
        job = super().run_in_executor(executor, func, *args)
        self._jobs += 1
        job.add_done_callback(self._job_is_done)
        return job

    def _job_is_done(self, _: object) -> None:
        self._jobs -= 1


def run_virtual(main: Callable[[VirtualLoop], Coroutine[Any, Any, T]]) -> T:
    """Run `main(loop)` to its end on a loop of its own, then cancel remaining tasks."""
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
    """Names that are the same in every run. They may be predictable."""

    def __init__(self) -> None:
        self._count = 0

    def token(self, bits: int) -> str:
        self._count += 1
        return hashlib.sha512(str(self._count).encode()).hexdigest()[: bits // 4]

    def uniform(self) -> float:
        return 0.5


LIMIT_MS = 1_000  # by the machine's clock: a thousand times what a tool needs between two awaits, also on a slow machine
SHOWN = 3
_DEBUGGERS = ("bdb.py:", "pydevd")


class LoopBlocked(Exception):
    """An `async` tool blocked the event loop too long."""


class Blockers:
    """The watchdog of a run. It watches tools; plain functions and the engine are not counted."""

    def __init__(self, tell: Callable[[Held], None]) -> None:
        self._tell = tell
        self._found: list[Held] = []
        self.watch = Watch(LIMIT_MS, SystemMeter(), thread_pulse, self.hear)

    def hear(self, held: Held) -> None:
        """Record a report of the watchdog, in its thread."""
        is_stopped = any(name in line for line in held.stack for name in _DEBUGGERS)
        if held.call is not None and not is_stopped:
            self._found.append(held)
            self._tell(held)  # at once: it may hold the loop for ever

    def check(self) -> None:
        """Raise `LoopBlocked` for the first report."""
        for call in (held.call for held in self._found if held.call is not None):
            where = f"`{call.tool}` (node `{call.context.node}`)"
            raise LoopBlocked(
                f"{where} held the event loop for {lasting(own_ms(call.context.blocked))}. Deployed, every other saga of "
                "the invocation stands still meanwhile, and no timeout stops it. Let it await instead of blocking, or make "
                "it a plain `def`: that runs outside of the loop. It was at "
                + "\n  ".join(["", *self._found[0].stack])
            )
