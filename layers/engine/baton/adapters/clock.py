"""The wall clock and randomness: the only file that may import `time`, `secrets` or `random`.

A clock or a seed that a test controls is in the tests.
"""

from __future__ import annotations

import random
import secrets
import signal
import threading
import time
from collections.abc import Callable
from contextlib import suppress

_NS_PER_MS = 1_000_000


class SystemClock:
    """The machine's clock, UTC."""

    def now(self) -> int:
        return time.time_ns() // _NS_PER_MS


class SystemMeter:
    """The machine's steady clock, and the processor time of this process."""

    def passed(self) -> int:
        return time.monotonic_ns() // _NS_PER_MS

    def worked(self) -> int:
        return time.process_time_ns() // _NS_PER_MS


class SystemWatchdog:
    """The kernel's timer of this process. Its signal ends the process also where a call blocks the event loop
    or holds the interpreter; no child has the timer.
    """

    def __init__(self) -> None:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})

    def set(self, ms: int | None) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0 if ms is None else ms / 1_000)


class SystemEntropy:
    """The machine's randomness: unguessable tokens, and jitter that need not be."""

    def token(self, bits: int) -> str:
        if bits <= 0 or bits % 8:
            raise ValueError(f"{bits} bits are not whole bytes")
        return secrets.token_hex(bits // 8)

    def uniform(self) -> float:
        return random.random()


def thread_pulse(look: Callable[[], None], every_ms: int) -> Callable[[], None]:
    """Call `look` every `every_ms` in a thread of its own. Return the function that stops it."""
    over = threading.Event()

    def run() -> None:
        with suppress(RuntimeError):  # the loop that it looks at is closed
            while not over.wait(every_ms / 1_000):
                look()

    with suppress(RuntimeError):  # the process has as many threads as it may have
        threading.Thread(target=run, name="watchdog", daemon=True).start()
    return over.set
