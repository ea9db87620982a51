"""The golden logs of steps that wait for a circuit breaker, and for money."""

from __future__ import annotations

from baton.core.decide.outcomes import HELD, Outcome
from baton.core.failures.policy import PolicyChange
from baton.core.log.state import Held
from tests.core.build import Saga, done, failed, program, task
from tests.core.strategies import RETRY, ROLLBACK


def held() -> Saga:
    """One that waits twice, the second time after an attempt that has failed, and one that waits still."""
    saga = Saga(program(task("a"), task("b", "a"), failures={"any": PolicyChange(ladder=(RETRY, ROLLBACK))}))
    saga.go()
    saga.go(_waits(saga, "a", 1, "open"))
    saga.go(after_ms=60_000)
    saga.go(failed("a", "service_unavailable"))
    saga.now = saga.state.failing["a"].due_at
    saga.go(_waits(saga, "a", 2, "half_open"))
    saga.go(after_ms=60_000)
    saga.go(done("a", attempt=2))
    saga.go(_waits(saga, "b", 1, "open"))
    return saga


def short() -> Saga:
    """A step that waits for money twice, the second time after calls that it has paid for, and one that still waits."""
    saga = Saga(program(task("a"), task("b", "a")))
    saga.go()
    saga.go(_lacks(saga, "a", "budget_saga", 30_000))
    saga.go(after_ms=2_000)
    saga.go(_lacks(saga, "a", "budget_saga", 50_000, cost=20_000))
    saga.go(after_ms=6_000)
    saga.go(done("a"))
    saga.go(_lacks(saga, "b", "limit_cost", 1_234, first=False))
    return saga


def _lacks(saga: Saga, slot: str, limit: str, amount: int, *, cost: int = 0, first: bool = True) -> Outcome:
    wait = Held(breaker="", at=saga.now, until=saga.now + 2_000, limit=limit, amount=amount, first=first)
    at = saga.now
    return Outcome(slot=slot, attempt=1, started_at=at, ended_at=at, why=HELD, held=wait, cost=cost)


def _waits(saga: Saga, slot: str, attempt: int, state: str) -> Outcome:
    wait = Held(breaker="payments", at=saga.now, until=saga.now + 60_000, state=state)
    at = saga.now
    return Outcome(slot=slot, attempt=attempt, started_at=at, ended_at=at, why=HELD, held=wait)
