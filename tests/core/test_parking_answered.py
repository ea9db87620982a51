"""A parked saga asks operators, by the record and the route of every other question: try again, or cancel.

Why a saga is parked is in test_parking.py; incidents of steps that have failed ask by themselves, in test_reactions.py.
"""

from __future__ import annotations

import pytest

from baton.core.decide.spending import SpendingLimits
from baton.core.failures.strategies.base import ON_CALL
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.questions import (
    about_parking,
    is_answered,
    may_answer,
    open_questions,
    unclosed_questions,
)
from baton.core.log.snapshots import decode_state, encode_state
from baton.core.log.state import ANSWER, status_of
from baton.core.read.views import saga_view
from tests.core.build import T0, Saga, chain, ready
from tests.kit.views import as_json

SPENT = ev.Parked(code="budget_saga", message="1 of 1 dollars are spent", node="n0")
KILLED = ev.Parked(code="worker_killed", message="three died")


def parked(event: ev.Parked = SPENT) -> Saga:
    saga = Saga(chain(2))
    saga.put(event)
    return saga


def answer(saga: Saga, action: str, **more: str) -> None:
    ask = about_parking(saga.state)
    assert ask is not None
    said = {"ask": ask.id, "action": action, **more}
    saga.put(
        ev.SignalReceived(name=ANSWER, key=ask.id, payload=ev.Value(v=said), by="bob", at=saga.now), epoch=0
    )


@pytest.mark.parametrize(
    "event", [SPENT, KILLED, ev.Parked(code="over_budget", message="too long", node="n0")]
)
def test_a_saga_that_is_parked_asks_operators_whether_to_try_again_or_to_cancel(event: ev.Parked) -> None:
    state = parked(event).state
    ((slot, ask),) = open_questions(state)
    assert (slot, ask.id, ask.actions, ask.to, ask.expires_at) == (
        "",
        "0.parked.2",
        ("resume", "cancel"),
        ON_CALL,
        0,
    )
    assert ask.message == event.message
    assert may_answer(state, ask) == (("role", "operate"),)
    assert status_of(state) == "parked"
    assert decode_state(encode_state(state)) == state


@pytest.mark.parametrize(
    "event",
    [
        ev.Parked(code="budget_user", message="all of today is spent", until=T0 + 60_000),
        ev.Parked(code="escalated", message="What now?", node="n0"),
    ],
    ids=["its time comes", "its step has asked"],
)
def test_one_that_goes_on_by_itself_or_by_an_incident_is_not_asked_about(event: ev.Parked) -> None:
    assert list(unclosed_questions(parked(event).state)) == []


@pytest.mark.parametrize("event", [SPENT, KILLED])
def test_resume_lets_it_go_on_and_the_question_is_over(event: ev.Parked) -> None:
    saga = parked(event)
    answer(saga, "resume")
    assert list(open_questions(saga.state)) == [], "it has an answer"
    assert ready(saga.go()) == ["n0"]
    resumed = saga.entries[-1].events[0]
    assert resumed == ev.Resumed(by="bob", at=saga.now)
    assert (saga.state.parked, saga.state.signals, list(unclosed_questions(saga.state))) == (None, (), [])
    assert is_answered(saga.state, "0.parked.2"), "so that a late answer is told why it is refused"


def test_cancel_ends_it_with_what_the_operator_said() -> None:
    saga = parked()
    answer(saga, "cancel", comment="not worth it")
    saga.go()
    assert saga.kinds == ["cancel_requested", "saga_ended"]
    assert status_of(saga.state) == "cancelled"
    assert saga.state.cancel is not None
    assert (saga.state.cancel.reason, saga.state.cancel.by) == ("not worth it", "bob")


def test_one_that_kills_workers_while_it_stops_can_be_answered_about_too() -> None:
    saga = Saga(chain(2))
    saga.cancel()
    saga.put(KILLED)
    saga.go()
    assert saga.state.parked is not None, "nothing whatever is done for it"
    answer(saga, "resume")
    saga.go()
    assert status_of(saga.state) == "cancelled"


def test_a_second_parking_is_another_question() -> None:
    saga = parked()
    answer(saga, "resume")
    saga.go()
    saga.put(SPENT)
    ((_, again),) = open_questions(saga.state)
    assert again.id == f"0.parked.{saga.state.version}"
    assert again.id != "0.parked.2"


def test_resumed_for_its_money_it_may_spend_as_much_again() -> None:
    saga = parked()
    answer(saga, "resume")
    saga.terms = SpendingLimits(saga=1_000_000)
    saga.go()
    assert saga.state.money.budget == 2_000_000


def test_answers_to_others_wait_on() -> None:
    saga = parked()
    other = ev.SignalReceived(
        name=ANSWER, key="0.n1", payload=ev.Value(v={"ask": "0.n1"}), by="eve", at=saga.now
    )
    saga.put(other, epoch=0)
    saga.go()
    assert saga.state.parked is not None
    resumed = apply(saga.state, ev.Resumed(by="bob", at=saga.now))
    assert [signal.key for signal in resumed.signals] == ["0.n1"]


def test_it_is_shown_as_a_question_about_no_node() -> None:
    saga = parked()
    (question,) = as_json(saga_view(saga.state, saga.program, {}))["questions"]
    assert (question["node"], question["options"]) == (None, ["resume", "cancel"])
    assert [choice["destructive"] for choice in question["choices"]] == [False, True]
