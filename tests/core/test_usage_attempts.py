"""What attempts cost that failed: their entries, the looks and messages that bring the next one, what the tool spent."""

from __future__ import annotations

from baton.core.failures.policy import PolicyChange
from baton.core.log import events as ev
from tests.core.build import T0, Saga, done, program, task
from tests.core.failing import broken, schedule
from tests.core.spending import FINISH, START, TAKE, TO_WAIT, next_turn, used, writes
from tests.core.strategies import ASK_USER, ROLLBACK


def failing(pause: int) -> Saga:
    saga = Saga(program(task("a"), failures={"any": schedule(pause)}))
    saga.go(broken("a", cost=300))
    return saga


def test_an_attempt_that_failed_costs_one_entry_with_what_is_done_about_it() -> None:
    saga = failing(0)
    saga.go(done("a", attempt=2))
    assert [len(entry.events) for entry in saga.entries] == [1, 2, 2]
    assert writes(saga) == START + TAKE + FINISH + 2


def test_what_the_tool_spent_is_spent_whether_it_succeeded_or_not() -> None:
    assert failing(0).state.money.spent == 300


def test_a_retry_in_a_later_invocation_costs_a_release_a_message_and_a_take() -> None:
    soon, late = failing(5_000), failing(5_000)
    soon.go(done("a", attempt=2), after_ms=5_000)
    next_turn(late)
    late.go(done("a", attempt=2), after_ms=5_000)
    assert writes(late) - writes(soon) == TO_WAIT + TAKE
    assert used(late).sqs_requests - used(soon).sqs_requests == 3


def test_a_question_is_due_when_it_expires_and_a_parked_saga_when_its_time_has_come() -> None:
    saga = Saga(program(task("a"), failures={"any": PolicyChange(ladder=(ASK_USER, ROLLBACK))}))
    saga.go(broken("a"))
    next_turn(saga)
    asked = used(saga, 2).sqs_requests
    saga.put(ev.Parked(code="budget_spent", message="m", until=T0 + 1_000))
    next_turn(saga)
    assert used(saga, 3).sqs_requests == asked + 3
    saga.put(ev.Resumed(by="time", at=T0))
    saga.put(ev.Parked(code="escalated", message="m"))
    assert used(saga, 4).sqs_requests == asked + 3
