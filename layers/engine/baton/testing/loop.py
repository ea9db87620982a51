"""Virtual time: an event loop whose clock jumps to the next timer instead of waiting for it.

It waits for real only while a tool or a model waits for something real: a socket, a process, or a thread. No
virtual time passes then. Clock and randomness over it are the same in every run.
"""

from __future__ import annotations

import asyncio
import hashlib
import queue
import selectors
import sys
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from contextvars import Context, copy_context
from heapq import heappop, heappush
from types import FrameType
from typing import Any, TypeVar, TypeVarTuple

from baton.adapters.clock import SystemClock, SystemMeter, thread_pulse
from baton.core.expressions import duration_text
from baton.runtime.invocation.watch import BlockedLoop, Watch, own_ms

_Place = tuple[tuple[object, int], ...]
_POOL = "concurrent/futures/thread.py"
_WATCHDOG = "watchdog"  # of the engine itself (adapters/clock.py)


class OtherThreads:
    """Tells whether a thread is at work.

    One that stands where it stood when the run began is at rest, such as that of a debugger.
    So is one that waits without a limit of time for another to wake it: an
    idle thread of a pool, or one that waits for the event loop.
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
    """Return the place of a frame in each function that it is in."""
    found: list[tuple[object, int]] = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return tuple(found)


def _is_woken(frame: FrameType) -> bool | None:
    """Return true if a thread that waits for work or another thread is to go on, None for others."""
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
OWN_SOCKETS = 1  # by which a thread wakes the loop
RESOLUTION_S = (
    1e-6  # half a year from its start a float cannot tell nanoseconds apart, and a timer would never be due
)
LAST_S = 60.0  # virtual seconds that what is cancelled at the end has


class _Handle(asyncio.Handle):
    """A callback without asyncio's checks, which the watch knows by `Handle._run`. `at`: of a timer."""

    __slots__ = ("at",)

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        callback: Any,
        arguments: Sequence[Any],
        context: Context | None,
        at: float = 0,
    ) -> None:
        self._loop, self._callback, self._args, self.at = loop, callback, arguments, at
        self._context = copy_context() if context is None else context
        self._cancelled = False
        self._source_traceback = self._repr = None

    def cancel(self) -> None:
        self._cancelled = True
        self._callback, self._args = None, ()

    def when(self) -> float:
        return self.at


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop in virtual time: the time that it would wait is added to its clock.
    `tools_running`: tools and models that are asked, which may wait for something real.

    It runs its own rounds: those of asyncio look for sockets and check each callback,
    and a simulation consists of rounds.
    """

    _stopping: bool
    _task_factory: Any
    _ready: deque[asyncio.Handle]
    _selector: selectors.BaseSelector
    _process_events: Callable[[list[tuple[selectors.SelectorKey, int]]], None]

    # asyncio asks for each task and future.
    get_debug: Any = staticmethod(bool)

    def __init__(self) -> None:
        super().__init__()
        self.tools_running = 0
        self._threads = OtherThreads()
        self._clock = SystemClock()
        self._jobs = 0
        self._registered = self._selector.get_map()
        self._passed = 0.0
        self._waited = 0.0  # real seconds since time last passed
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

    def create_task(self, coro: Any, *, name: Any = None, context: Context | None = None, **more: Any) -> Any:
        """Create the task without asyncio's checks, unless it is to be a special one."""
        if more or self._task_factory is not None:
            return super().create_task(coro, name=name, context=context, **more)
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def _run_once(self) -> None:
        """Run rounds in the order of asyncio's: timers that are due, then all that is ready."""
        timers, ready = self._timers, self._ready
        while True:
            self._begin_round()
            if ready or (timers and timers[0][0] <= self._passed):
                self._idle_rounds += 1
                if self._idle_rounds > MAX_ROUNDS:
                    self._idle_rounds = 0  # the end needs some of its own
                    raise RuntimeError(
                        "a tool runs in circles: it gives way again and again, and no time passes"
                    )
                if len(self._registered) > OWN_SOCKETS:
                    self._poll()
            else:
                self._idle_rounds = 0
                self._wait(timers[0][0] if timers else None)
            due = self._passed + RESOLUTION_S
            while timers and timers[0][0] < due:
                ready.append(heappop(timers)[2])
            for _ in range(len(ready)):
                handle = ready.popleft()
                if not handle._cancelled:  # noqa: SLF001  # made for those who write event loops
                    handle._run()  # noqa: SLF001  # as above
            if self._stopping:
                return

    def _begin_round(self) -> None:
        """Forget cancelled timers, so that the first one counts."""
        timers = self._timers
        while timers and timers[0][2]._cancelled:  # noqa: SLF001  # as above
            heappop(timers)

    def _wait(self, until: float | None) -> None:
        """Jump to `until`, the next timer, or really wait for what is real: then until it has happened.

        No time passes meanwhile. What is real has as much real time as is left until the timer, which is that
        of a timeout, so that what hangs ends.
        """
        while self._is_real() and (until is None or self._waited < until - self._passed):
            began = self._clock.now()
            most = SLICE_S if until is None else min(until - self._passed - self._waited, SLICE_S)
            is_ready = self._poll(most)
            self._waited += (self._clock.now() - began) / 1_000 if is_ready else most
            if is_ready:
                return
        if self._poll():  # what a thread has left before it ended
            return
        if until is None:
            raise RuntimeError("a tool waits for something that can never happen")
        self._passed, self._waited = max(self._passed, until), 0.0

    def _poll(self, timeout: float = 0) -> bool:
        """Wait at most `timeout` real seconds for sockets. True when something is ready."""
        if timeout or len(self._registered) > OWN_SOCKETS:
            self._process_events(self._selector.select(timeout))
        return bool(self._ready)

    def _is_real(self) -> bool:
        """Return true while a job runs, or while a tool is asked and a socket or a thread is at work."""
        has_sockets = len(self._registered) > OWN_SOCKETS
        return bool(self._jobs or (self.tools_running and (has_sockets or self._threads.are_at_work())))

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Mark the time in which a tool or a model is asked."""
        self.tools_running += 1
        try:
            yield
        finally:
            self.tools_running -= 1

    @contextmanager
    def left(self) -> Iterator[None]:
        """Leave the loop, as a plain function does in its thread when it is deployed: it may run a loop."""
        asyncio._set_running_loop(None)  # noqa: SLF001  # made for those who write event loops
        try:
            yield
        finally:
            asyncio._set_running_loop(self)  # noqa: SLF001  # as above

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Run a function in the executor as always; time does not jump until it is done."""
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
    """`Entropy` whose names are the same in every run; they need not be hard to guess."""

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
    """An `async` tool held the event loop too long."""


class Blockers:
    """Watchdog of a run that collects blocked loops. Only the loop of tools is watched."""

    def __init__(self, tell: Callable[[BlockedLoop], None]) -> None:
        self._tell = tell
        self._found: list[BlockedLoop] = []
        self.watch = Watch(LIMIT_MS, SystemMeter(), thread_pulse, self.hear)

    def hear(self, held: BlockedLoop) -> None:
        """Record a blocked loop. The watchdog calls it in its own thread."""
        is_stopped = any(name in line for line in held.stack for name in _DEBUGGERS)
        if held.call is not None and not is_stopped:
            self._found.append(held)
            self._tell(held)  # at once: it may hold the loop for ever

    def check(self) -> None:
        """Raise `LoopBlocked` for the first blocked loop."""
        for call in (held.call for held in self._found if held.call is not None):
            where = f"`{call.tool}` (node `{call.context.node}`)"
            raise LoopBlocked(
                f"{where} held the event loop for {duration_text(own_ms(call.context.blocked))}. Deployed, every other saga of "
                "the invocation stands still meanwhile, and no timeout stops it. Let it await instead of blocking, or make "
                "it a plain `def`: that runs outside of the loop. It was at "
                + "\n  ".join(["", *self._found[0].stack])
            )
