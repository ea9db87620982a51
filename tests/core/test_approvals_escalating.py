"""What happens to the question whether a tool may act while it has no answer, and what no escalation may decide."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.effects.risk import LEVELS, RiskRule, least
from baton.core.log import events as ev
from baton.core.log.questions import awaited_question, closed_by_time, may_answer, open_questions
from baton.core.log.records import Escalation
from baton.core.nodes.registry import KINDS
from baton.core.read.views import saga_view
from baton.errors import InvalidDefinition, NotAllowedNow
from tests.core.approving import AFTER, CATCH, PAY, TOOLS, WITH, request_of, run, unapproved
from tests.core.asked import steps_of
from tests.core.build import T0, Saga, ready
from tests.core.nodes.asking import DAY, HOUR, answer, output
from tests.core.told import story, why
from tests.kit.sentences import Says
from tests.kit.views import as_json

STEPS = (
    "[{after: 1h, remind: true}, {after: 2h, hand_on: {group: '${input.leads}'}}, {after: 3h, decide: %s}]"
)
BY_AMOUNT = (
    "risk: [{action: payment, above: 500, level: critical}, {action: payment, above: 100, level: medium}]\n"
)


def compiled(escalate: str, *, tool: str = "pay", rules: str = BY_AMOUNT, more: str = "") -> Program:
    approval = f"requires_approval: {{to: {{group: hosts}}, escalate: {escalate}{more}}}"
    node = f"tool: {tool}, {WITH}, {CATCH}, {approval}"
    return Program(compile_document(f"name: w\n{rules}nodes:\n  pay: {{{node}}}{AFTER}", TOOLS), KINDS)


def asking(decides: str, amount: int = 200, **changes: Any) -> Saga:
    saga = Saga(compiled(STEPS % decides), {"amount": amount, "leads": "leads"})
    (step,) = steps_of(saga.go())
    saga.go(unapproved(saga, step, request_of(step, **changes)))
    return saga


def open_ask(saga: Saga) -> ev.Ask:
    ask = saga.state.open["pay"].ask
    assert ask is not None
    return ask


def closed(saga: Saga) -> list[tuple[str, str]]:
    found = (event for entry in saga.entries for event in entry.events)
    return [(event.action, event.by) for event in found if isinstance(event, ev.QuestionClosed)]


def test_its_steps_are_moments_of_the_question_and_happen_in_their_order(says: Says) -> None:
    saga = asking("reject")
    assert open_ask(saga).escalate == (
        Escalation(at=T0 + HOUR),
        Escalation(at=T0 + 2 * HOUR, to="group:leads"),
        Escalation(at=T0 + 3 * HOUR, decide="reject"),
    )
    assert saga.decision.due == T0 + HOUR
    saga.go(after_ms=HOUR)
    assert saga.kinds == ["question_escalated", "notice_due"]
    assert may_answer(saga.state, open_ask(saga))[0] == ("group", "hosts")
    saga.go(after_ms=HOUR)
    (told,) = (one.notice for one in saga.entries[-1].events if isinstance(one, ev.NoticeDue))
    assert (told.to, told.message.partition(":")[0]) == ("group:leads", "Handed on")
    assert may_answer(saga.state, open_ask(saga))[0] == ("group", "leads")
    assert [
        one["action"] for one in as_json(saga_view(saga.state, saga.program))["questions"][0]["escalate"]
    ] == ["decide"]
    says(why(saga, "pay"))
    saga.go(after_ms=HOUR)
    assert closed(saga) == [("reject", "")]
    says(output(saga, "no"))


def test_its_last_step_approves_what_is_of_low_or_medium_risk(says: Says) -> None:
    saga = asking("approve")
    ask = open_ask(saga)
    assert (ask.risk, ask.ends_at) == ("medium", T0 + 3 * HOUR)
    assert ready(saga.go(after_ms=3 * HOUR)) == ["pay"]
    assert closed(saga) == [("approve", "")]
    assert run(saga).approved == (ask.digest,)
    assert closed_by_time(saga.state, ask.id) == "policy"
    with says.raised(NotAllowedNow):
        awaited_question(saga.state, ask.id, saga.now)
    story(saga)


@pytest.mark.parametrize(("amount", "changes"), [(600, {}), (-1, {}), (200, {"is_for_a_person": True})])
def test_what_only_a_person_may_approve_is_rejected_where_the_document_would_approve_it(
    amount: int, changes: dict[str, Any]
) -> None:
    saga = asking("approve", amount, **changes)
    assert open_ask(saga).escalate[-1] == Escalation(at=T0 + 3 * HOUR, decide="reject")
    saga.go(after_ms=3 * HOUR)
    assert closed(saga) == [("reject", "")]
    assert saga.state.approved == {}
    assert ready(saga.decision) != ["pay"]


def test_no_state_approves_what_is_of_high_risk_by_itself() -> None:
    saga = asking("approve", 600)
    work = saga.state.open["pay"]
    steps = (Escalation(at=T0 + 3 * HOUR, decide="approve"),)
    ask = msgspec.structs.replace(open_ask(saga), escalate=steps)
    saga.state = msgspec.structs.replace(saga.state, open={"pay": msgspec.structs.replace(work, ask=ask)})
    saga.go(after_ms=3 * HOUR)
    assert saga.state.approved == {}


def test_an_answer_that_is_in_the_log_counts_whatever_was_due() -> None:
    saga = asking("reject")
    saga.now += 3 * HOUR
    answer(saga, "approve", by="eve")
    assert ready(saga.go()) == ["pay"]


def test_a_fork_to_before_its_last_step_leaves_it_the_time_that_was_left() -> None:
    saga = asking("approve")
    cut = saga.state.version
    saga.go(after_ms=3 * HOUR)
    saga.now += DAY
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    ((_, ask),) = open_questions(saga.state)
    assert [step.at - saga.now for step in ask.escalate] == [HOUR, 2 * HOUR, 3 * HOUR]


@pytest.mark.parametrize(
    ("rules", "level"),
    [
        ((), "low"),
        ((RiskRule(level="high", action="payment"), RiskRule(level="medium")), "high"),
        ((RiskRule(level="high", action="deposit"), RiskRule(level="medium")), "medium"),
        (
            (RiskRule(level="critical", above="1", currency="USD"), RiskRule(level="high", party_above=2)),
            "low",
        ),
    ],
)
def test_the_least_risk_of_a_call_is_that_of_the_rules_that_fit_each_call(
    rules: tuple[RiskRule, ...], level: str
) -> None:
    assert least(PAY, rules) == level
    assert level in LEVELS


AT = "/nodes/pay/requires_approval/escalate"
ONLY = "`approve` without a person needs a risk that can be low or medium; "
INSTEAD = "write `decide: reject`, or `hand_on`"


@pytest.mark.parametrize(
    ("escalate", "more", "place"),
    [
        ("[{after: 1h, decide: aprove}]", {}, "/0/decide"),
        ("[{after: 25h, remind: true}]", {}, "/0/after"),
        ("[]", {}, ""),
        ("[{after: 1h, decide: approve}]", {"tool": "wipe"}, "/0/decide"),
        ("[{after: 1h, decide: approve}]", {"tool": "t"}, "/0/decide"),
        ("[{after: 1h, decide: approve}]", {"rules": ""}, "/0/decide"),
        ("[{after: 1h, decide: approve}]", {"more": ", always: false"}, "/0/decide"),
        ("[{after: 1h, hand_on: {group: '${ctx.then.output}'}}]", {}, "/0/hand_on/group"),
    ],
)  # fmt: skip
def test_the_compiler_refuses_steps_that_cannot_be(
    escalate: str, more: dict[str, str], place: str, says: Says
) -> None:
    with pytest.raises(InvalidDefinition) as refused:
        compiled(escalate, **more)
    (problem,) = refused.value.problems
    assert problem.path == AT + place
    says((problem.message, problem.suggestion))


@pytest.mark.parametrize("name", ["' '", "'${input.leads}'"])
def test_a_question_that_is_handed_on_to_no_name_fails_the_step(name: str, says: Says) -> None:
    saga = Saga(compiled(f"[{{after: 1h, hand_on: {{group: {name}}}}}]"), {"amount": 200, "leads": 7})
    (step,) = steps_of(saga.go())
    saga.go(unapproved(saga, step))
    assert not list(open_questions(saga.state))
    failed = [one for one in saga.entries[-1].events if isinstance(one, ev.StepFailed)]
    says([one.failure.message for one in failed])
