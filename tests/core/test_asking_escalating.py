"""What happens to the question about a failed step while it has no answer: the list `escalate` of a rule for failures."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.expressions import iso
from baton.core.log import events as ev
from baton.core.log.questions import awaited_question, closed_by_time, may_answer, open_questions
from baton.core.log.records import Escalation
from baton.core.log.snapshots import decode_state, encode_state
from baton.core.nodes.registry import KINDS
from baton.core.read.views import saga_view
from baton.errors import NotAllowedNow
from tests.core.build import T0, TOOLS, Saga, problems_of, ready
from tests.core.failing import DAY, answer, attempts, broken, chosen
from tests.core.nodes.asking import HOUR
from tests.core.strategies import ASK_USER, ESCALATE
from tests.core.told import why
from tests.kit.sentences import Says
from tests.kit.views import as_json

STEPS = "[{after: 1h, remind: true}, {after: 2h, hand_on: {group: leads}}, {after: 3h, decide: %s}]"
RULE = "on_failure: {any: {ladder: [ask_user, escalate], escalate: %s}}"
REMINDS = "[{after: 1h, remind: true}, {after: 2h, hand_on: {group: leads}}, {after: 3h, remind: true}]"


def compiled(escalate: str, rule: str = RULE) -> Program:
    text = f"name: w\n{rule % escalate}\nnodes: {{a: {{tool: t}}}}\noutput: '${{ctx.a.output}}'"
    return Program(compile_document(text, TOOLS), KINDS)


def asking(escalate: str, code: str = "x", rule: str = RULE) -> Saga:
    saga = Saga(compiled(escalate, rule))
    saga.go()
    saga.go(broken("a", code))
    return saga


def open_ask(saga: Saga) -> ev.Ask:
    ask = saga.state.failing["a"].ask
    assert ask is not None
    return ask


def closed(saga: Saga) -> list[tuple[str, str]]:
    found = (event for entry in saga.entries for event in entry.events)
    return [(event.action, event.by) for event in found if isinstance(event, ev.QuestionClosed)]


def test_its_steps_are_moments_of_the_question_and_happen_in_their_order() -> None:
    saga = asking(STEPS % "fail")
    ask = open_ask(saga)
    assert ask.escalate == (
        Escalation(at=T0 + HOUR),
        Escalation(at=T0 + 2 * HOUR, to="group:leads"),
        Escalation(at=T0 + 3 * HOUR, decide="fail"),
    )
    assert decode_state(encode_state(saga.state)) == saga.state
    due = []
    for _ in range(2):
        due.append(saga.decision.due)
        saga.go(after_ms=HOUR)
        assert saga.kinds == ["question_escalated", "notice_due"]
    assert [*due, saga.decision.due] == [T0 + HOUR, T0 + 2 * HOUR, T0 + 3 * HOUR]
    (told,) = (one.notice for one in saga.entries[-1].events if isinstance(one, ev.NoticeDue))
    assert (told.to, told.code, told.message.partition(":")[0]) == ("group:leads", "x", "Handed on")
    assert may_answer(saga.state, open_ask(saga)) == (("group", "leads"), ("role", "operate"))
    (shown,) = as_json(saga_view(saga.state, saga.program))["questions"]
    assert [(one["action"], one["answer"]) for one in shown["escalate"]] == [("decide", "fail")]
    assert f"reminder at {iso(T0 + HOUR)}" in why(saga, "a")


def test_its_last_step_lets_the_step_fail_and_nothing_else_is_done() -> None:
    saga = asking(STEPS % "fail")
    ask = open_ask(saga)
    saga.go(after_ms=3 * HOUR)
    assert closed(saga) == [("fail", "")]
    assert (chosen(saga), saga.state.parked) == ([ASK_USER], None)
    assert saga.state.ended is not None
    assert (saga.state.ended.status, closed_by_time(saga.state, ask.id)) == ("failed", "policy")


def test_its_last_step_lets_the_step_run_again_and_it_may_ask_again() -> None:
    saga = asking(STEPS % "retry")
    assert attempts(saga.go(after_ms=3 * HOUR)) == [("a", 2)]
    assert closed(saga) == [("retry", "")]
    saga.go(broken("a", "x", attempt=2, at=saga.now))
    assert chosen(saga) == [ASK_USER, ASK_USER]
    assert open_ask(saga).escalate[0].at == saga.now + HOUR


def test_from_its_last_step_on_an_answer_is_refused_and_one_that_is_in_the_log_counts(says: Says) -> None:
    saga = asking(STEPS % "fail")
    ask = open_ask(saga)
    saga.now += 3 * HOUR
    with says.raised(NotAllowedNow):
        awaited_question(saga.state, ask.id, saga.now)
    assert awaited_question(saga.state, ask.id, saga.now - 1)[0] == "a"
    answer(saga, "retry")
    assert ready(saga.go()) == ["a"]
    late = asking(REMINDS)
    assert awaited_question(late.state, open_ask(late).id, late.now + 2 * DAY)[0] == "a", (
        "until a worker has looked"
    )


def test_a_worker_that_slept_does_all_steps_in_one_entry_and_tells_people_of_the_last() -> None:
    saga = asking(REMINDS)
    before = len(saga.entries)
    saga.go(after_ms=4 * HOUR)
    assert len(saga.entries) == before + 1
    assert saga.kinds == ["question_escalated"] * 3 + ["notice_due"]
    assert (open_ask(saga).escalate, saga.decision.due) == ((), T0 + 3 * HOUR + DAY)


def test_steps_that_the_end_of_the_question_has_overtaken_are_not_taken() -> None:
    saga = asking(REMINDS)
    saga.go(after_ms=3 * HOUR + DAY)
    assert (closed(saga), chosen(saga)) == ([("expired", "")], [ASK_USER, ESCALATE])
    assert not any(isinstance(one, ev.QuestionEscalated) for entry in saga.entries for one in entry.events)


def test_it_waits_for_its_steps_and_a_day_for_those_who_come_last() -> None:
    saga = asking("[{after: 3d, hand_on: {group: leads}}]")
    assert open_ask(saga).expires_at == T0 + 4 * DAY
    saga.go(after_ms=3 * DAY)
    assert may_answer(saga.state, open_ask(saga)) == (("group", "leads"), ("role", "operate"))
    answer(saga, "retry")
    assert ready(saga.go()) == ["a"]


def test_an_incident_has_no_escalation() -> None:
    saga = asking(
        REMINDS,
        rule="on_failure: {any: {ladder: [ask_user, escalate], at_most: {ask_user: 0}, escalate: %s}}",
    )
    assert chosen(saga) == [ESCALATE]
    assert open_ask(saga).escalate == ()


def test_a_fork_leaves_it_the_time_that_was_left() -> None:
    saga = asking(STEPS % "fail")
    cut = saga.state.version
    saga.go(after_ms=3 * HOUR)
    saga.now += DAY
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    ((_, ask),) = open_questions(saga.state)
    assert [step.at - saga.now for step in ask.escalate] == [HOUR, 2 * HOUR, 3 * HOUR]


@pytest.mark.parametrize(
    ("code", "rule", "decides"),
    [
        ("x", RULE, "retry"),
        ("approval_needed", RULE, "fail"),
        ("x", "on_failure: {x: {ladder: ask_user, question: approval}, any: {escalate: %s}}", "fail"),
    ],
)
def test_a_rule_for_many_failures_tries_nothing_again_that_a_person_has_to_approve(
    code: str, rule: str, decides: str
) -> None:
    assert open_ask(asking("[{after: 1h, decide: retry}]", code, rule)).escalate[-1].decide == decides


AT = "/on_failure/any/escalate"
ONLY = "`retry` without a person: only a person can say "
INSTEAD = "write `decide: fail`, or `hand_on`"


@pytest.mark.parametrize(
    "rule",
    [
        "any: {escalate: [{after: 1h, decide: use}]}",
        "any: {escalate: []}",
        "any: {escalate: [{after: 1h, hand_on: {group: '${input.a}'}}]}",
        "unknown_outcome: {escalate: [{after: 1h, decide: retry}]}",
        "approval_needed: {escalate: [{after: 1h, decide: retry}]}",
        "any: {question: approval, escalate: [{after: 1h, decide: retry}]}",
        "any: {ladder: [rollback], escalate: [{after: 1h, remind: true}]}",
        "any: {escalate: [{after: 1h}]}",
    ],
)  # fmt: skip
def test_the_compiler_refuses_steps_that_cannot_be(rule: str, says: Says) -> None:
    found: list[Any] = [*problems_of(f"name: w\non_failure: {{{rule}}}\nnodes: {{a: {{tool: t}}}}")]
    says([(one.path, one.message, one.suggestion) for one in found])


@pytest.mark.parametrize("answered", ["fail", "use"])
def test_of_an_outcome_in_doubt_no_escalation_says_that_it_is_tried_again(answered: str, says: Says) -> None:
    rule = "unknown_outcome: {escalate: [{after: 1h, decide: %s}]}"
    found = problems_of(f"name: w\non_failure: {{{rule % answered}}}\nnodes: {{a: {{tool: t}}}}")
    says([one.message for one in found])
