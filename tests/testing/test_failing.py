"""Steps that fail in the test of an application: tried again in no time, asked about, answered, given up."""

from __future__ import annotations

from typing import Any

import pytest

from baton import StepFailure, tool
from baton.errors import InvalidInput
from baton.testing import Result, Unanswered, run
from baton.tools.define import Registry
from tests.kit.sentences import Says

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


def test_retries_take_virtual_time_and_are_counted(says: Says) -> None:
    result = of(2)
    assert (result.status, result.output, result.attempts("a")) == ("completed", "Rome", 3)
    assert (result.failing, result.questions, result.parked) == ([], [], None)
    assert result.steps["a"].attempt == 3
    says(result.why("a"))


def test_a_pause_of_hours_between_attempts_takes_no_time() -> None:
    rest = "retry: {backoff: fixed, base: 5h, max_delay: 5h, max_attempts: 3, budget: 30h}"
    result = of(1, rest)
    assert result.status == "completed"
    assert result.took_s == pytest.approx(5 * HOUR, abs=2)


def test_a_question_without_an_answer_fails_the_run_at_once_with_its_text(says: Says) -> None:
    with pytest.raises(Unanswered) as asked:
        of(9, code="login_required")
    first, *more = str(asked.value).splitlines()
    says(first)
    says(more[0])
    assert more[1].endswith('run(…, answers={"a": None})')
    assert "`on_failure: fail`" in more[2]
    assert asked.value.question["node"] == "a"
    result = asked.value.result
    assert result.took_s == 0
    assert (result.status, result.attempts("a")) == ("suspended", 1)
    assert result.error == "login_required: not now"
    (question,) = result.questions
    assert (question["node"], question["asked_for"]) == ("a", "browser_takeover")
    (failing,) = result.failing
    assert (failing["strategy"], failing["class"], failing["attempts"]) == ("ask_user", "user_resolvable", 1)
    assert result.steps["a"].status == "failing"
    assert "a: failing (login_required: not now)" in repr(result)
    says(repr(result))


def test_an_error_of_a_tool_is_asked_about_once_its_retries_are_used_up(says: Says) -> None:
    registry = Registry()

    @tool("shop.broken", registry=registry)
    def broken() -> None:
        raise ValueError("no such day")

    document = "name: it\nnodes: {a: {tool: shop.broken}}"
    with says.raised(Unanswered) as asked:
        run(document, tools=registry)
    result = asked.value.result
    assert (result.status, result.attempts("a"), result.took_s) == ("suspended", 4, 7)
    failed = run(f"{document}\non_failure: fail", tools=registry)
    assert (failed.status, failed.error, failed.attempts("a"), failed.took_s) == (
        "failed",
        result.error,
        4,
        7,
    )
    says(result.error)


def test_a_bug_in_a_tool_parks_the_saga_and_undoes_nothing() -> None:
    registry, undone = Registry(), list[str]()

    @tool("shop.pay", undo="shop.refund", registry=registry)
    def pay() -> str:
        return "p"

    @tool("shop.refund", registry=registry)
    def refund() -> None:
        undone.append("p")

    @tool("shop.broken", registry=registry)
    def broken() -> None:
        _ = dict[str, int]()["x"]

    document = "name: it\nnodes: {pay: {tool: shop.pay}, a: {tool: shop.broken, after: pay}}\n"
    for more in ("", "on_failure: fail", "on_failure: rollback", "retry: critical"):
        result = run(document + more, tools=registry)
        assert (result.status, result.attempts("a"), undone) == ("parked", 1, [])
        line = broken.__code__.co_firstlineno + 2
        assert f"tool_defect: KeyError: 'x' (tests/testing/test_failing.py:{line} in broken)" in result.error


