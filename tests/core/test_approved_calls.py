"""For which calls an approval holds, and what comes between a question and its answer."""

from __future__ import annotations

import msgspec

from baton.core.decide.decision import RunStep
from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.log import events as ev
from baton.core.log.questions import open_questions
from baton.core.log.state import status_of
from baton.core.nodes.registry import KINDS
from baton.core.read.views import entry_view
from tests.core.approving import TOOLS, WITH, asking, paying, request_of, run, unapproved
from tests.core.asked import steps_of
from tests.core.build import T0, Saga, done, failed, ready
from tests.core.nodes.asking import answer
from tests.core.told import why
from tests.kit.sentences import Says

# ---- for which calls it holds


def retried(saga: Saga, code: str = "service_unavailable") -> RunStep:
    """After a failure of the approved attempt."""
    outcome = msgspec.structs.replace(failed("pay", code), attempt=run(saga).attempt)
    saga.go(outcome)
    saga.now = max(saga.now, saga.state.failing["pay"].due_at)
    return run(saga)


def test_a_retry_with_the_same_arguments_does_not_ask_again() -> None:
    saga = paying()
    ask = asking(saga)
    answer(saga, "approve")
    step = retried(saga)
    assert (step.attempt, step.approved) == (2, (ask.digest,))
    request = request_of(step)
    assert request is not None
    assert request.digest == ask.digest


def test_other_arguments_ask_again_and_both_approvals_hold() -> None:
    saga = paying()
    first = asking(saga)
    answer(saga, "approve")
    step = retried(saga)
    other = msgspec.structs.replace(step, arguments={"amount": 700, "to": "bob"})
    saga.go(unapproved(saga, step, request_of(other)))
    ((_, second),) = open_questions(saga.state)
    assert second.id != first.id
    assert status_of(saga.state, saga.program) == "suspended"
    answer(saga, "approve")
    again = run(saga)
    assert (again.attempt, again.approved) == (2, (first.digest, second.digest))
    saga.go(unapproved(saga, again, request_of(step)))
    assert not saga.state.open, "it was approved meanwhile"


def test_arguments_that_were_made_before_the_call_are_those_it_gets() -> None:
    saga = paying()
    asking(saga)
    answer(saga, "approve")
    retried(saga)
    failing = saga.state.failing["pay"]
    saga.state = msgspec.structs.replace(
        saga.state, failing={"pay": msgspec.structs.replace(failing, hooks=("h",))}
    )
    step = run(saga)
    made = msgspec.structs.replace(step, arguments={"amount": 600, "to": "bob", "token": "secret-1"})
    saga.go(unapproved(saga, step, request_of(made, is_changed=True)))
    opened = saga.entries[-1].events[0]
    assert isinstance(opened, ev.QuestionOpened)
    assert opened.arguments["token"] == "secret-1"
    assert entry_view(saga.entries[-1])["events"][0]["arguments"]["token"] == "[redacted]"
    answer(saga, "approve")
    step = run(saga)
    assert (step.arguments, step.hooks) == ({"amount": 600, "to": "bob", "token": "secret-1"}, ())


def test_arguments_that_are_too_large_to_be_kept_fail(says: Says) -> None:
    saga = paying(node=f"tool: pay, {WITH}", more="")
    (step,) = steps_of(saga.go())
    large = msgspec.structs.replace(step, arguments={"amount": 600, "to": "b" * 40_000})
    saga.go(unapproved(saga, step, request_of(large, is_changed=True)))
    assert saga.state.failure is not None
    says(saga.state.failure.message)


def test_each_round_of_a_loop_asks_anew() -> None:
    loop = "loop: {while: 'loop.iteration < 1', max_iterations: 3}"
    saga = paying(node=f"tool: pay, {WITH}, {loop}", more="")
    asking(saga)
    answer(saga, "approve")
    run(saga)
    saga.go(done("pay@0", 1))
    assert (run(saga).slot, run(saga).approved) == ("pay@1", ())


