"""Stored log of a step whose tool records units of its work, and of a fork into the middle of them."""

from __future__ import annotations

from baton.core.log import events as ev
from tests.core.build import Saga, done, failed
from tests.core.test_journal import LARGE, of, unit


def units() -> Saga:
    """Three units, two of them in one entry, a failed attempt, a fork that keeps the first, and the end."""
    saga = of("a", "b")
    saga.go(unit("a", "x"), running=["a", "b"])
    saga.go(unit("a", "y"), unit("b", "w", output=LARGE), running=["a", "b"])
    saga.go(failed("a"), running=["b"])
    saga.put(ev.Forked(cut=2, branch=1, by="ann", at=saga.now), epoch=0)
    saga.epoch += 1
    saga.go(unit("a", "y"), running=["a", "b"])
    saga.go(done("a"), running=["b"])
    return saga


OF_UNITS = {"units": units}
