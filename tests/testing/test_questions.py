"""Questions of nodes in the tests of an application: answered, left to expire, or not thought of."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from baton import Agent, WorkflowContext, workflow
from baton.builder import Workflow
from baton.errors import InvalidInput
from baton.testing import Result, Unanswered, call, run
from baton.tools.define import Registry, tool
from tests.kit.sentences import Says

DOCUMENT = """
name: booking
nodes:
  approve: {human: {title: 'Book ${input.name}?', expires: 4h}, catch: {code: rejected, then: no}}
  form: {human: {title: Seats, schema: {type: object, properties: {seats: {type: integer}}, required: [seats]}}, after: approve}
  how: {human: {title: How?, options: [{id: table}, {id: home, default: true}]}, after: form}
  no: {value: '${last_error.message}'}
output: {seats: '${ctx.form.output?.data.seats}', how: '${ctx.how.output?.answer}', no: '${ctx.no.output?}'}
"""
ALL: dict[str, Any] = {"approve": "approve", "form": {"data": {"seats": 4}}, "how": "table"}


def of(**answers: Any) -> Result:
    return run(DOCUMENT, {"name": "Ubuntu"}, tools=Registry(), answers={**ALL, **answers})


def test_each_question_gets_its_answer() -> None:
    assert of().output == {"seats": 4, "how": "table", "no": None}


def test_a_question_that_is_left_alone_expires(says: Says) -> None:
    result = of(how=None)
    assert result.output == {"seats": 4, "how": "home", "no": None}
    assert result.took_s == 86_400
    says(of(approve=None).output["no"])


def test_a_rejection_with_a_comment(says: Says) -> None:
    result = of(approve={"action": "reject", "comment": "Too dear."})
    says(result.output)


def test_a_question_that_no_test_has_thought_of_is_shown_with_how_to_answer() -> None:
    for answers, said in (
        ({}, 'answers={"approve": "approve"}'),
        ({"approve": "approve"}, '{"form": {"data": …}}'),
    ):
        with pytest.raises(Unanswered) as unanswered:
            run(DOCUMENT, {"name": "Ubuntu"}, tools=Registry(), answers=answers)
        assert said in str(unanswered.value)
        assert "never to ask" not in str(unanswered.value)
        assert "asks (" in repr(unanswered.value.result)


def test_an_answer_that_cannot_be_one_says_so_and_where(says: Says) -> None:
    with pytest.raises(InvalidInput) as refused:
        of(how="tabel")
    says(str(refused.value))
    with says.raised(InvalidInput):
        of(form={"data": {"seats": "four"}})


def test_a_workflow_that_is_built_asks_too() -> None:
    w = Workflow("w", input={"type": "object"})
    ask = w.human(
        "ask", "How many?", schema=dict[str, int], to={"user": w.saga.user}, expires="1h", type="input"
    )
    w.output(ask.output.data)
    assert run(w, {}, tools=Registry(), answers={"ask": {"data": {"n": 2}}}).output == {"n": 2}
    plain = Workflow("p")
    plain.human("ask", "Well?", options=[{"id": "a", "default": True}])
    assert plain.document()["nodes"]["ask"] == {
        "human": {"title": "Well?", "options": [{"id": "a", "default": True}]}
    }


def test_a_tool_that_asks_first_is_answered_by_its_node(says: Says) -> None:
    registry, done = Registry(), list[str]()

    @tool("wipe", registry=registry, requires_approval=True)
    async def wipe(name: str) -> str:
        done.append(name)
        return name

    w = Workflow("w", risk=[{"level": "high", "action": "payment", "above": "9.50"}])
    step = w.task("clean", "wipe", with_={"name": w.input.name}, requires_approval={
        "title": w.input.name, "to": {"group": "ops"}, "expires": timedelta(hours=1),
    })  # fmt: skip
    w.output(step.output)
    assert w.document()["nodes"]["clean"]["requires_approval"] == {
        "title": "${input.name}", "to": {"group": "ops"}, "expires": "3600s",
    }  # fmt: skip
    assert run(w, {"name": "x"}, tools=registry, answers={"clean": "approve"}).output == "x"
    rejected = run(w, {"name": "y"}, tools=registry, answers={"clean": None})
    assert (rejected.status, rejected.took_s, done) == ("failed", 3_600, ["x"])
    with says.raised(Unanswered):
        run(w, {"name": "z"}, tools=registry)
    plain = Workflow("p")
    plain.task("clean", "wipe", with_={"name": "x"}, requires_approval=True)
    assert plain.document()["nodes"]["clean"]["requires_approval"] is True


DESK = Registry()
APPROVAL = {"to": {"group": "support"}, "title": "Pay it back?", "expires": "2h"}


@tool("refund", registry=DESK, requires_approval=APPROVAL)
def refund(order: str) -> str:
    """Pay an order back."""
    return f"paid back {order}"


desk = Agent("desk", model="gpt-5-mini", instructions="Help.", tools=[refund])


@workflow("desk", registry=DESK)
async def by_agent(order: str, context: WorkflowContext) -> str:
    return await context.agent(desk, order)


@workflow("plain-desk", registry=DESK)
async def by_function(order: str, context: WorkflowContext) -> str:
    return await context.step(refund, order)


NODE = """\
name: d
nodes: {pay: {tool: refund, with: {order: "${input.order}"}%s}}
output: ${ctx.pay.output}
"""
SCRIPT = {"desk": [call("refund", order="7"), "done"]}


@pytest.mark.parametrize(
    ("source", "asks", "models"),
    [(by_agent, "desk", SCRIPT), (by_function, "refund", {}), (NODE % "", "pay", {})],
)
def test_the_tool_says_who_approves_its_calls_wherever_they_come_from(
    source: Any, asks: str, models: dict[str, Any]
) -> None:
    with pytest.raises(Unanswered) as unanswered:
        run(source, {"order": "7"}, tools=DESK, models=models)
    (question,) = unanswered.value.result.questions
    assert (question["title"], question["for"][0]) == ("Pay it back?", {"kind": "group", "name": "support"})
    result = run(source, {"order": "7"}, tools=DESK, models=models, answers={asks: None})
    assert 7_200 <= result.took_s < 7_300


@pytest.mark.parametrize(
    ("said", "title", "kind", "took_s"),
    [
        (", requires_approval: {to: {role: operate}, expires: 1h}", "Pay it back?", "role", 3_600),
        (", requires_approval: {to: starter, title: Really?}", "Really?", "user", 7_200),
    ],
)
def test_a_node_says_more_of_the_approval_than_its_tool(
    said: str, title: str, kind: str, took_s: int
) -> None:
    with pytest.raises(Unanswered) as unanswered:
        run(NODE % said, {"order": "7"}, tools=DESK)
    (question,) = unanswered.value.result.questions
    assert (question["title"], question["for"][0]["kind"]) == (title, kind)
    assert took_s <= run(NODE % said, {"order": "7"}, tools=DESK, answers={"pay": None}).took_s < took_s + 99
