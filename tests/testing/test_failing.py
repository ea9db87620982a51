"""Steps that fail in the test of an application: tried again in no time, asked about, answered, given up."""

from __future__ import annotations

from typing import Any

import pytest

from baton import StepFailure, tool
from baton.errors import InvalidInput
from baton.testing import Result, run
from baton.tools.define import Registry

HOUR = 3_600


def flaky(failures: int, code: str = "service_unavailable") -> Registry:
    """A tool that fails so many times."""
    registry, left = Registry(), [failures]

    @tool("shop.flaky", registry=registry)
    def find(city: str = "Rome") -> str:
        if left[0]:
            left[0] -= 1
            raise StepFailure(code, "not now")
        return city

    return registry


def of(failures: int, rest: str = "", code: str = "service_unavailable", **options: Any) -> Result:
    document = f"name: it\nnodes: {{a: {{tool: shop.flaky}}}}\noutput: '${{ctx.a.output}}'\n{rest}"
    return run(document, tools=flaky(failures, code), **options)


def test_retries_take_virtual_time_and_are_counted() -> None:
    result = of(2)
    assert (result.status, result.output, result.attempts("a")) == ("completed", "Rome", 3)
    assert (result.failing, result.questions, result.parked) == ([], [], None)
    assert result.steps["a"].attempt == 3
    assert "after it had failed 2 times, last with service_unavailable: not now" in result.why("a")


def test_a_pause_of_hours_between_attempts_takes_no_time() -> None:
    rest = "retry: {backoff: fixed, base: 5h, max_delay: 5h, max_attempts: 3, budget: 30h}"
    result = of(1, rest)
    assert result.status == "completed"
    assert result.took_s == pytest.approx(5 * HOUR, abs=2)


def test_a_question_that_nobody_answers_leaves_the_saga_suspended() -> None:
    result = of(9, code="login_required")
    assert (result.status, result.attempts("a")) == ("suspended", 1)
    assert result.error == "login_required: not now"
    (question,) = result.questions
    assert (question["node"], question["kind"]) == ("a", "browser_takeover")
    (failing,) = result.failing
    assert (failing["strategy"], failing["class"], failing["attempts"]) == ("ask_user", "user_resolvable", 1)
    assert result.steps["a"].status == "failing"
    assert "a: failing (login_required: not now)" in repr(result)
    assert "a asks (retry, use, fail): Login required." in repr(result)


def test_a_bug_in_a_tool_is_asked_about_once_its_retries_are_used_up() -> None:
    registry = Registry()

    @tool("shop.broken", registry=registry)
    def broken() -> None:
        raise ZeroDivisionError("division by zero")

    result = run("name: it\nnodes: {a: {tool: shop.broken}}", tools=registry)
    assert (result.status, result.attempts("a"), result.took_s) == ("suspended", 4, 7)
    assert result.error == "tool_error: ZeroDivisionError: division by zero"


@pytest.mark.parametrize(("wait", "way"), [("1h", ["b", "c"]), ("3d", [])])
def test_while_nobody_answers_other_steps_go_on_until_the_question_would_expire(
    wait: str, way: list[str]
) -> None:
    document = f"""
        name: it
        nodes: {{a: {{tool: shop.flaky}}, b: {{wait: {{for: {wait}}}}}, c: {{value: 1, after: b}}}}
    """
    result = run(document, tools=flaky(9, "login_required"))
    assert (result.status, result.way, len(result.questions)) == ("suspended", way, 1), result
    assert result.took_s <= HOUR


def test_a_question_is_left_to_expire() -> None:
    result = of(9, code="login_required", answers={"a": None})
    assert (result.status, result.error, result.questions) == ("failed", "login_required: not now", [])
    assert result.took_s == pytest.approx(24 * HOUR, abs=1)


def test_a_question_of_a_child_is_seen_and_answered() -> None:
    child = "name: child\nnodes: {a: {tool: shop.flaky}}\noutput: '${ctx.a.output}'"
    parent = "name: it\nnodes: {b: {workflow: child}}\noutput: '${ctx.b.output}'"

    def of_parent(**options: Any) -> Result:
        return run(parent, tools=flaky(1, "login_required"), workflows=[child], **options)

    asked = of_parent()
    assert (asked.status, asked.error, asked.took_s) == ("waiting", "login_required: not now", 0)
    assert [question["node"] for question in asked.questions] == ["a"]
    assert "a asks (retry, use, fail)" in repr(asked)
    assert of_parent(answers={"a": "retry"}).output == "Rome"
    assert of_parent(answers={"a": None}).status == "failed"


def test_a_question_is_answered() -> None:
    rest = "on_failure: {login_required: {may_change: city}}"
    said = {"action": "retry", "arguments": {"city": "Oslo"}}
    again = of(1, rest, code="login_required", answers={"a": said})
    assert (again.status, again.output, again.attempts("a")) == ("completed", "Oslo", 2)
    used = of(9, code="login_required", answers={"a": {"action": "use", "output": "Bari"}})
    assert (used.status, used.output, used.attempts("a")) == ("completed", "Bari", 1)
    failed = of(9, code="login_required", answers={"a": "fail"})
    assert (failed.status, failed.error, failed.attempts("a")) == ("failed", "login_required: not now", 1)


def test_an_incident_parks_the_saga_until_somebody_answers() -> None:
    rest = "on_failure: escalate"
    parked = of(1, rest)
    assert parked.status == "parked"
    assert parked.parked is not None
    assert (parked.parked["code"], parked.parked["node"]) == ("escalated", "a")
    assert of(1, rest, answers={"a": "retry"}).status == "completed"


def test_a_step_that_never_began_made_no_attempt() -> None:
    result = run(
        "name: it\non_failure: rollback\nnodes: {b: {tool: shop.flaky, with: {city: '${input.none}'}}}",
        tools=flaky(0),
    )
    assert (result.status, result.attempts("b"), result.attempts("nobody")) == ("failed", 0, 0)


def test_the_rounds_of_a_loop_are_counted_together_and_each_by_itself() -> None:
    loop = "{tool: shop.flaky, loop: {while: 'loop.iteration < 1', back_to: a}}"
    result = run(f"name: it\nnodes: {{a: {loop}}}", tools=flaky(1))
    assert (result.attempts("a"), result.attempts("a@0"), result.attempts("a@1")) == (3, 2, 1)


def test_an_answer_that_is_none_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"there is no node `b`; did you mean|there is no node `b`; there are: a"
    ):
        of(0, answers={"b": "retry"})
    answers: list[dict[str, Any]] = [{"arguments": {}}, {"action": "retry", "city": "Oslo"}, {"action": 3}]
    for strange in answers:
        with pytest.raises(ValueError, match="the answer about `a` has `action`"):
            of(0, answers={"a": strange})
    with pytest.raises(InvalidInput):
        of(1, code="login_required", answers={"a": "shrug"})
