"""The watchdog of an event loop: it notices from another thread that a
tool does not give the loop back, and tells of it.

It says when a loop counts as blocked, by which tool, and for how long.
The thread and its clock are ports; steps/steps.py says what becomes of a step that timed out.

A tool that blocks cannot be stopped, so it is told of while it does: an
invocation that it lasts longer than writes nothing any more.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar, Token
from types import FrameType

import msgspec

from baton.core.log.events import Event
from baton.core.read.metrics import Document, Figures, metrics_document
from baton.ports import Blocked, Clock, Meter, Pulse, StepContext

QUIET_MS = 60_000
"""Milliseconds for which the figures of a tool are kept whose steps all succeed at once.
They are lost with their process.
"""

_encode = msgspec.json.Encoder().encode


class Metrics:
    """The figures of all sagas of a process. Without `write` there are none."""

    def __init__(
        self, write: Callable[[str], None] | None = None, deployment: str = "", *, counts_ends: bool = False
    ) -> None:
        """Create the metrics.
        `write` takes one line without its end; `deployment` names this one among those of the account.

        `counts_ends`: of sagas, for an error budget.
        """
        self._write = write
        self._deployment = deployment
        self._figures = Figures(counts_ends=counts_ends)

    def heard(self, workflow: str, events: Iterable[Event], now: int) -> None:
        """Count an entry that was appended at `now` (epoch ms) to the log of a saga of this workflow."""
        if self._write is not None:
            self._figures.heard(workflow, events, now)

    def flush(self, now: int) -> None:
        """Write the figures that are due, at the end of an invocation. A failed write harms no step."""
        self._put(self._figures.take(now, QUIET_MS, self._deployment))

    def blocked(self, tool: str, now: int) -> None:
        """Count a tool that blocks the event loop.
        Written at once, from any thread: the invocation may not live to its end.
        """
        self._say(now, {"LoopBlocked": 1}, tool=tool)

    def dead_letters(self, moved: int, pending: int, age: int, now: int) -> None:
        """Count the results of reading the dead letters: new messages, pending letters, age of the oldest in
        ms.
        """
        self._say(now, {"DeadMessages": moved, "DeadLetters": pending, "DeadLetterAge": age})

    def ticks(self, workflow: str, figures: Mapping[str, int], now: int) -> None:
        """Count ticks of a workflow's schedule that started nothing, by metric.
        Written at once: they are rare.
        """
        self._say(now, figures, workflow=workflow)

    def events(self, figures: Mapping[str, int], now: int) -> None:
        """Count the failures of events from outside, by metric."""
        self._say(now, figures)

    def opened(self, breaker: str, now: int) -> None:
        """Count a circuit breaker that has opened.
        Written at once: it is rare, and people are waiting to know.
        """
        self._say(now, {"BreakerOpened": 1}, breaker=breaker)

    def _say(self, now: int, figures: Mapping[str, int], **about: str) -> None:
        self._put(
            [metrics_document(now, {"function": self._deployment, **about}, figures)] if figures else []
        )

    def _put(self, documents: Iterable[Document]) -> None:
        if self._write is None:
            return
        for one in documents:
            try:
                self._write(_encode(one).decode())
            except OSError:
                return


logger = logging.getLogger("baton.worker")

LOOKS = 4  # within the limit
LEAST_CPU = (
    20  # a process that computes has at least the twentieth part of a processor; one that is frozen has none
)
MOST_FRAMES = 30

ASK, WAIT, BLOCKED = "ask", "wait", "blocked"


class Rounds:
    """Detector of a blocked loop, by regular checks. Times in ms."""

    def __init__(self, limit: int, every: int, now: int, worked: int) -> None:
        self.since = now
        self._limit, self._every = limit, every
        self._now, self._worked = now, worked
        self._is_told = False

    def look(self, now: int, worked: int, *, came_round: bool) -> str:
        """Return ASK for another round of the loop, WAIT for the one that was asked for, or BLOCKED,
        which is said once.

        A look that comes late although the process has computed nothing shows that it
        stood still as a whole: that time counts for nothing. If it has computed, a call
        that holds the interpreter kept the look from coming, and the loop from going on.
        """
        late, computed = now - self._now - self._every, worked - self._worked
        self._now, self._worked = now, worked
        stood_still = late > self._every and computed < late // LEAST_CPU
        if came_round:
            self.since, self._is_told = now, False
            if stood_still or late < self._limit:
                return ASK
            self.since -= late
        elif stood_still:
            self.since += late
        if self._is_told or now - self.since < self._limit:
            return WAIT
        self._is_told = True
        return BLOCKED


class WatchedCall:
    """A call of an `async` tool, watched from entering to leaving."""

    __slots__ = ("_token", "_watch", "context", "tool")

    def __init__(self, watch: Watch, tool: str, context: StepContext) -> None:
        self._watch, self.tool, self.context = watch, tool, context

    def __enter__(self) -> None:
        self._token: Token[WatchedCall | None] = _CALL.set(self)
        self._watch.entered(self)

    def __exit__(self, *_: object) -> None:
        _CALL.reset(self._token)
        self._watch.left(self)


_CALL: ContextVar[WatchedCall | None] = ContextVar("call", default=None)
"""Call whose code runs; tasks that a tool starts have a copy of it."""


class BlockedLoop:
    """A loop that is blocked, for `ms` so far.
    `call` None: not by a tool's code. `stack`: where, innermost first.
    """

    def __init__(self, call: WatchedCall | None, ms: int, stack: Sequence[str]) -> None:
        self.call, self.ms, self.stack = call, ms, stack


class Watch:
    """The watchdog of a process's loop, for one invocation at a time. `tell` is called in its thread."""

    def __init__(
        self, limit_ms: int, meter: Meter, pulse: Pulse, tell: Callable[[BlockedLoop], None]
    ) -> None:
        self._limit = limit_ms
        self._meter = meter
        self._pulse = pulse
        self._tell = tell
        self._calls: set[WatchedCall] = set()
        self._vigil: _Vigil | None = None

    def over(self, tool: str, context: StepContext) -> WatchedCall:
        """Return the call of an `async` tool, to be entered in the task that makes it.
        The first one wakes the watchdog.
        """
        return WatchedCall(self, tool, context)

    def entered(self, call: WatchedCall) -> None:
        self._calls.add(call)
        if self._vigil is None:
            self._vigil = _Vigil(self._limit, self._meter, self._pulse, self._tell, self._calls)

    def left(self, call: WatchedCall) -> None:
        if self._vigil is not None:
            self._vigil.left(call)
        self._calls.discard(call)

    def rest(self) -> None:
        """Stop watching: the invocation is over, and freezes from now on do not matter."""
        if self._vigil is not None:
            self._vigil.stop()
            self._vigil = None


