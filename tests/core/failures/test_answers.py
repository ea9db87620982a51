"""Answers of people: which questions are open, and everything that is wrong with an answer at once."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from baton.core.failures.alternatives import Alternative
from baton.core.graph.graph import Node
from baton.core.log.events import Ask, Failure, Value
from baton.core.log.folding.received import signal_key
from baton.core.log.questions import (
    ACTIONS,
    Answer,
    answer_key,
    answer_refusal,
    changeable,
    check_answer,
    is_answered,
    open_questions,
    open_questions_in_words,
    tool_asked_about,
    unclosed_questions,
)
from baton.core.log.state import ANSWER, Failing, Origin, Signal, State
from tests.kit.sentences import Says

ASK = Ask(
    id="0.pay.3", kind="error_resolution", message="What now?", options=tuple(ACTIONS), may_change=("amount",)
)
PAY = Node(name="pay", kind="task", tool="pay", arguments={})
PARAMETERS = {
    "type": "object",
    "properties": {"amount": {"type": "integer"}, "note": {"type": "string"}},
    "required": ["amount", "note"],
    "additionalProperties": False,
}


def failing(ask: Ask | None) -> Failing:
    return Failing(attempts=3, failure=Failure(code="service_down", message="no"), ask=ask)


def wrong(
    parameters: dict[str, Any] = PARAMETERS, ask: Ask = ASK, node: Node = PAY, **said: Any
) -> list[str]:
    """The places of what is wrong with an answer."""
    return [problem.path for problem in check_answer(ask, node, parameters, Answer(ask=ask.id, **said))]


# ---- what is open


def test_a_question_is_open_until_it_is_closed_or_an_answer_has_come() -> None:
    state = State(failing={"pay": failing(ASK), "book@1": failing(None)})
    assert list(unclosed_questions(state)) == list(open_questions(state)) == [("pay", ASK)]
    for key in (ASK.id, f"{ASK.id}/k"):
        waiting = msgspec.structs.replace(state, signals=(Signal(name=ANSWER, key=key, payload=Value()),))
        remembered = msgspec.structs.replace(state, keys={signal_key(ANSWER, key): "digest"})
        for answered in (waiting, remembered):
            assert is_answered(answered, ASK.id)
            assert list(unclosed_questions(answered)) == [("pay", ASK)]
            assert list(open_questions(answered)) == []


@pytest.mark.parametrize("key", ["0.pay.31", "0.pay.2", "0.pay.3.incident"])
def test_the_answer_to_another_question_is_none_to_this_one(key: str) -> None:
    state = State(
        failing={"pay": failing(ASK)},
        signals=(
            Signal(name="go", key=ASK.id, payload=Value()),
            Signal(name=ANSWER, key=key, payload=Value()),
        ),
        keys={signal_key("go", ASK.id): "digest"},
    )
    assert not is_answered(state, ASK.id)


def test_the_open_questions_are_named_but_not_hundreds_of_them() -> None:
    assert open_questions_in_words(State()) == "no question is open"
    assert open_questions_in_words(State(failing={"pay": failing(ASK)})) == "open: 0.pay.3"
    many = {f"n{i}": failing(msgspec.structs.replace(ASK, id=f"0.n{i}.3")) for i in range(12)}
    assert open_questions_in_words(State(failing=many)).endswith("0.n9.3 and 2 more")


def test_a_key_counts_for_its_question_only() -> None:
    assert [answer_key("q", ""), answer_key("q", "k")] == ["q", "q/k"]


# ---- what can be said


@pytest.mark.parametrize(
    ("said", "payload"),
    [
        ({"action": "retry"}, {"ask": "q", "action": "retry"}),
        ({"action": "retry", "arguments": {"a": 1}}, {"ask": "q", "action": "retry", "arguments": {"a": 1}}),
        ({"action": "use", "output": None}, {"ask": "q", "action": "use", "output": None}),
    ],
)
def test_the_log_keeps_what_was_said_and_nothing_else(said: dict[str, Any], payload: dict[str, Any]) -> None:
    assert Answer(ask="q", **said).payload() == payload


def test_each_action_with_what_goes_with_it_is_right() -> None:
    assert wrong(action="retry") == wrong(action="fail") == wrong(action="use", output=None) == []
    assert wrong(action="retry", arguments={"amount": 3}) == [], "the others are those of the step"


def test_an_action_must_be_one_of_the_questions_options(says: Says) -> None:
    assert wrong(action="guess") == ["/action"]
    only = msgspec.structs.replace(ASK, options=("retry", "fail"))
    assert wrong(ask=only, action="use", output=1) == ["/action"]
    (problem,) = check_answer(only, PAY, PARAMETERS, Answer(ask="q", action="retyr"))
    says((problem.message, problem.suggestion))


def test_what_does_not_go_with_the_action_is_refused_and_what_is_missing_is_said() -> None:
    assert wrong(action="fail", arguments={"amount": 3}, output=1) == ["/arguments", "/output"]
    assert wrong(action="use", arguments={"amount": 3}) == ["/arguments", "/output"]
    assert wrong(action="retry", output=1) == ["/output"]


def test_arguments_must_be_such_as_the_tool_takes() -> None:
    assert wrong(action="retry", arguments={"amount": "3"}) == ["/arguments/amount"]
    free = msgspec.structs.replace(ASK, may_change=("anything",))
    assert wrong({"type": "object"}, ask=free, action="retry", arguments={"anything": 3}) == []
    assert wrong({}, ask=free, action="retry", arguments={"anything": 3}) == []


def test_an_answer_changes_only_the_arguments_that_the_question_names(says: Says) -> None:
    def refused(ask: Ask, **arguments: Any) -> list[tuple[str, str]]:
        found = check_answer(ask, PAY, PARAMETERS, Answer(ask="q", action="retry", arguments=arguments))
        return [(problem.path, problem.suggestion) for problem in found]

    says(refused(ASK, amount=1, note="x"))
    says(refused(ASK, amont=1))
    says(refused(ASK, **{"a/b": 1}))
    nothing = msgspec.structs.replace(ASK, may_change=())
    ((path, hint),) = refused(nothing, amount=1)
    assert path == "/arguments/amount"
    says(hint)
    stranger = msgspec.structs.replace(ASK, may_change=("gone",))
    assert refused(stranger, gone=1)[0][0] == "/arguments/gone", "the tool that would run does not take it"


def test_a_question_says_which_arguments_may_change_by_their_schema() -> None:
    assert changeable(ASK, PARAMETERS) == {
        "type": "object",
        "properties": {"amount": {"type": "integer"}},
        "additionalProperties": False,
    }
    assert changeable(msgspec.structs.replace(ASK, may_change=()), PARAMETERS) is None
    assert changeable(msgspec.structs.replace(ASK, may_change=("gone",)), PARAMETERS) is None
    shared = {"properties": {"amount": {"$ref": "#/$defs/Money"}}, "$defs": {"Money": {"type": "integer"}}}
    assert changeable(ASK, shared) == {
        "type": "object",
        **shared,
        "additionalProperties": False,
    }


# ---- whom it is for


@pytest.mark.parametrize(
    ("to", "user", "roles", "may"),
    [
        ("", "ada", {"answer"}, True),
        ("", "ada", set(), True),
        ("", "bob", {"answer", "read", "run"}, False),
        ("", "bob", {"operate"}, True),
        ("", "operate", {"answer"}, False),
        ("on_call", "ada", {"answer"}, False),
        ("on_call", "ada", {"operate"}, True),
        ("on_call", "operate", {"ada"}, False),
    ],
)
def test_a_question_is_answered_by_the_sagas_user_and_by_operators_and_an_incident_by_operators(
    to: str, user: str, roles: set[str], may: bool, says: Says
) -> None:
    ask = msgspec.structs.replace(ASK, to=to)
    why = answer_refusal(State(origin=Origin(user="ada")), ask, user, roles)
    assert (why == "") == may
    says(why)


def test_the_tool_that_a_retry_would_run_is_that_of_the_way() -> None:
    other = Alternative(name="other", tool="partner")
    first = Alternative(name="first", tool="log_in", first=True)
    for way, tool in ((None, "pay"), (other, "partner"), (first, "pay"), (Alternative(name="m2"), "pay")):
        assert tool_asked_about(PAY, msgspec.structs.replace(failing(ASK), way=way)) == tool


def test_an_output_must_be_such_as_the_node_gives() -> None:
    typed = msgspec.structs.replace(PAY, output_schema={"type": "object", "required": ["id"]})
    assert wrong(node=typed, action="use", output={"id": 1}) == []
    assert wrong(node=typed, action="use", output={}) == ["/output"]
    assert wrong(node=typed, action="fail") == []


def test_an_output_that_is_recorded_must_be_such_as_the_tool_gives() -> None:
    def places(output: object) -> list[str]:
        answer = Answer(ask="q", action="use", output=output)
        return [problem.path for problem in check_answer(ASK, PAY, {}, answer, {"type": "integer"})]

    assert places(3) == []
    assert places({"not": 3}) == ["/output"]


@pytest.mark.parametrize(
    ("said", "places"),
    [
        ({"action": "retry", "arguments": {"password": "hunter2"}}, ["/arguments"]),
        ({"action": "retry", "arguments": {"note": "password: hunter2"}}, ["/arguments"]),
        ({"action": "retry", "arguments": {"keys": [{"api_key": "0123456789abcdef"}]}}, ["/arguments"]),
        ({"action": "retry", "arguments": {"token": "page-2", "pin": 3, "password": ""}}, []),
        ({"action": "use", "output": {"api_key": "0123456789abcdef"}}, []),
        ({"action": "retry", "arguments": {"note": "what is the password?"}}, []),
        ({"action": "use", "output": ["paid", 3]}, []),
        ({"action": "use", "output": ""}, []),
    ],
)
def test_what_looks_like_a_secret_is_no_answer_for_it_would_stay_in_the_log(
    said: dict[str, Any], places: list[str]
) -> None:
    ask = msgspec.structs.replace(ASK, may_change=tuple(said.get("arguments", ())))
    assert wrong({"type": "object"}, ask, **said) == places
