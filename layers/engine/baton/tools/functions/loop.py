"""The event loop of a workflow function: it has no clock and no selector, only operations.

Everything of asyncio that waits for tasks, futures and times works in it. A timer is an operation of the
saga. What would wait for a socket, a thread or a process is refused: a step does that.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, copy_context
from typing import Any, NoReturn

MOST_TURNS = 100_000
"""Most turns of the loop between two waits: a function that has more does not wait for anything."""


class FunctionDefect(Exception):
    """Mistake in the code of a function, found by the engine. The text says what to write instead."""


class Branch:
    """A place in a function: its own body, or a task of it. `path` names it; it counts the names in it."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        self._counts: dict[str, int] = {}

    def number(self, name: str) -> int:
        """Return how often this name was asked for, with this time."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        return count

    def task(self, name: str) -> Branch:
        """Return the branch of a new task in this one."""
        return Branch(f"{self.path}{name}[{self.number(f'{name}[]')}]/")


branch: ContextVar[Branch] = ContextVar("branch")


class _Idle:
    """Selector that stops its loop as soon as nothing is ready."""

    def __init__(self) -> None:
        self.loop: FunctionLoop | None = None

    def select(self, timeout: float | None) -> list[Any]:
        assert self.loop is not None
        self.loop.turned(is_idle=timeout != 0)
        return []


class FunctionLoop(asyncio.BaseEventLoop):
    """Event loop of one function. `timer` makes an operation of the time after so many seconds."""

    def __init__(self, timer: Callable[[float], asyncio.Future[None]]) -> None:
        super().__init__()
        self._selector = _Idle()
        self._selector.loop = self
        self._timer = timer
        self._timers: dict[asyncio.TimerHandle, asyncio.Future[None]] = {}
        self._turns = 0
        self._tasks: list[tuple[asyncio.Task[Any], Coroutine[Any, Any, Any]]] = []
        self._is_forgotten = False
        self.now_s = 0.0
        self.set_task_factory(_task_in_a_branch)
        self.set_exception_handler(lambda _, __: None)

    def turned(self, *, is_idle: bool) -> None:
        """Stop when nothing is ready; raise `FunctionDefect` when that never happens."""
        self._turns += 1
        if is_idle:
            self.stop()
        elif self._turns > MOST_TURNS:
            raise FunctionDefect("it goes round without waiting for an operation")

    def run_until_idle(self) -> None:
        """Run what is ready, and all that follows. To be called outside of the tasks of another loop."""
        self._turns = 0
        outer = asyncio._get_running_loop()
        asyncio._set_running_loop(None)
        try:
            self.run_forever()
        finally:
            asyncio._set_running_loop(outer)

    def forget(self) -> None:
        """Close the coroutines of the function: nothing runs or waits in this loop any more."""
        self._is_forgotten = True
        for task, coroutine in self._tasks:
            if not task.done():
                with suppress(BaseException):  # of their `finally`
                    coroutine.close()
        self._tasks.clear()
        self._timers.clear()
        self._ready.clear()  # type: ignore[attr-defined]  # of BaseEventLoop
        self.close()

    def is_closed(self) -> bool:
        return False  # tasks that are forgotten may still be freed

    def call_soon(
        self, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.Handle:
        if self._is_forgotten:
            return asyncio.Handle(callback, args, self, context)
        return super().call_soon(callback, *args, context=context)

    def time(self) -> float:
        return self.now_s

    def call_later(
        self, delay: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        return self.call_at(self.now_s + delay, callback, *args, context=context)

    def call_at(
        self, when: float, callback: Callable[..., Any], *args: Any, context: Context | None = None
    ) -> asyncio.TimerHandle:
        """Call `callback` at a time, for which the saga waits."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if when <= self.now_s:
            self.call_soon(handle._run)
            return handle
        timer = self._timers[handle] = self._timer(when - self.now_s)

        def over(_: asyncio.Future[None]) -> None:
            if self._timers.pop(handle, None) is not None and not handle.cancelled():
                handle._run()

        timer.add_done_callback(over)
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        if (timer := self._timers.pop(handle, None)) is not None:
            timer.cancel()

    def _process_events(self, event_list: Any) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


def _task_in_a_branch(
    loop: FunctionLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    """Make a task whose operations are named by its place in the function."""
    context: Context = options.pop("context", None) or copy_context()
    if loop._tasks:  # the first one is the function itself
        here = context.run(branch.get)
        context.run(branch.set, here.task(getattr(coroutine, "__name__", "task")))
    task = asyncio.Task(coroutine, loop=loop, context=context, **options)
    loop._tasks.append((task, coroutine))
    return task


def _refuse(what: str) -> Callable[..., NoReturn]:
    def refused(self: FunctionLoop, *args: Any, **options: Any) -> NoReturn:
        raise FunctionDefect(f"a workflow function waits for operations only, not for {what}: put it in a step")

    return refused


for _names, _what in (
    ("run_in_executor", "a thread"),
    ("call_soon_threadsafe", "a thread"),
    ("subprocess_exec subprocess_shell", "a process"),
    (
        "getaddrinfo getnameinfo create_connection create_datagram_endpoint create_server create_unix_connection "
        "create_unix_server sock_recv sock_recv_into sock_sendall sock_connect sock_accept sock_sendfile start_tls "
        "connect_accepted_socket add_reader add_writer connect_read_pipe connect_write_pipe",
        "a connection",
    ),
):
    for _name in _names.split():
        setattr(FunctionLoop, _name, _refuse(_what))
