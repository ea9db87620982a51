"""A test run in which an `async` tool holds the event loop fails: deployed, all sagas of the invocation would stand still.

How it is noticed is in runtime/invocation/watch.py.
"""

from __future__ import annotations

from collections.abc import Callable

from baton.adapters.clock import SystemMeter
from baton.adapters.pulse import thread_pulse
from baton.core.expressions.durations import lasting
from baton.runtime.invocation.watch import Held, Watch, own_ms

LIMIT_MS = 1_000  # by the machine's clock: a thousand times what a tool needs between two awaits, also on a slow machine
SHOWN = 3
_DEBUGGERS = ("bdb.py:", "pydevd")


class LoopBlocked(Exception):
    """An `async` tool held the event loop too long."""


class Blockers:
    """The watchdog of a run. Tools are watched; what plain functions and the engine do in the loop counts for nothing."""

    def __init__(self, tell: Callable[[Held], None]) -> None:
        self._tell = tell
        self._found: list[Held] = []
        self.watch = Watch(LIMIT_MS, SystemMeter(), thread_pulse, self.hear)

    def hear(self, held: Held) -> None:
        """What the watchdog tells, in its thread."""
        is_stopped = any(name in line for line in held.stack for name in _DEBUGGERS)
        if held.call is not None and not is_stopped:
            self._found.append(held)
            self._tell(held)  # at once: it may hold the loop for ever

    def check(self) -> None:
        """Raises `LoopBlocked` for the first of them."""
        for call in (held.call for held in self._found if held.call is not None):
            where = f"`{call.tool}` (node `{call.context.node}`)"
            raise LoopBlocked(
                f"{where} held the event loop for {lasting(own_ms(call.context.blocked))}. Deployed, every other saga of "
                "the invocation stands still meanwhile, and no timeout stops it. Let it await instead of blocking, or make "
                "it a plain `def`: that runs outside of the loop. It was at "
                + "\n  ".join(["", *self._found[0].stack])
            )
