"""A fixed piece of pure Python whose CPU is measured beside a bench's, so that figures of different minutes compare.

The machine is shared: its processors are slower whenever its other work is many. That work slows the loop down as it
slows the engine down, so the ratio of the two stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from benchmarks.figures import LOOP, Sample

ROUNDS = 50


def _loop() -> int:
    """What an engine does all day: calls, texts, small dictionaries. About 1 ms on the machine of docs/benchmarks.md."""
    total = 0
    for first in range(0, 5_000, 40):
        known = {f"{number}": (number, str(number)) for number in range(first, first + 40)}
        total += sum(number for number, _ in known.values())
    return total


def loop_ms(rounds: int = ROUNDS) -> float:
    """CPU milliseconds of one loop."""
    before = time.process_time()
    for _ in range(rounds):
        _loop()
    return (time.process_time() - before) * 1_000 / rounds


def beside(measure: Callable[[], Sample]) -> Sample:
    """A sample, with what the loop took just before and just after it."""
    before = loop_ms()
    sample = measure()
    return {**sample, LOOP: (before + loop_ms()) / 2}
