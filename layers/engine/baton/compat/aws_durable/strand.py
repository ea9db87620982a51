"""Plain code on the event loop of a workflow function: a thread that runs while the loop waits for it.

Of a function's strands and its loop exactly one runs at a time, and each hands over at an operation. So plain
code takes the same way in every replay, as coroutines do.
"""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from baton.compat.aws_durable.exceptions import ExecutionError

T = TypeVar("T")
MOST_ENDS = 1_000
"""Most operations that abandoned code asks for until its thread is left alone."""


class Abandoned(BaseException):
    """End of plain code whose function is not in memory any more, or has gone on without it."""


class _Strand:
    def __init__(self, code: Callable[[], Any]) -> None:
        self._turn, self._loops_turn = threading.Semaphore(0), threading.Semaphore(0)
        self._code = code
        self.asked: Callable[[], Awaitable[Any]] | None = None
        self.result: Any = None
        self.error: BaseException | None = None
        self._answer: Any = None
        self._raised: BaseException | None = None
        context = copy_context()
        self._thread = threading.Thread(
            target=context.run, args=(self._run,), name="durable-handler", daemon=True
        )

    # ---- on the loop

    def begin(self) -> None:
        self._thread.start()
        self._loops_turn.acquire()

    def go_on(self, answer: Any, raised: BaseException | None) -> None:
        self._answer, self._raised = answer, raised
        self.asked = None
        self._turn.release()
        self._loops_turn.acquire()

    # ---- in the thread

    def _run(self) -> None:
        _current.set(self)
        try:
            self.result = self._code()
        except BaseException as error:  # noqa: BLE001  # handed to the loop
            self.error = error
        self._loops_turn.release()

    def wait_for(self, asked: Callable[[], Awaitable[Any]]) -> Any:
        self.asked = asked
        self._loops_turn.release()
        self._turn.acquire()
        answer, raised = self._answer, self._raised
        self._answer = self._raised = None
        if raised is not None:
            raise raised
        return answer


_current: ContextVar[_Strand] = ContextVar("current_strand")


async def run_plain(code: Callable[[], T]) -> T:
    """Run plain code, which waits for operations by `wait_for`, in a thread of its own."""
    strand = _Strand(code)
    strand.begin()
    try:
        while strand.asked is not None:
            answer, raised = None, None
            try:
                answer = await strand.asked()
            except Exception as error:  # noqa: BLE001  # raised in the plain code, where it waits
                raised = error
            strand.go_on(answer, raised)
    finally:
        for _ in range(MOST_ENDS):  # what it does in a `finally` is over, too
            if strand.asked is None:
                break
            strand.go_on(None, Abandoned())
    if strand.error is not None:
        raise strand.error
    result: T = strand.result
    return result


def wait_for(asked: Callable[[], Awaitable[T]]) -> T:
    """Wait in plain code for what `asked` returns on the loop; raise its exception."""
    strand = _current.get(None)
    if strand is None or threading.current_thread() is not strand._thread:  # noqa: SLF001  # its own module
        raise ExecutionError("an operation is asked for by the thread of the handler or of its branch only")
    result: T = strand.wait_for(asked)
    return result
