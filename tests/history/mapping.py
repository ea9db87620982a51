"""Stored logs of maps: one that is done although an item fails, whose results are put together on the way, and one that has failed."""

from __future__ import annotations

from tests.core.build import Saga, done, failed
from tests.core.nodes.maps import map_of


def mapped() -> Saga:
    """More items than are put together at a time."""
    saga = Saga(map_of(tolerated=1, at_once=60), {"l": [f"i{n}" for n in range(130)]})
    saga.go()
    for first in (0, 60):
        outcomes = [done(f"m#{n}", {"n": n}) for n in range(first, first + 60) if n != 7]
        saga.go(*outcomes, *([failed("m#7")] if not first else []))
    saga.go(*[done(f"m#{n}") for n in range(120, 130)])
    return saga


def unmapped() -> Saga:
    """The second failure is one too many: what catches it says what became of the items."""
    saga = Saga(map_of(tolerated=1, at_once=3, caught=True), {"l": [5, 6, 7, 8, 9]})
    saga.go()
    saga.go(failed("m#0"), running=["m#1", "m#2"])
    saga.go(done("m#1", 6), running=["m#2", "m#3"])
    saga.go(failed("m#2"), running=["m#3", "m#4"])
    return saga


def late() -> Saga:
    """With the first success the saga goes on; of the others one fails, and one begins later."""
    saga = Saga(map_of(need=1, rest="beside", at_once=2), {"l": [5, 6, 7]})
    saga.go()
    saga.go(done("m#1", 6), running=["m#0"])
    saga.go(failed("m#0"), running=["m#2"])
    saga.go(done("m#2", 7))
    saga.go()
    return saga


OF_MAPS = {"mapped": mapped, "unmapped": unmapped, "late-items": late}
