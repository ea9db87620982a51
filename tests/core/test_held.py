"""Steps that wait for a circuit breaker: without an attempt, until a moment; or what a document does instead."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.decide.outcomes import HELD, Outcome
from baton.core.decide.program import Program
from baton.core.failures.failover import Action, Match, Policy
from baton.core.failures.policy import PolicyChange, RetryChange
from baton.core.graph.graph import Catch, Graph
from baton.core.log import events as ev
from baton.core.log.state import Held, status_of
from baton.core.nodes.registry import KINDS
from baton.core.read.metrics import Figures
from tests.core.asked import steps_of
from tests.core.build import Saga, done, program, task
from tests.core.failing import attempts, broken, chosen
from tests.core.strategies import RETRY, ROLLBACK
from tests.kit.sentences import Says

MINUTE = 60_000
PATIENT = PolicyChange(
    retry=RetryChange(max_attempts=9, base_ms=1_000, max_delay_ms=1_000, budget_ms=30_000),
    ladder=(RETRY, ROLLBACK),
)


def held(saga: Saga, slot: str = "a", attempt: int = 1, for_ms: int = MINUTE) -> Outcome:
    wait = Held(breaker="payments", at=saga.now, until=saga.now + for_ms)
    return Outcome(slot=slot, attempt=attempt, started_at=saga.now, ended_at=saga.now, why=HELD, held=wait)


def waits(saga: Saga) -> list[ev.StepHeld]:
    return [event for entry in saga.entries for event in entry.events if isinstance(event, ev.StepHeld)]


def test_it_waits_as_a_timer_and_makes_its_first_attempt_then() -> None:
    saga = Saga(program(task("a")))
    saga.go()
    decision = saga.go(held(saga))
    assert (steps_of(decision), decision.due) == ((), saga.now + MINUTE)
    assert status_of(saga.state, saga.program) == "waiting"
    assert attempts(saga.go(after_ms=MINUTE - 1)) == []
    assert attempts(saga.go(after_ms=1)) == [("a", 1)]
    saga.go(done("a"))
    assert saga.state.ended is not None
    assert saga.state.held == {}


def test_it_can_be_held_again_and_again() -> None:
    saga = Saga(program(task("a")))
    for _ in range(20):
        saga.go()
        saga.go(held(saga))
        saga.now += MINUTE
    assert attempts(saga.go()) == [("a", 1)]
    assert len(waits(saga)) == 20


def test_a_step_that_has_failed_before_keeps_its_attempts_and_the_time_for_them() -> None:
    saga = Saga(program(task("a"), failures={"any": PATIENT}))
    saga.go()
    saga.go(broken("a", at=saga.now))
    saga.now = saga.state.failing["a"].due_at
    decision = saga.go(held(saga, attempt=2, for_ms=10 * MINUTE))
    assert decision.due == saga.now + 10 * MINUTE
    assert attempts(saga.go(after_ms=10 * MINUTE)) == [("a", 2)]
    saga.go(broken("a", attempt=2, at=saga.now))
    assert chosen(saga) == [RETRY, RETRY], "ten minutes of waiting are no pause of its retries"
    assert saga.state.held == {}


def test_a_wait_that_is_told_again_counts_once() -> None:
    saga = Saga(program(task("a"), failures={"any": PATIENT}))
    saga.go()
    saga.go(broken("a", at=saga.now))
    saga.go(held(saga, attempt=2))
    before = saga.state
    saga.put(waits(saga)[0])
    assert saga.state.failing == before.failing
    saga.put(replace(waits(saga)[0], node="gone"))
    assert saga.state.held == before.held


def test_a_wait_is_over_when_the_saga_is_cancelled() -> None:
    saga = Saga(program(task("a")))
    saga.go()
    saga.go(held(saga))
    saga.cancel()
    saga.go()
    assert saga.state.ended is not None
    assert saga.state.ended.status == "cancelled"


def test_a_saga_that_is_stopping_holds_nothing() -> None:
    saga = Saga(program(task("a")))
    saga.go()
    saga.cancel(grace_ms=MINUTE)
    saga.go(held(saga))
    assert waits(saga) == []


def test_what_the_saga_no_longer_waits_for_is_not_held() -> None:
    saga = Saga(program(task("a"), task("b", "a")))
    saga.go()
    saga.go(done("a"))
    saga.go(held(saga, "a"))
    assert waits(saga) == []
    saga.go(replace(held(saga, "b"), held=None))
    assert waits(saga) == []


def test_a_fork_asks_again_at_once() -> None:
    saga = Saga(program(task("a")))
    saga.go()
    saga.go(held(saga))
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ann", at=saga.now))
    assert attempts(saga.go()) == [("a", 1)]


def with_policies(*policies: Policy, **more: object) -> Saga:
    node = task("a", failover=policies, **more)
    saga = Saga(Program(Graph(name="w", nodes=(node,), failures={"any": PATIENT}), KINDS))
    saga.go()
    return saga


def test_a_policy_that_calls_another_tool_is_taken_at_once(says: Says) -> None:
    saga = with_policies(Policy(name="other", when=Match(codes=("breaker_open",)), then=Action(tool="u")))
    decision = saga.go(held(saga))
    assert [step.way.tool for step in steps_of(decision) if step.way is not None] == ["u"]
    (failed,) = (
        event.failure
        for entry in saga.entries
        for event in entry.events
        if isinstance(event, ev.AttemptFailed)
    )
    assert failed.code == "breaker_open"
    says(failed.message)


def test_a_policy_for_other_failures_or_that_only_tries_again_lets_it_wait() -> None:
    other = Policy(name="other", when=Match(codes=("timeout",)), then=Action(tool="u"))
    again = Policy(name="again", then=Action(strategy=RETRY))
    for policy in (other, again):
        saga = with_policies(policy)
        saga.go(held(saga))
        assert len(waits(saga)) == 1


def test_a_policy_that_is_used_up_lets_it_wait() -> None:
    saga = with_policies(Policy(name="other", then=Action(tool="u")))
    saga.go(broken("a", at=saga.now))
    saga.go(held(saga, attempt=2))
    assert len(waits(saga)) == 1


def test_a_rule_for_the_code_is_followed() -> None:
    for node, failures in (
        (task("a", failures={"breaker_open": PolicyChange(ladder=(ROLLBACK,))}), {}),
        (task("a"), {"breaker_open": PolicyChange(ladder=(ROLLBACK,))}),
    ):
        saga = Saga(program(node, failures=failures))
        saga.go()
        saga.go(held(saga))
        assert saga.state.ended is not None
        assert saga.state.ended.failure is not None
        assert saga.state.ended.failure.code == "breaker_open"


def test_a_catch_that_names_the_code_goes_on_at_once_and_any_other_waits() -> None:
    def caught(*codes: str) -> Saga:
        first = task("a", catch=(Catch(codes=codes, then=("b",)),))
        first = replace(first, after=("b",))
        graph = Graph(name="w", nodes=(first, task("b", "a")), failures={"any": PATIENT})
        saga = Saga(Program(graph, KINDS))
        saga.go()
        saga.go(held(saga))
        return saga

    assert waits(caught()) != []
    saga = caught("breaker_open")
    assert waits(saga) == []


def test_a_wait_for_a_breaker_is_counted() -> None:
    saga = Saga(program(task("a")))
    saga.go()
    saga.go(held(saga))
    figures = Figures()
    figures.heard("w", waits(saga), saga.now)
    told = figures.take(saga.now + MINUTE, MINUTE, "worker")
    assert {one["Held"] for one in told if "Held" in one} == {1}
