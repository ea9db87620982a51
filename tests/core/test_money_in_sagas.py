"""What money does to a saga: what begins, what waits for what is under way, what parks, and who is told."""

from __future__ import annotations

import msgspec
import pytest
from msgspec.structs import replace

from baton.core.decide.outcomes import MONEY, Outcome
from baton.core.decide.program import Program
from baton.core.decide.spending import SAGA_SPENT, USER_SPENT, WARNING, SpendingLimits
from baton.core.log import events as ev
from baton.core.log.state import status_of
from tests.core.asked import notices_of
from tests.core.build import T0, Saga, child, done, program, ready, task
from tests.core.failing import broken

DOLLAR = 1_000_000
HALT = ev.Parked(code=USER_SPENT, message="all is spent", until=T0 + 60_000)


def saga_with(graph: Program, dollars: float = 1) -> Saga:
    saga = Saga(graph)
    saga.terms = SpendingLimits(saga=round(dollars * DOLLAR))
    return saga


def paid(outcome: Outcome, dollars: float) -> Outcome:
    return replace(outcome, cost=round(dollars * DOLLAR))


def halted(cost: int = 0) -> Outcome:
    """An attempt that the user's day had no room for."""
    told = ev.Notice(key="n", to="user", code=USER_SPENT, message="all is spent")
    return Outcome(
        slot="a", attempt=1, started_at=T0, ended_at=T0, cost=cost, halt=HALT, why=MONEY, notices=(told,)
    )


def test_what_there_is_no_money_for_beside_what_is_under_way_waits_for_that() -> None:
    saga = saga_with(program(task("a", cost=600_000), task("b", cost=600_000)))
    assert ready(saga.go()) == ["a"]
    assert ready(saga.go(running=["a"])) == []
    assert saga.state.parked is None
    assert ready(saga.go(paid(done("a"), 0.3))) == ["b"]


def test_what_there_is_no_money_for_at_all_parks_the_saga_and_a_user_is_told() -> None:
    saga = saga_with(program(task("a"), task("b", "a", cost=600_000)))
    decision = saga.go(paid(done("a"), 0.5))
    assert saga.state.parked is not None
    assert (saga.state.parked.code, saga.state.parked.node) == (SAGA_SPENT, "b")
    assert [notice.code for notice in notices_of(decision)] == [SAGA_SPENT]


def test_a_saga_that_has_spent_most_of_it_says_so_once() -> None:
    saga = saga_with(program(task("a"), task("b", "a")))
    decision = saga.go(paid(done("a"), 0.85))
    assert [notice.code for notice in notices_of(decision)] == [WARNING]
    assert ready(decision) == ["b"]
    saga.go(running=["b"])
    assert len(saga.state.outbox.due) == 1


def test_no_child_begins_once_all_is_spent() -> None:
    saga = saga_with(program(task("a"), child("k", "a")))
    saga.go(paid(done("a"), 1))
    assert saga.state.children == {}
    assert status_of(saga.state) == "parked"


def test_a_saga_whose_users_day_is_over_goes_on_by_itself_when_it_turns() -> None:
    saga = Saga(program(task("a"), task("b")))
    decision = saga.go(halted(), running=["b"])
    assert (saga.state.parked, decision.due) == (HALT, T0 + 60_000)
    assert [notice.key for notice in notices_of(decision)] == ["n"]
    assert ready(saga.go(after_ms=59_999, running=["b"])) == []
    assert ready(saga.go(after_ms=1, running=["b"])) == ["a"]


def test_what_an_attempt_has_spent_before_the_money_was_gone_is_in_the_log() -> None:
    saga = Saga(program(task("a")))
    saga.go(halted(cost=200_000))
    assert saga.kinds == ["step_interrupted", "notice_due", "parked"]
    assert saga.state.money.spent == 200_000


@pytest.mark.parametrize("attempt", [1, 2])
def test_an_attempt_that_is_in_the_log_costs_nothing_more(attempt: int) -> None:
    saga = Saga(program(task("a"), failures={}))
    saga.go(paid(broken("a", "timeout"), 0.2))
    event = next(event for event in saga.entries[-1].events if isinstance(event, ev.AttemptFailed))
    saga.put(msgspec.structs.replace(event, attempt=attempt))
    assert saga.state.money.spent == attempt * 200_000
    assert saga.state.failing["a"].attempts == attempt


def test_what_an_outcome_has_to_tell_besides_is_told_before_what_it_comes_to() -> None:
    told = ev.Notice(key="n", to="user", code=WARNING, message="most is spent")
    saga = Saga(program(task("a")))
    saga.go(replace(done("a"), notices=(told,)))
    assert saga.kinds[:2] == ["notice_due", "step_succeeded"]


def test_a_graph_costs_something_where_a_node_of_it_says_so() -> None:
    assert not program(task("a")).graph.costs
    assert program(task("a"), task("b", "a", cost=5)).graph.costs
