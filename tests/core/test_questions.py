"""A person is asked about a failure, or told of it: what waits, what an answer comes to, what happens without one."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.failures.policy import PolicyChange
from baton.core.log import events as ev
from baton.core.log.questions import question_of
from baton.core.log.state import ANSWER, status_of
from tests.core.asked import notices_of, steps_of
from tests.core.build import T0, Saga, done, program, ready, task
from tests.core.failing import DAY, answer, attempts, broken, chosen
from tests.core.strategies import ASK_USER, ESCALATE, RETRY, ROLLBACK

# ---- a person is asked


def asking() -> Saga:
    saga = Saga(
        program(
            task("a"), task("b"), task("c", "b"), failures={"x": PolicyChange(ladder=(ASK_USER, ROLLBACK))}
        )
    )
    saga.go(broken("a", "x"), running=["b"])
    return saga


def test_a_question_holds_its_step_and_nothing_else() -> None:
    saga = asking()
    assert saga.kinds == ["attempt_failed", "strategy_chosen", "notice_due"]
    assert ready(saga.go(done("b"))) == ["c"]
    saga.go(done("c"))
    assert status_of(saga.state, saga.program) == "suspended"
    ask = saga.state.failing["a"].ask
    assert ask is not None
    assert (ask.id, ask.options, ask.expires_at) == ("0.a.1", ("retry", "use", "fail"), T0 + DAY)
    assert saga.decision.due == T0 + DAY


def test_a_question_names_what_an_answer_may_change_and_an_incident_is_for_operators() -> None:
    for ladder, to in ((ASK_USER, ""), (ESCALATE, "on_call")):
        saga = Saga(program(task("a"), failures={"x": PolicyChange(ladder=(ladder,), may_change=("x", "y"))}))
        saga.go(broken("a", "x"))
        ask = saga.state.failing["a"].ask
        assert ask is not None
        assert (ask.to, ask.may_change) == (to, ("x", "y"))


def test_the_answer_retry_lets_it_run_again_with_other_arguments() -> None:
    saga = asking()
    answer(saga, "retry", arguments={"x": 2})
    steps = {step.slot: step for step in steps_of(saga.go(running=["b"]))}
    assert (steps["a"].attempt, steps["a"].arguments, steps["a"].decided) == (2, {"x": 2}, "")
    assert saga.kinds == ["question_closed"]
    assert saga.state.signals == ()


def test_the_answer_use_gives_the_steps_output() -> None:
    saga = Saga(
        program(task("a"), output="${ctx.a.output}", failures={"x": PolicyChange(ladder=(ASK_USER,))})
    )
    saga.go(broken("a", "x"))
    answer(saga, "use", output={"booked": True})
    saga.tell()
    assert saga.state.ended is not None
    assert saga.state.ended.output == ev.Value(v={"booked": True})


def test_the_answer_fail_is_the_steps_last_word() -> None:
    saga = Saga(program(task("a"), failures={"x": PolicyChange(ladder=(ASK_USER,))}))
    saga.go(broken("a", "x"))
    answer(saga, "fail")
    saga.go()
    assert saga.kinds == ["question_closed", "step_failed", "saga_ended"]
    assert saga.state.ended is not None
    assert saga.state.ended.failure is not None
    assert saga.state.ended.failure.code == "x"


def test_an_answer_to_another_question_is_none() -> None:
    saga = asking()
    said = {"ask": "0.a.9", "action": "retry"}
    saga.put(ev.SignalReceived(name=ANSWER, key="k", payload=ev.Value(v=said), by="bob", at=saga.now))
    assert "a" not in [step.slot for step in steps_of(saga.go(running=["b"]))]


def test_a_signal_to_a_wait_is_no_answer() -> None:
    saga = asking()
    saga.signal("go", {"ask": "0.a.1", "action": "fail"})
    answer(saga, "retry")
    assert "a" in [step.slot for step in steps_of(saga.go(running=["b"]))]
    assert [signal.name for signal in saga.state.signals] == ["go"]


def test_a_question_without_an_answer_expires_and_the_next_strategy_follows() -> None:
    saga = Saga(program(task("a"), failures={"x": PolicyChange(ladder=(ASK_USER, ESCALATE))}))
    saga.go(broken("a", "x"))
    saga.go(after_ms=DAY)
    assert chosen(saga) == [ASK_USER, ESCALATE]
    assert status_of(saga.state) == "parked"
    saga = Saga(
        program(task("a"), failures={"x": PolicyChange(ladder=(RETRY, ASK_USER), at_most={RETRY: 0})})
    )
    saga.go(broken("a", "x"))
    saga.go(after_ms=DAY)
    saga.tell()
    assert status_of(saga.state) == "failed"


# ---- escalation


def escalated() -> Saga:
    saga = Saga(
        program(
            task("a"),
            task("b"),
            task("c", "b"),
            failures={"x": PolicyChange(ladder=(ESCALATE,), severity="high")},
        )
    )
    saga.go(broken("a", "x"), running=["b"])
    return saga


def test_an_escalation_opens_an_incident_tells_who_is_on_call_and_parks() -> None:
    saga = escalated()
    assert saga.kinds == ["attempt_failed", "strategy_chosen", "notice_due", "parked"]
    (notice,) = saga.state.outbox.due
    assert (notice.key, notice.to, notice.severity, notice.incident) == (
        "s1/0.a.1.incident",
        "on_call",
        "high",
        True,
    )
    assert ready(saga.go(done("b"))) == []
    assert status_of(saga.state) == "parked"


def test_who_resumes_a_parked_saga_has_the_step_tried_again() -> None:
    saga = escalated()
    saga.put(ev.Resumed(by="bob", at=saga.now))
    assert attempts(saga.go(running=["b"])) == [("a", 2)]


def test_an_answer_to_an_incident_lets_the_saga_go_on() -> None:
    saga = escalated()
    answer(saga, "use", output=1)
    saga.go(done("b"))
    assert saga.state.parked is None
    assert "a" not in saga.state.tokens
    assert ready(saga.decision) == ["c"]


# ---- telling


def test_notices_are_told_until_the_log_says_so_and_before_the_end() -> None:
    saga = Saga(program(task("a"), failures={"x": PolicyChange(ladder=(ASK_USER,))}))
    decision = saga.go(broken("a", "x"))
    assert [notice.key for notice in notices_of(decision)] == ["s1/0.a.1"]
    saga.put(ev.NoticeDue(notice=ev.Notice(key="k", to="user", code="c", message="m", at=saga.now)))
    answer(saga, "fail")
    decision = saga.go()
    assert saga.state.ended is None
    assert [notice.key for notice in notices_of(decision)] == ["k"], "the question has its answer"
    saga.put(ev.NoticesSent(keys=("k",)))
    saga.go()
    assert saga.state.ended is not None


def test_a_notice_leads_to_its_question_while_that_is_open() -> None:
    saga = asking()
    (notice,) = notices_of(saga.decision)
    ask = saga.state.failing["a"].ask
    reminder = ev.Notice(key="k", to="user", code="x", message="m", ask="0.a.1")
    assert [question_of(saga.state, one) for one in (notice, reminder)] == [ask] * 2
    for other in ("", "0.a.2"):
        assert question_of(saga.state, replace(notice, ask=other)) is None
    answer(saga, "fail")
    saga.go()
    assert question_of(saga.state, notice) is None


def test_a_notice_that_was_told_is_not_told_again() -> None:
    saga = Saga(program(task("a")))
    notice = ev.Notice(key="k", to="user", code="c", message="m")
    saga.put(ev.NoticeDue(notice=notice), ev.NoticeDue(notice=notice))
    assert saga.state.outbox.due == (notice,)
    saga.put(ev.NoticesSent(keys=("k",)))
    saga.put(ev.NoticeDue(notice=notice))
    assert len(saga.state.outbox.due) == 0


def test_of_two_steps_that_meet_a_limit_at_once_one_tells_of_it() -> None:
    saga = Saga(program(task("a")))
    first, second = (
        ev.Notice(key="k", to="user", code="c", message=f"no money for {step}", node=step)
        for step in ("a", "b")
    )
    saga.put(ev.NoticeDue(notice=first), ev.NoticeDue(notice=second))
    assert saga.state.outbox.due == (first,)


def test_a_fork_gives_the_person_asked_as_much_time_as_at_the_cut() -> None:
    saga = asking()
    cut = saga.state.version
    saga.now += 5 * DAY
    saga.put(ev.Forked(cut=cut, branch=1, by="bob", at=saga.now))
    failing = saga.state.failing["a"]
    assert failing.ask is not None
    assert failing.ask.expires_at >= saga.now + DAY - 10
