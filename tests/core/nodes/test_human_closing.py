"""What becomes of a question of a node without an answer, in each round, after a fork, and with the end of its saga."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.expressions import iso
from baton.core.log import events as ev
from baton.core.log.questions import closed_by_time, is_answered
from baton.core.log.state import ANSWER, KEYS_REMEMBERED
from tests.core.asked import cancels_of
from tests.core.build import T0, Saga, ready
from tests.core.nodes.asking import (
    APPROVAL,
    DAY,
    DECISION,
    ERROR,
    GIVEN,
    HOUR,
    INPUT,
    TAKEOVER,
    USUAL,
    answer,
    asking,
    compiled,
    output,
)
from tests.kit.sentences import Says

# ---- what becomes of it without one


def expired(human: str, **more: Any) -> Saga:
    saga = asking(human, **more)
    assert ready(saga.go(after_ms=DAY - 1)) == []
    assert "ask" in saga.state.open
    saga.go(after_ms=1)
    return saga


def test_a_decision_that_expires_takes_its_default_option() -> None:
    saga = expired(USUAL)
    assert output(saga) == {
        "answer": "home",
        "data": None,
        "comment": None,
        "by": None,
        "at": iso(T0 + DAY),
        "source": "default",
    }
    closed = saga.entries[-1].events[0]
    assert isinstance(closed, ev.QuestionClosed)
    assert (closed.action, closed.by) == ("expired", "")


def test_an_approval_that_expires_is_rejected(says: Says) -> None:
    saga = expired(APPROVAL, catch=False)
    assert saga.state.ended is not None
    says(saga.state.ended.failure)


@pytest.mark.parametrize("human", [DECISION, INPUT, TAKEOVER, ERROR])
def test_any_other_question_that_expires_fails(human: str, says: Says) -> None:
    saga = expired(human, catch=False)
    assert saga.state.ended is not None
    says(saga.state.ended.failure)


@pytest.mark.no_cover
def test_a_loop_remembers_only_so_many_questions_that_have_expired() -> None:
    rounds = KEYS_REMEMBERED + 5
    loop = f"{{while: output.answer == 'home', max_iterations: {rounds}}}"
    saga = asking(f"{USUAL}, loop: {loop}", catch=False, more="")
    for _ in range(rounds - 1):
        saga.go(after_ms=DAY)
    assert len(saga.state.keys) == KEYS_REMEMBERED


def test_the_time_is_what_the_document_says() -> None:
    assert asking("{title: x, expires: 30m}").decision.due == T0 + HOUR // 2


def test_an_answer_in_the_log_counts_although_its_question_should_have_expired() -> None:
    saga = asking(APPROVAL)
    saga.now += DAY
    answer(saga, "approve")
    assert ready(saga.go(after_ms=HOUR)) == ["then"]


def test_of_an_expiry_in_the_log_a_later_answer_changes_nothing() -> None:
    saga = expired(USUAL)
    late = ev.SignalReceived(
        name=ANSWER,
        key="0.ask/k",
        payload=ev.Value(v={"ask": "0.ask", "action": "table"}),
        by="bob",
        at=saga.now,
    )
    saga.put(late, epoch=0, invocation="api")
    saga.go()
    assert output(saga)["answer"] == "home"


def test_it_is_remembered_that_a_question_closed_by_time() -> None:
    saga = expired(USUAL)
    assert saga.state.keys == {":answer/0.ask": "expired"}
    assert is_answered(saga.state, "0.ask")
    assert closed_by_time(saga.state, "0.ask")
    assert not closed_by_time(saga.state, "0.other")


# ---- rounds, forks, and what is no longer needed


ROUNDS = ", loop: {while: 'output.answer == \"home\"', max_iterations: 3}"


def test_each_round_of_a_loop_asks_anew() -> None:
    saga = asking(DECISION + ROUNDS, catch=False, more="\n  then: {tool: t, after: ask}")
    answer(saga, "home")
    saga.go()
    (slot,) = saga.state.open
    ask = saga.state.open[slot].ask
    assert (slot, ask is not None and ask.id) == ("ask@1", "0.ask@1")
    answer(saga, "table")
    assert ready(saga.go()) == ["then"]


def test_a_fork_to_before_the_question_asks_again_and_an_old_answer_is_none() -> None:
    saga = asking(APPROVAL)
    answer(saga, "approve")
    saga.go()
    saga.put(ev.Forked(cut=1, branch=1, by="ada", at=saga.now), epoch=0)
    saga.go(after_ms=DAY)
    ask = saga.state.open["ask"].ask
    assert ask is not None
    assert (ask.id, ask.expires_at) == ("1.ask", saga.now + DAY)
    assert ready(saga.go()) == []


def test_a_fork_to_the_open_question_gives_the_person_the_time_that_was_left() -> None:
    saga = asking(APPROVAL)
    cut = saga.state.version
    saga.tell()
    saga.now += 2 * HOUR
    answer(saga, "reject")
    saga.go()
    saga.now += 3 * DAY
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    ask = saga.state.open["ask"].ask
    assert ask is not None
    assert (ask.id, ask.expires_at) == ("0.ask", saga.now + DAY)
    (notice,) = saga.state.outbox.due
    assert (notice.key, notice.to, notice.code) == ("s1/1/0.ask", "user", "approval")
    answer(saga, "approve")
    assert ready(saga.go()) == ["then"]


def test_a_question_that_is_open_on_both_sides_of_a_fork_stays() -> None:
    saga = asking(APPROVAL)
    cut, before = saga.state.version, saga.state.open
    saga.now += HOUR
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    assert saga.state.open == before
    answer(saga, "approve")
    assert ready(saga.go()) == ["then"]


def test_a_cancel_closes_the_question_with_the_saga() -> None:
    saga = asking(APPROVAL)
    saga.tell()
    saga.cancel()
    decision = saga.go()
    assert not cancels_of(decision)
    assert saga.state.ended is not None
    assert (saga.state.ended.status, saga.state.open) == ("cancelled", {})


def test_a_question_and_its_notice_are_in_one_entry_however_little_room_there_is() -> None:
    saga = Saga(compiled(APPROVAL), GIVEN)
    saga.go(room=1)
    assert saga.kinds == ["question_opened", "notice_due"]
    answer(saga, "approve")
    saga.go(room=1)
    assert [one.__struct_config__.tag for one in saga.entries[4 - 1].events] == [
        "question_closed",
        "node_passed",
    ]
