"""The `Pulse` of a watchdog: a thread that looks at something every so often, until it is stopped.

A process that cannot start one more thread is not watched; nothing fails for that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress


def thread_pulse(look: Callable[[], None], every_ms: int) -> Callable[[], None]:
    over = threading.Event()

    def run() -> None:
        with suppress(RuntimeError):  # the loop that it looks at is closed
            while not over.wait(every_ms / 1_000):
                look()

    with suppress(RuntimeError):  # the process has as many threads as it may have
        threading.Thread(target=run, name="watchdog", daemon=True).start()
    return over.set
