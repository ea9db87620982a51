"""The event loop of a workflow function, and its operations. The loop has no clock and no selector.

Everything of asyncio that waits for tasks, futures and times works in it. A timer is an operation of the
saga. What would wait for a socket, a thread or a process is refused: a step does that.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys
from collections import deque
from collections.abc import Callable, Coroutine, Generator, Mapping
from concurrent.futures import Executor
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar, TypeVarTuple, Unpack

from baton.core.log.functions import AskedOperation

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MOST_CALLS = 1_000_000
"""Most calls of the loop between two waits: a function that makes more waits for nothing."""


class FunctionDefect(Exception):
    """Mistake in the code of a function, found by the engine. The text says what to write instead."""


class TaskPath:
    """A place in a function: its own body, or a task of it. `path` names it; it counts the names in it."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        self._counts: dict[str, int] = {}

    def number(self, name: str) -> int:
        """Return how often this name was asked for, with this time."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return count

    def task(self, name: str) -> TaskPath:
        """Return the branch of a new task in this one."""
        return TaskPath(f"{self.path}{name}[{self.number(f'{name}[')}]/")


task_path: ContextVar[TaskPath] = ContextVar("task_path")
# A loop of its own is set by what asyncio has for makers of loops, whose names begin with `_`.
_running, _set_running = asyncio._get_running_loop, asyncio._set_running_loop  # noqa: SLF001
INLINE: Any = Executor()
"""Executor of plain functions that run in the loop itself, in place of a thread."""
_PRUNE_AT = 256  # tasks, of which those that are done are dropped
_swap: Any = getattr(asyncio.tasks, "_swap_current_task", None)


def _left(_: Any) -> None:
    """Leave a generator that nothing waits for as it is: no replay depends on when it is collected."""


def _refuse(name: str) -> Callable[..., NoReturn]:
    def refused(self: FunctionLoop, *args: Any, **options: Any) -> NoReturn:
        raise FunctionDefect(
            f"a function waits for operations only: put what needs `loop.{name}` into a step, and run an "
            "agent or a graph of another library by `baton.compat`"
        )

    return refused


if TYPE_CHECKING:
    _Refusing: Any = asyncio.AbstractEventLoop
else:
    _names = [name for name in vars(asyncio.AbstractEventLoop) if not name.startswith("_")]
    _Refusing = type("_Refusing", (asyncio.AbstractEventLoop,), {name: _refuse(name) for name in _names})


class FunctionLoop(_Refusing):  # type: ignore[misc]  # mypy counts what is refused as not written
    """Event loop of one function. `timer` makes an operation of the time after so many seconds."""

    def __init__(self, timer: Callable[[float], asyncio.Future[None]]) -> None:
        self._timer = timer
        self._timers: dict[asyncio.TimerHandle, asyncio.Future[None]] = {}
        self._ready: deque[asyncio.Handle] = deque()
        self._tasks: list[tuple[asyncio.Task[Any], Context, Any]] = []
        self._is_forgotten, self._prune_at = False, _PRUNE_AT
        self.now_s = 0.0

    # ---- for the session (run.py)

    def run_until_idle(self) -> None:
        """Run what is ready, and all that follows, inside of a task of another loop.

        Raises `FunctionDefect` where that has no end.
        """
        outer, hooks = _running(), sys.get_asyncgen_hooks()
        # From Python 3.14 on a thread has one current task, whatever its loop.
        current = None if _swap is None or outer is None else _swap(outer, None)
        _set_running(self)
        sys.set_asyncgen_hooks(None, _left)
        ready, left = self._ready, MOST_CALLS
        try:
            while ready:
                handle = ready.popleft()
                if not handle.cancelled():
                    handle._run()  # noqa: SLF001  # as every loop does
                left -= 1
                if not left:
                    raise FunctionDefect("it goes round without waiting for an operation")
        finally:
            _set_running(outer)
            sys.set_asyncgen_hooks(*hooks)
            if current is not None:
                _swap(outer, current)

    def forget(self) -> None:
        """Close the coroutines of the function: nothing runs or waits in this loop any more."""
        self._is_forgotten, outer = True, _running()
        _set_running(self)  # what a `finally` begins is not for the loop of the worker
        try:
            for task, context, coroutine in self._tasks:
                if not task.done():
                    with suppress(BaseException):  # of their `finally`
                        context.run(coroutine.close)
        finally:
            _set_running(outer)
        self._tasks.clear()
        self._timers.clear()
        self._ready.clear()

    # ---- for asyncio

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        handle = asyncio.Handle(callback, args, self, context)
        if not self._is_forgotten:
            self._ready.append(handle)
        return handle

    def call_later(
        self,
        delay: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now_s + delay, callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """Call `callback` at a time, for which the saga waits."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if when <= self.now_s:
            self._ready.append(handle)
            return handle

        def over(_: asyncio.Future[None]) -> None:
            if self._timers.pop(handle, None) is not None and not handle.cancelled():
                handle._run()  # noqa: SLF001  # as every loop does

        timer = self._timers[handle] = self._timer(when - self.now_s)
        timer.add_done_callback(over)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        if (timer := self._timers.pop(handle, None)) is not None:
            timer.cancel()

    def time(self) -> float:
        return self.now_s

    def create_future(self) -> asyncio.Future[Any]:
        return asyncio.Future(loop=self)

    def create_task(
        self,
        coro: Generator[Any, None, T] | Coroutine[Any, Any, T],
        *,
        name: str | None = None,
        context: Context | None = None,
        **options: Any,
    ) -> asyncio.Task[T]:
        """Make a task whose operations are named by its place in the function."""
        context = context or copy_context()
        if self._tasks:  # the first one is the function itself
            here = context.run(task_path.get)
            context.run(task_path.set, here.task(getattr(coro, "__name__", "task")))
        task = asyncio.Task(coro, loop=self, name=name, context=context, **options)
        if len(self._tasks) >= self._prune_at:
            self._tasks = [one for one in self._tasks if not one[0].done()]
            self._prune_at = max(2 * len(self._tasks), _PRUNE_AT)
        self._tasks.append((task, context, coro))
        return task

    def run_in_executor(
        self, executor: Any, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> asyncio.Future[T]:
        """Call a function here and now, for an adapter that says so; a thread is refused."""
        if executor is not INLINE:
            _refuse("run_in_executor")(self)
        made: asyncio.Future[T] = self.create_future()
        try:
            made.set_result(func(*args))
        except Exception as error:  # noqa: BLE001  # as an executor does
            made.set_exception(error)
        return made

    def get_debug(self) -> bool:
        return False

    def get_task_factory(self) -> None:
        return None

    def is_running(self) -> bool:
        return _running() is self

    def is_closed(self) -> bool:
        return False

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Drop what nothing in the function has waited for, as it does not wait for it."""


# ---- operations

_is_taken = re.compile(r"(undo|t\d+(-|$))").match
"""Names in the log of an operation's inverse, and of an agent's turns and calls."""
_is_item = re.compile(r"[A-Za-z0-9_-]{1,64}").fullmatch


class BeginsAgain(BaseException):
    """End of a run of a function that has made a checkpoint."""


class Operation(asyncio.Future[T], Generic[T]):
    """Operation of a saga that a function has asked for; to be awaited, or handed to `asyncio`.

    It has begun, whether it is awaited or not. Cancelling it stops it.
    """

    item: str = ""
    is_used: bool = False
    left: Callable[[str], None]
    read: Callable[[Any], Any] | None = None
    """Makes the result of its JSON; None: the result is the JSON."""
    can_expire: bool = False
    codes: Mapping[type[BaseException], tuple[str, str]] = MappingProxyType({})
    """The codes of the errors of its tool; a failure is of the classes with its code, too."""
    by: str = ""
    """The key of the signal that the result is."""
    refuse: Callable[[str], None] | None = None
    """Refuses a signal that does not fit, and waits for another one."""
    is_answered: bool = False

    def cancel(self, msg: Any = None) -> bool:
        """Stop the operation: the function goes on without it."""
        is_cancelled = super().cancel(msg)
        if is_cancelled:
            self.left(self.item)
        return is_cancelled

    def __await__(self) -> Generator[Any, None, T]:
        self.is_used = True
        return super().__await__()

    __iter__ = __await__

    def add_done_callback(self, fn: Any, *, context: Any = None) -> None:
        self.is_used = True
        super().add_done_callback(fn, context=context)


class Callback(Operation[T]):
    """Operation that ends when a holder of its `token` reports to `POST /callbacks/{token}`.

    `url`: the whole address; empty if the deployment does not know its own.
    """

    token: str = ""
    url: str = ""


class Update(Generic[T]):
    """Signal that a function answers: its payload is `value`."""

    def __init__(self, value: T, answer: Callable[[Any], Operation[None]]) -> None:
        self.value = value
        self._answer = answer

    def answer(self, value: Any) -> Operation[None]:
        """Answer the sender, who gets `value` as JSON. It is in the log when that has been awaited."""
        return self._answer(value)


class FunctionRun:
    """A run of a function, as its session (run.py) and its context share it.

    `open`: its operations without a result, by item; `unheard`: those that ended before they were awaited.
    `asked`, `left` and `changes`: since it last waited. `checkpointed`: the state of its checkpoint.
    `published`: all that it has published, if that has changed. `path`: its own place. `lacks_tokens`: it
    has asked for a callback, and has no tokens.
    """

    def __init__(self) -> None:
        self.loop: asyncio.AbstractEventLoop | None = None
        self.now = 0
        self.checkpointed: list[Any] = []
        self.open: dict[str, Operation[Any]] = {}
        self.unheard: dict[str, Operation[Any]] = {}
        self.asked: list[AskedOperation] = []
        self.left: list[str] = []
        self.changes: list[str] = []
        self.published: dict[str, Any] | None = None
        self.lacks_tokens = False
        self.path = TaskPath()

    def leave(self, item: str) -> None:
        """Stop an operation: the function goes on without it."""
        if self.open.pop(item, None) is not None:
            self.left.append(item)


def item_of(label: str) -> str:
    """Return the name in the log of an operation with this label: letters, digits, `_` and `-`."""
    item = label.replace("[", "-").replace("]/", "--").replace("/", "--").replace("#", "-")
    if _is_taken(item):
        item = f"o-{item}"  # no label gives that: a `-` stands before a number or another one
    if not _is_item(item):
        item = f"{re.sub('[^A-Za-z0-9_-]', '-', item)[:40]}-{hashlib.sha256(label.encode()).hexdigest()[:16]}"
    return item
