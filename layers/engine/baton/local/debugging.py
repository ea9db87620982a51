"""`breakpoint()` in a function of `baton up --debug`: it stops in the terminal of that command.

The function's own output is its log, so the debugger opens the terminal by its path. The time of event loops
stands still while a person looks, so that no timeout ends what is looked at.
"""

from __future__ import annotations

import asyncio
import os
import pdb  # this is the debugger
import sys
import threading
import time
from typing import Any

TERMINAL = "BATON_DEBUG_TERMINAL"
HOOK = f"{__name__}.stop"  # for PYTHONBREAKPOINT


class StoppedTime:
    """A monotonic clock without the time for which a debugger has stopped something."""

    def __init__(self) -> None:
        self._lost = 0.0
        self._stopped_at: float | None = None
        self._turn = threading.RLock()

    def __call__(self, *_: Any) -> float:
        stopped_at = self._stopped_at
        return (time.monotonic() if stopped_at is None else stopped_at) - self._lost

    def __enter__(self) -> None:
        self._turn.acquire()  # one at a time has the terminal
        self._stopped_at = time.monotonic()

    def __exit__(self, *_: object) -> None:
        now, began = time.monotonic(), self._stopped_at
        self._lost += now - (now if began is None else began)
        self._stopped_at = None
        self._turn.release()


loop_time = StoppedTime()


class Debugger(pdb.Pdb):
    """Python's debugger in the terminal of `baton up`."""

    def __init__(self, terminal: str) -> None:
        handle = os.open(terminal, os.O_RDWR | os.O_NOCTTY)
        # Ctrl-C is for `baton up`, and this may be no main thread.
        super().__init__(
            stdin=os.fdopen(os.dup(handle), encoding="utf-8"),
            stdout=os.fdopen(handle, "w", encoding="utf-8"),
            nosigint=True,
        )
        self.prompt = "(Pdb) "

    def interaction(self, *arguments: Any) -> None:
        with loop_time:
            super().interaction(*arguments)


def stop(*_: Any, **__: Any) -> None:
    """Stop in the caller, as `breakpoint()` does."""
    loops: Any = asyncio.BaseEventLoop  # of the loops that run, too
    loops.time = loop_time
    Debugger(os.environ[TERMINAL]).set_trace(sys._getframe(1))  # noqa: SLF001  # as pdb.set_trace does
