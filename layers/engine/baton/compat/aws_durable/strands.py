"""Plain code of durable handlers: on the event loop of a workflow function, and in the tools of their steps.

A strand is a thread that runs while the loop waits for it. Of a function's strands and its loop exactly one
runs at a time, and each hands over at an operation. So plain code takes the same way in every replay, as
coroutines do.
"""

from __future__ import annotations

import hashlib
import itertools
import threading
from collections.abc import Awaitable, Callable
from contextvars import ContextVar, copy_context
from typing import Any, TypeVar

from baton.compat.aws_durable.options import ExecutionError, uniform
from baton.core.effects.toolspec import ONCE, PURE
from baton.ports import StepContext, StepFailure
from baton.tools.define import Registry, Tool, tool

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


# ---- the tools of steps

STEP, STEP_ONCE, STEP_INTERRUPTED, ERROR = (
    "durable.step",
    "durable.step_once",
    "durable.step_interrupted",
    "step_error",
)
MISSING = {"missing": True}
"""Result of a step whose code is not in this process: it has not begun."""
INTERRUPTED = {"interrupted": True}
"""Result of a step that may run once, has begun, and did not say how it ended."""
BODIES: dict[tuple[str, str, str], Callable[[], dict[str, Any]]] = {}
"""Code of the steps that handlers in this process wait for, by tenant, saga and place."""


class _InWorker(Tool):
    """Tool of plain code that runs in a thread of the worker: a helper process does not have the closure."""

    @property
    def needs_process(self) -> bool:
        """False always."""
        return False


def run_step(body: str, context: StepContext) -> dict[str, Any]:
    """Run a step of a durable handler."""
    run = BODIES.pop((context.tenant, context.saga, body), None)
    if run is None:
        return MISSING
    numbers = itertools.count()
    token = uniform.set(lambda: _drawn(f"{context.idempotency_key}/{next(numbers)}"))
    try:
        return run()
    finally:
        uniform.reset(token)


def _drawn(text: str) -> float:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:6], "big") / (1 << 48)


def failure_of(error: Exception) -> StepFailure:
    """Return the failure of a step that has raised this for the last time."""
    return StepFailure(ERROR, f"{type(error).__name__}: {error}", kind="permanent")


def step_interrupted() -> dict[str, Any]:
    """Say that an attempt that may run once was cut off: the step's strategy decides about the next."""
    return {"happened": True, "result": INTERRUPTED}


def add_tools(registry: Registry) -> None:
    """Add the tools of steps to a registry."""
    own = Registry()
    tool(STEP, timeout="14m", registry=own)(run_step)
    tool(STEP_ONCE, timeout="14m", effect=ONCE, verify=STEP_INTERRUPTED, registry=own)(run_step)
    tool(STEP_INTERRUPTED, effect=PURE, registry=own)(step_interrupted)
    for made in own.values():
        registry.add(_InWorker(**{one: getattr(made, one) for one in made.__dataclass_fields__}))