def test_an_approval_holds_over_a_fork_behind_it_and_not_over_one_before_it() -> None:
    saga = paying()
    ask = asking(saga)
    opened = saga.state.version
    answer(saga, "approve")
    saga.go()
    approved = saga.state.version
    saga.go(done("pay", 1))
    saga.put(ev.Forked(cut=approved, branch=1, by="ada", at=saga.now), epoch=0)
    assert run(saga).approved == (ask.digest,)
    saga.put(ev.Forked(cut=opened, branch=2, by="ada", at=saga.now), epoch=0)
    ((_, same),) = open_questions(saga.state)
    assert same.id == ask.id
    saga.put(ev.Forked(cut=1, branch=3, by="ada", at=saga.now), epoch=0)
    assert run(saga).approved == ()
    assert "is ready" in why(saga, "pay")
    assert asking(saga).id.startswith("3.pay.")
    assert "waits for an answer" in why(saga, "pay")


def test_a_fork_to_a_question_about_a_step_that_is_failing_tells_of_the_question() -> None:
    saga = paying()
    asking(saga)
    answer(saga, "approve")
    step = retried(saga)
    saga.go(unapproved(saga, step, request_of(msgspec.structs.replace(step, arguments={"amount": 9}))))
    saga.tell()
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now), epoch=0)
    (notice,) = saga.state.outbox.due
    assert notice.code == "approval"


# ---- what comes between


def possibly_running(saga: Saga) -> tuple[str, ...]:
    return saga.state.recovery.possibly_running


def test_no_question_is_asked_where_the_saga_ends_or_is_parked_or_the_step_is_gone() -> None:
    saga = paying()
    (step,) = steps_of(saga.go())
    outcome = unapproved(saga, step)
    saga.cancel(grace_ms=10_000)
    saga.go(outcome)
    assert not list(open_questions(saga.state))
    parked = paying()
    (step,) = steps_of(parked.go())
    parked.put(ev.Parked(code="budget", message="m"))
    parked.go(unapproved(parked, step))
    assert not parked.state.open
    gone = paying()
    (step,) = steps_of(gone.go())
    gone.go(done("pay", 1))
    gone.go(msgspec.structs.replace(unapproved(gone, step), cost=5))
    assert gone.kinds == ["step_interrupted"]


def test_a_second_word_of_the_same_attempt_asks_nothing_more() -> None:
    saga = paying()
    (step,) = steps_of(saga.go())
    outcome = unapproved(saga, step)
    saga.go(outcome)
    version = saga.state.version
    saga.go(outcome)
    assert saga.state.version == version


def test_a_step_that_asks_is_not_at_work_when_its_worker_dies() -> None:
    saga = paying()
    asking(saga)
    saga.die()
    assert possibly_running(saga) == ()
    answer(saga, "approve")
    run(saga)
    saga.die()
    assert possibly_running(saga) == ("pay",)


def test_what_may_have_acted_before_the_question_stays_in_doubt() -> None:
    saga = paying()
    asking(saga)
    answer(saga, "approve")
    step = run(saga)
    saga.die()
    other = msgspec.structs.replace(step, arguments={"amount": 700})
    saga.go(unapproved(saga, step, request_of(other)))
    saga.die()
    assert possibly_running(saga) == ("pay",)


def test_an_approval_of_another_question_changes_nothing() -> None:
    saga = paying()
    ask = asking(saga)
    before = saga.state
    saga.put(ev.QuestionClosed(node="pay", ask="0.pay.other", action="approve", at=T0))
    assert (saga.state.open, saga.state.approved) == (before.open, {})
    saga.put(ev.QuestionClosed(node="pay", ask=ask.id, action="expired", at=T0))
    assert saga.state.open == before.open


def test_limits_hold_a_step_back_that_was_approved() -> None:
    limits = "limits: {fan_out: {max: 1, then: throttle}}"
    text = f"name: w\n{limits}\nnodes:\n  pay: {{tool: pay, {WITH}}}\n  side: {{tool: t}}"
    saga = Saga(Program(compile_document(text, TOOLS), KINDS), {"amount": 600})
    (step,) = steps_of(saga.go())
    assert step.slot == "pay"
    saga.go(unapproved(saga, step))
    answer(saga, "approve")
    assert ready(saga.go(running=["side"])) == []
    assert saga.state.approved
    assert ready(saga.go(done("side", 1))) == ["pay"]
