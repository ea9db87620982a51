"""The shape of a log whose saga lasts for so many days, for make.py."""

from __future__ import annotations

from tests.core.build import T0, Saga, done, program, task, wait


def lasting() -> Saga:
    """It may last so long, expires later, and names a value by where that is until then; its days come to an end."""
    day = 86_400_000
    saga = Saga(program(task("a"), wait("b", "a", signal="go")), ends_by=T0 + 10 * day, expires=T0 + 15 * day)
    saga.go()
    saga.go(done("a", ref=f"cas://sha256/{'0' * 64}@16d1294"))
    saga.now = T0 + 10 * day
    saga.go()
    return saga