class _Vigil:
    """Looks after the running loop until it is stopped.
    `held` is set by the watchdog's thread, and taken by the loop's.
    """

    def __init__(
        self,
        limit: int,
        meter: Meter,
        pulse: Pulse,
        tell: Callable[[BlockedLoop], None],
        calls: set[WatchedCall],
    ) -> None:
        self._meter, self._tell, self._calls = meter, tell, calls
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        every = max(limit // LOOKS, 1)
        self._rounds = Rounds(limit, every, meter.passed(), meter.worked())
        self._came_round = False
        self._loop.call_soon(self._round)  # the first call may block at once
        self._is_over = False
        self._held: BlockedLoop | None = None
        self._stop = pulse(self._look, every)

    def stop(self) -> None:
        self._is_over = True
        self._stop()

    def _look(self) -> None:
        """Look at the loop, in the watchdog's thread."""
        found = self._rounds.look(self._meter.passed(), self._meter.worked(), came_round=self._came_round)
        if self._is_over or found == WAIT or not self._calls:
            return
        if found == BLOCKED:
            call, stack = _at_work(self._thread)
            self._held = held = BlockedLoop(call, self._meter.passed() - self._rounds.since, stack)
            self._tell(held)
        if self._came_round:
            self._came_round = False
            self._loop.call_soon_threadsafe(self._round)

    def _round(self) -> None:
        """Record a round, in the loop."""
        self._close()
        self._came_round = True

    def left(self, call: WatchedCall) -> None:
        """Record in the loop that the call has ended: later blocking is not attributed to it."""
        if self._held is not None and self._held.call is call:
            self._close()

    def _close(self) -> None:
        """Write down for every call that is running how long the loop was blocked, and by whom."""
        held, self._held = self._held, None
        if held is None:
            return
        tool, ms = held.call.tool if held.call is not None else "", self._meter.passed() - self._rounds.since
        for call in self._calls:
            call.context.blocked.append(Blocked(tool, ms, call is held.call))


_RUN = asyncio.Handle._run.__code__  # noqa: SLF001  # what runs in a loop is called by this function


def _at_work(thread: int) -> tuple[WatchedCall | None, list[str]]:
    """Return the call whose code a loop's thread is running now, and its stack."""
    frame: FrameType | None = sys._current_frames().get(thread)  # noqa: SLF001  # made for debuggers
    stack = list[str]()
    while frame is not None and frame.f_code is not _RUN:
        stack.append(f"{frame.f_code.co_filename}:{frame.f_lineno} {frame.f_code.co_name}")
        frame = frame.f_back
    # A task and a callback have the context of those who made them. Only Python 3.12 says which that is.
    context = None if frame is None else getattr(frame.f_locals.get("self"), "_context", None)
    return (None if context is None else context.get(_CALL)), stack[:MOST_FRAMES]


def to_log(metrics: Metrics, clock: Clock) -> Callable[[BlockedLoop], None]:
    """Return a function that tells of a blocked loop in one line of the worker's log, and by a metric,
    at once.
    """

    def tell(held: BlockedLoop) -> None:
        call, tool = held.call, held.call.tool if held.call is not None else ""
        extra: dict[str, object] = {"tool": tool, "blocked_ms": held.ms, "stack": held.stack}
        if call is not None:
            context = call.context
            extra |= {"saga": context.saga, "node": context.node, "attempt": context.attempt}
        logger.warning(
            "%s blocks the event loop, so every saga of this invocation stands still. Nothing can stop an async tool that "
            "does not await, not even its timeout. Let it await, or make it a plain `def`: that runs outside of the loop",
            f"`{tool}`" if tool else "something outside of any tool",
            extra=extra,
        )
        metrics.blocked(tool, clock.now())

    return tell


def own_ms(blocked: Sequence[Blocked]) -> int:
    """Return the milliseconds for which an attempt itself held the loop."""
    return sum(one.ms for one in blocked if one.is_own)


def because_of(blocked: Sequence[Blocked]) -> str:
    """Return the reason for a missed deadline if code blocked the loop meanwhile; else an empty text."""
    if not blocked:
        return ""
    most = max(blocked, key=lambda one: (one.is_own, one.ms))
    if most.is_own:
        held = f"`{most.tool}` held the event loop for {own_ms(blocked)} ms"
        return f": {held}, and nothing stops an async tool that does not await"
    who = f"`{most.tool}`" if most.tool else "something outside of any tool"
    return f": meanwhile {who} held the event loop for {most.ms} ms, so no answer was heard"
