"""Steps that wait for a circuit breaker, or for money: without an attempt, until a moment; or what a document does instead."""

from __future__ import annotations

from itertools import pairwise

from msgspec.structs import replace

from baton.core.decide.outcomes import HELD, Outcome
from baton.core.decide.program import Program
from baton.core.decide.spending import wait_for_money
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


# ---- money


def short(saga: Saga, slot: str = "a", attempt: int = 1, *, cost: int = 0, first: bool = True) -> Outcome:
    wait = wait_for_money(saga.state, slot, saga.now, "budget_saga", 30_000, first=first)
    at = saga.now
    return Outcome(slot=slot, attempt=attempt, started_at=at, ended_at=at, why=HELD, held=wait, cost=cost)


def test_it_waits_for_money_as_a_timer_that_keeps_no_invocation_and_makes_its_first_attempt_then() -> None:
    saga = Saga(program(task("a")))
    saga.go()
    decision = saga.go(short(saga))
    (wait,) = waits(saga)
    assert (wait.limit, wait.amount, wait.first, wait.breaker) == ("budget_saga", 30_000, True, "")
    assert (steps_of(decision), decision.due, decision.again) == ((), wait.until, None)
    assert status_of(saga.state, saga.program) == "waiting"
    assert saga.state.held["a"].amount == 30_000
    assert attempts(saga.go(after_ms=wait.until - saga.now - 1)) == []
    assert attempts(saga.go(after_ms=1)) == [("a", 1)]
    saga.go(done("a"))
    assert saga.state.held == {}


def test_what_an_attempt_has_spent_before_it_waits_is_written_in_the_same_entry() -> None:
    saga = Saga(program(task("a")))
    saga.go()
    saga.go(short(saga, cost=500))
    *_, spent, wait = saga.entries[-1].events
    assert isinstance(spent, ev.StepInterrupted)
    assert (spent.why, spent.cost) == ("money", 500)
    assert isinstance(wait, ev.StepHeld)
    assert saga.state.money.spent == 500
    assert saga.state.counts.interrupted == 0


def pauses(saga: Saga, count: int) -> list[int]:
    found = []
    for _ in range(count):
        saga.go()
        saga.go(short(saga))
        wait = saga.state.held["a"]
        found.append(wait.until - wait.at)
        saga.now = wait.until
    return found


def test_pauses_for_money_stay_a_part_of_the_time_waited_and_differ_from_saga_to_saga() -> None:
    sagas = [Saga(program(task("a")), saga=f"s{number}") for number in range(20)]
    found = [pauses(saga, 80) for saga in sagas]
    first = [one[0] for one in found]
    assert (min(first) >= 1_000, max(first) < 2_000) == (True, True)
    for one in found:
        assert all(before <= pause <= 1.5 * before + 1 for before, pause in pairwise(one))
        assert all(one[at] < 0.5 * sum(one[:at]) for at in range(8, len(one)))
        assert one[-1] == 900_000
    assert len({pause // 10 for pause in first}) > 12, "of a hundred hundredths of a second"
    assert pauses(Saga(program(task("a")), saga="s1"), 80) == found[1], (
        "the same log waits for the same times"
    )


def test_a_wait_for_money_after_one_for_a_breaker_begins_with_a_short_pause() -> None:
    saga = Saga(program(task("a")))
    saga.go()
    saga.go(held(saga, for_ms=10 * MINUTE))
    saga.go(after_ms=10 * MINUTE)
    saga.go(short(saga))
    wait = saga.state.held["a"]
    assert wait.until - wait.at < 2_000


def test_waiting_for_money_takes_no_attempt_and_no_time_from_the_retries() -> None:
    saga = Saga(program(task("a"), failures={"any": PATIENT}))
    saga.go()
    saga.go(broken("a", at=saga.now))
    saga.now = saga.state.failing["a"].due_at
    for _ in range(10):
        saga.go()
        saga.go(short(saga, attempt=2))
        saga.now = saga.state.held["a"].until
    assert attempts(saga.go()) == [("a", 2)]
    saga.go(broken("a", attempt=2, at=saga.now))
    assert chosen(saga) == [RETRY, RETRY]
    assert saga.state.held == {}


def test_a_rule_for_breakers_says_nothing_of_money() -> None:
    saga = Saga(program(task("a"), failures={"breaker_open": PolicyChange(ladder=(ROLLBACK,))}))
    saga.go()
    saga.go(short(saga))
    assert len(waits(saga)) == 1


def test_a_saga_that_stops_waits_for_no_money_and_has_what_was_spent() -> None:
    saga = Saga(program(task("a")))
    saga.go()
    saga.cancel(grace_ms=MINUTE)
    saga.go(short(saga, cost=500))
    assert waits(saga) == []
    assert saga.state.money.spent == 500


def test_what_was_spent_before_a_wait_counts_where_the_saga_no_longer_waits_for_it() -> None:
    saga = Saga(program(task("a"), task("b", "a")))
    saga.go()
    saga.go(done("a"))
    saga.go(short(saga, cost=500))
    assert waits(saga) == []
    assert saga.state.money.spent == 500
