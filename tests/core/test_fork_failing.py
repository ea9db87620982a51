"""A log goes back to where a step was failing: what was asked then, and what is tried now."""

from __future__ import annotations

from baton.core.failures.policy import PolicyChange
from baton.core.log import events as ev
from baton.core.log.questions import unclosed_questions
from baton.core.log.state import NOTICES_REMEMBERED, UNKNOWN_OUTCOME, status_of
from tests.core.asked import notices_of
from tests.core.build import Saga, program, task
from tests.core.failing import DAY, answer, attempts, broken
from tests.core.strategies import ASK_USER, ESCALATE


def asking(strategy: str = ASK_USER, code: str = "x") -> Saga:
    """A step has failed, and a person is asked."""
    saga = Saga(program(task("a"), failures={code: PolicyChange(ladder=(strategy,))}))
    saga.go(broken("a", code))
    return saga


def fork(saga: Saga, cut: int) -> Saga:
    """Five days later it goes back to that moment."""
    saga.now += 5 * DAY
    saga.put(ev.Forked(cut=cut, branch=saga.state.lineage.branch + 1, by="bob", at=saga.now))
    return saga


def forked(strategy: str) -> Saga:
    saga = asking(strategy)
    return fork(saga, saga.state.version)


def test_a_saga_forked_to_an_incident_tries_its_step_again() -> None:
    saga = forked(ESCALATE)
    assert attempts(saga.go()) == [("a", 2)]
    assert list(unclosed_questions(saga.state)) == [], "no answer would be heard"


def test_a_saga_forked_to_a_question_waits_for_its_answer() -> None:
    saga = forked(ASK_USER)
    assert attempts(saga.go()) == []
    assert [slot for slot, _ in unclosed_questions(saga.state)] == ["a"]
    assert status_of(saga.state, saga.program) == "suspended"


def test_the_person_who_answers_is_told_of_a_question_that_a_fork_has_opened_again() -> None:
    saga = asking()
    saga.tell()
    cut = saga.state.version
    answer(saga, "fail")
    saga.go()
    for branch in (1, 2):
        fork(saga, cut)
        ((_, ask),) = unclosed_questions(saga.state)
        assert notices_of(saga.go()) == (
            ev.Notice(
                key=f"s1/{branch}/{ask.id}",
                to="user",
                code="x",
                message=ask.message,
                node="a",
                at=saga.now,
                ask=ask.id,
            ),
        )
        assert notices_of(saga.tell()) == ()


def test_who_has_not_been_told_yet_is_told_once() -> None:
    saga = asking()
    told = notices_of(saga.go())
    assert notices_of(fork(saga, saga.state.version).go()) == told


def test_a_question_that_had_its_answer_at_the_cut_sends_no_notice() -> None:
    saga = asking()
    saga.tell()
    ((_, ask),) = unclosed_questions(saga.state)
    answer(saga, "retry", ask.id)
    assert notices_of(fork(saga, saga.state.version).go()) == ()
    assert attempts(saga.decision) == [("a", 2)]


def test_the_notice_of_a_question_that_is_open_again_is_as_severe_as_the_first() -> None:
    saga = Saga(program(task("a"), failures={"x": PolicyChange(ladder=(ASK_USER,), severity="critical")}))
    saga.go(broken("a", "x"))
    first = notices_of(saga.go())
    saga.tell()
    fork(saga, saga.state.version)
    assert [notice.severity for notice in (*first, *saga.state.outbox.due)] == ["critical"] * 2


def test_all_are_told_of_all_questions_that_a_fork_has_opened_again_however_many() -> None:
    names = [f"n{number}" for number in range(NOTICES_REMEMBERED + 5)]
    saga = Saga(program(*map(task, names), failures={"x": PolicyChange(ladder=(ASK_USER,))}))
    for name in names:
        saga.go(broken(name, "x"))
        saga.tell()
    fork(saga, saga.state.version)
    saga.put(ev.NoticeDue(notice=ev.Notice(key="k", to="user", code="x", message="m", node="z", at=saga.now)))
    assert [notice.node for notice in saga.state.outbox.due] == [*names, "z"]
    saga.tell()
    assert saga.state.outbox.due == ()


def test_an_incident_that_a_fork_has_ended_sends_no_notice() -> None:
    saga = asking(ESCALATE)
    saga.tell()
    assert notices_of(fork(saga, saga.state.version).go()) == ()


def test_that_it_may_have_happened_is_as_urgent_as_before() -> None:
    saga = asking(code=UNKNOWN_OUTCOME)
    (first,) = notices_of(saga.go())
    saga.tell()
    (again,) = notices_of(fork(saga, saga.state.version).go())
    assert (first.severity, again.severity) == ("high", "high")
