"""Cancelling: graceful lets running steps end within their grace, forced does not; nothing new starts. So it is with a
failure, and neither waits for what a join has stopped."""

from __future__ import annotations

import pytest

from baton.core.decide.decision import Decision, StopSteps
from baton.core.log import events as ev
from baton.core.log.state import status_of
from tests.core.build import T0, Saga, chain, done, failed, program, ready, task, wait
from tests.core.told import of


def test_a_cancel_with_nothing_running_ends_the_saga_at_once() -> None:
    saga = Saga(chain(2))
    saga.cancel(grace_ms=30_000)
    saga.go()
    assert saga.state.ended == ev.SagaEnded(status="cancelled", failure=ev.Failure("cancelled", "enough"))


def test_a_graceful_cancel_lets_running_steps_end_and_starts_nothing_after_them() -> None:
    saga = Saga(program(task("a"), task("b"), task("c", "a")))
    saga.go()
    saga.cancel(grace_ms=1_000)
    assert saga.go(running=["a", "b"]) == Decision(due=T0 + 1_000)
    assert saga.go(done("a"), running=["b"], after_ms=500) == Decision(due=T0 + 1_000)
    assert saga.state.counts.steps == 1
    saga.go(done("b"), after_ms=100)
    assert saga.kinds == ["step_succeeded", "saga_ended"]
    assert status_of(saga.state) == "cancelled"


@pytest.mark.parametrize(("after_ms", "abort"), [(999, False), (1_000, True), (5_000, True)])
def test_when_the_grace_is_over_running_steps_must_stop(after_ms: int, abort: bool) -> None:
    saga = Saga(chain(1))
    saga.go()
    saga.cancel(grace_ms=1_000)
    decision = saga.go(running=["n0"], after_ms=after_ms)
    assert (decision.of(StopSteps) == StopSteps()) is abort
    assert saga.state.ended is None


def test_a_forced_cancel_stops_running_steps_at_once() -> None:
    saga = Saga(chain(1))
    saga.go()
    saga.cancel(grace_ms=0)
    assert saga.go(running=["n0"]) == Decision(commands=(StopSteps(),))
    saga.go()
    assert status_of(saga.state) == "cancelled"


def test_a_second_cancel_shortens_the_grace() -> None:
    saga = Saga(chain(1))
    saga.cancel(grace_ms=60_000)
    assert saga.go(running=["n0"], after_ms=10).of(StopSteps) is None
    saga.cancel(grace_ms=0)
    assert saga.go(running=["n0"]).of(StopSteps) == StopSteps()


def test_a_cancelled_saga_is_cancelled_even_if_its_last_step_succeeds() -> None:
    saga = Saga(chain(1))
    saga.cancel(grace_ms=1_000)
    saga.go(done("n0"))
    assert status_of(saga.state) == "cancelled"


def test_a_cancel_goes_before_a_failure() -> None:
    saga = Saga(program(task("a"), task("b")))
    saga.cancel(grace_ms=1_000)
    saga.go(failed("a"), running=["b"])
    saga.go(failed("b"))
    assert status_of(saga.state) == "cancelled"


def test_a_cancelled_saga_opens_no_wait_and_a_waiting_one_ends() -> None:
    saga = Saga(program(wait("w", signal="yes"), task("a", "w")))
    saga.go()
    saga.signal("yes")
    saga.cancel()
    decision = saga.go()
    assert ready(decision) == []
    assert saga.kinds == ["saga_ended"]


def test_a_parked_saga_can_be_cancelled() -> None:
    saga = Saga(chain(1))
    for _ in range(3):
        saga.die()
    saga.go()
    assert status_of(saga.state) == "parked"
    saga.cancel()
    assert status_of(saga.state) == "running"
    saga.go()
    assert status_of(saga.state) == "cancelled"


RACE = """
fast: {tool: t}
slow: {tool: t}
first: {%s, after: [fast, slow], join: any}
"""


def test_a_saga_that_fails_waits_for_nothing_that_a_join_has_stopped() -> None:
    saga = of(RACE % "wait: {until: '${input}'}", "tomorrow")
    saga.go(done("fast"), running=["slow"])
    assert saga.kinds == ["step_succeeded", "join_fired", "node_skipped", "step_failed", "saga_ended"]
    assert status_of(saga.state) == "failed"


def test_a_condition_that_breaks_behind_an_early_join_fails_its_node_once() -> None:
    saga = of(RACE % "value: 1, when: 'input > 5'", "text")
    saga.go(done("fast"), running=["slow"])
    assert saga.kinds == ["step_succeeded", "join_fired", "node_skipped", "step_failed", "saga_ended"]