@pytest.mark.parametrize(("wait", "way"), [("1h", ["b", "c"]), ("3d", ["b", "c"])])
def test_a_question_ends_the_run_while_others_wait_unless_it_may_expire(wait: str, way: list[str]) -> None:
    document = f"""
        name: it
        nodes: {{a: {{tool: shop.flaky}}, b: {{wait: {{for: {wait}}}}}, c: {{value: 1, after: b}}}}
    """
    with pytest.raises(Unanswered) as asked:
        run(document, tools=flaky(9, "login_required"))
    assert (asked.value.result.status, asked.value.result.way, asked.value.result.took_s) == (
        "suspended",
        [],
        0,
    )
    result = run(document, tools=flaky(9, "login_required"), answers={"a": None})
    assert (result.status, len(result.questions)) == ("failed", 0)
    assert result.way == (way if wait == "1h" else []) + ["a"]


def test_a_question_is_left_to_expire() -> None:
    result = of(9, code="login_required", answers={"a": None})
    assert (result.status, result.error, result.questions) == ("failed", "login_required: not now", [])
    assert result.took_s == pytest.approx(24 * HOUR, abs=1)


def test_a_question_of_a_child_is_seen_and_answered(says: Says) -> None:
    child = "name: child\nnodes: {a: {tool: shop.flaky}}\noutput: '${ctx.a.output}'"
    parent = "name: it\nnodes: {b: {workflow: child}}\noutput: '${ctx.b.output}'"

    def of_parent(**options: Any) -> Result:
        return run(parent, tools=flaky(1, "login_required"), workflows=[child], **options)

    with pytest.raises(Unanswered, match="`a` of `child` asks") as unanswered:
        of_parent()
    asked = unanswered.value.result
    assert (asked.status, asked.error, asked.took_s) == ("waiting", "login_required: not now", 0)
    assert [question["node"] for question in asked.questions] == ["a"]
    says(repr(asked))
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


def test_an_incident_parks_the_saga_until_a_person_answers() -> None:
    rest = "on_failure: escalate"
    parked = of(1, rest)
    assert parked.status == "parked"
    assert parked.parked is not None
    assert (parked.parked["code"], parked.parked["node"]) == ("escalated", "a")
    assert of(1, rest, answers={"a": "retry"}).status == "completed"


def test_a_run_can_be_that_of_a_deployment_that_asks_no_person(says: Says) -> None:
    assert of(9, code="login_required", on_failure="fail").error == "login_required: not now"
    assert of(9, code="login_required", on_failure="escalate").status == "parked"
    with says.raised(ValueError):
        of(9, on_failure="rollback")


def test_a_step_that_never_began_made_no_attempt() -> None:
    result = run(
        "name: it\non_failure: [rollback]\nnodes: {b: {tool: shop.flaky, with: {city: '${input.none}'}}}",
        tools=flaky(0),
    )
    assert (result.status, result.attempts("b")) == ("failed", 0)


def test_the_rounds_of_a_loop_are_counted_together_and_each_by_itself() -> None:
    loop = "{tool: shop.flaky, loop: {while: 'loop.iteration < 1', back_to: a}}"
    result = run(f"name: it\nnodes: {{a: {loop}}}", tools=flaky(1))
    assert (result.attempts("a"), result.attempts("a@0"), result.attempts("a@1")) == (3, 2, 1)


def test_an_answer_that_is_none_is_refused(says: Says) -> None:
    with says.raised(ValueError):
        of(0, answers={"b": "retry"})
    answers: list[dict[str, Any]] = [{"arguments": {}}, {"action": "retry", "city": "Oslo"}, {"action": 3}]
    for strange in answers:
        with says.raised(ValueError):
            of(0, answers={"a": strange})
    with says.raised(ValueError):
        of(0, answers={"a": {"dat": 1}})
    with says.raised(ValueError):
        of(1, code="login_required", answers={"a": "shrug"})
    with pytest.raises(InvalidInput) as refused:
        of(1, code="login_required", answers={"a": "use"})
    says(str(refused.value))
