"""The tools that run the code of a handler's steps in the process that runs the handler."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable
from typing import Any

from baton.compat.aws_durable.config import uniform
from baton.core.effects.toolspec import ONCE, PURE
from baton.ports import StepContext, StepFailure
from baton.tools.define import Registry, Tool, tool

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
    """A tool of plain code that runs in a thread of the worker: a helper process does not have the closure."""

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
    """Record that an attempt that may run once was cut off: the strategy of the step decides what comes next."""
    return {"happened": True, "result": INTERRUPTED}


def add_tools(registry: Registry) -> None:
    """Add the tools of steps to a registry."""
    own = Registry()
    tool(STEP, timeout="14m", registry=own)(run_step)
    tool(STEP_ONCE, timeout="14m", effect=ONCE, verify=STEP_INTERRUPTED, registry=own)(run_step)
    tool(STEP_INTERRUPTED, effect=PURE, registry=own)(step_interrupted)
    for made in own.values():
        registry.add(_InWorker(**{one: getattr(made, one) for one in made.__dataclass_fields__}))
