"""The golden log of steps that wait for a circuit breaker."""

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


def _waits(saga: Saga, slot: str, attempt: int, state: str) -> Outcome:
    wait = Held(breaker="payments", at=saga.now, until=saga.now + 60_000, state=state)
    at = saga.now
    return Outcome(slot=slot, attempt=attempt, started_at=at, ended_at=at, why=HELD, held=wait)
