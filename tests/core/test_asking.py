"""The record of a question, of whatever type: who may answer it, what can be an answer, how it is shown and told."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from baton.core.graph.graph import Node
from baton.core.log.events import Ask, SignalReceived, Value
from baton.core.log.folding.failure_folds import forget_answers
from baton.core.log.folding.fold import apply
from baton.core.log.questions import (
    TYPES,
    Answer,
    answer_refusal,
    check_answer,
    is_answered,
    may_answer,
    notice_again,
    notice_of,
    open_questions,
    unclosed_questions,
)
from baton.core.log.records import Option, Takeover
from baton.core.log.snapshots import decode_state, encode_state
from baton.core.log.state import ANSWER, Origin, Signal, State, status_of
from baton.core.log.work import Question, Wait
from baton.core.read.views import question_view
from tests.core.build import T0
from tests.kit.sentences import Says
from tests.kit.views import as_json

NODE = Node(name="ask", kind="human")
SCHEMA = {"type": "object", "properties": {"seats": {"type": "integer"}}, "required": ["seats"]}
WAYS = (
    Option(id="table", label="A table", default=True),
    Option(id="delivery", description="To the door.", destructive=True),
    "nothing",
)


def ask(type: str = "approval", **more: Any) -> Ask:
    kind, options = TYPES[type]
    made: dict[str, Any] = {"id": "0.ask", "message": "Shall we?", "expires_at": T0 + 1_000, **more}
    return Ask(kind=kind, type=type, options=made.pop("options", options), **made)


def waiting(one: Ask) -> State:
    origin = Origin(user="ada", saga="s1")
    return State(version=2, origin=origin, tokens={"ask": {"": True}}, open={"ask": Question(ask=one)})


# ---- what is open


def test_a_question_of_a_node_is_open_until_an_answer_has_come_and_suspends_the_saga() -> None:
    state = waiting(ask())
    assert list(unclosed_questions(state)) == list(open_questions(state)) == [("ask", ask())]
    assert status_of(state) == "suspended"
    said = SignalReceived(name=ANSWER, key="0.ask/k", payload=Value(), by="bob", at=T0)
    answered = apply(state, said)
    assert is_answered(answered, "0.ask")
    assert list(open_questions(answered)) == []
    assert answered.signals == (Signal(ANSWER, "0.ask/k", Value(), by="bob", at=T0),)


def test_only_of_an_answer_it_is_kept_who_sent_it() -> None:
    after = apply(waiting(ask()), SignalReceived(name="go", key="k", payload=Value(), by="bob", at=T0))
    assert after.signals == (Signal("go", "k", Value(), at=T0),)


def test_the_answer_goes_with_the_question() -> None:
    state = waiting(ask())
    kept = Signal(ANSWER, "0.other", Value())
    state = msgspec.structs.replace(state, signals=(Signal(ANSWER, "0.ask/k", Value()), kept))
    assert forget_answers(state, {"ask"}).signals == (kept,)
    assert forget_answers(state, {"elsewhere"}) is state


def test_a_question_survives_a_snapshot() -> None:
    state = waiting(ask("decision", options=WAYS, details={"a": [1]}, to="group:g", asked_at=T0))
    assert decode_state(encode_state(state)) == state


def test_a_question_is_no_wait_for_a_signal_and_has_no_child() -> None:
    work = Question(ask=ask())
    assert (work.signal, work.due, work.orphan, work.hears("x")) == ("", T0 + 1_000, None, False)
    assert Wait().ask is None


# ---- who may answer


@pytest.mark.parametrize(
    ("to", "who"),
    [
        ("", ("user", "ada")),
        ("user:bob", ("user", "bob")),
        ("group:finance:eu", ("group", "finance:eu")),
        ("role:answer", ("role", "answer")),
    ],
)
def test_the_audience_and_operators_may_answer(to: str, who: tuple[str, str]) -> None:
    assert may_answer(waiting(ask()), ask(to=to)) == (who, ("role", "operate"))


@pytest.mark.parametrize("to", ["role:operate", "on_call"])
def test_a_question_to_operators_is_for_them_alone(to: str) -> None:
    assert may_answer(waiting(ask()), ask(to=to)) == (("role", "operate"),)


@pytest.mark.parametrize(
    ("user", "roles", "groups", "may"),
    [
        ("bob", {"answer"}, {"finance"}, True),
        ("bob", {"operate"}, set[str](), True),
        ("finance", {"finance"}, set[str](), False),
        ("ada", {"answer"}, {"legal"}, False),
    ],
)
def test_a_question_to_a_group_is_answered_by_its_members(
    user: str, roles: set[str], groups: set[str], may: bool, says: Says
) -> None:
    why = answer_refusal(waiting(ask()), ask(to="group:finance"), user, roles, groups)
    assert (why == "") is may
    says(why)


# ---- what can be an answer


@pytest.mark.parametrize(
    ("type", "said"),
    [
        ("approval", {"action": "approve"}),
        ("approval", {"action": "reject", "comment": "too dear"}),
        ("decision", {"action": "table"}),
        ("decision", {"action": "nothing"}),
        ("input", {"action": "submit", "data": {"seats": 4}}),
        ("takeover", {"action": "done"}),
        ("error", {"action": "done"}),
        ("error", {"action": "reject"}),
    ],
)
def test_each_type_has_its_answers(type: str, said: dict[str, Any]) -> None:
    question = ask(type, **({"options": WAYS} if type == "decision" else {}), schema=SCHEMA)
    answer = Answer(ask="0.ask", **said)
    assert check_answer(question, NODE, {}, answer) == ()
    assert answer.payload() == {"ask": "0.ask", **said}


@pytest.mark.parametrize(
    ("type", "said", "places"),
    [
        ("approval", {"action": "retry"}, ["/action"]),
        ("approval", {"action": "approve", "data": 1}, ["/data"]),
        ("approval", {"action": "approve", "arguments": {"a": 1}, "output": None}, ["/arguments", "/output"]),
        ("decision", {"action": "tabel"}, ["/action"]),
        ("input", {"action": "submit"}, ["/data"]),
        ("input", {"action": "submit", "data": {"seats": "four"}}, ["/data/seats"]),
        ("input", {"action": "submit", "data": None}, ["/data"]),
        ("input", {"action": "submit", "data": {"seats": 4, "password": "x"}}, ["/data"]),
        ("takeover", {"action": "done", "comment": "api_key: sk-live-abcdefghijklmnop0123"}, ["/comment"]),
        ("error", {"action": "retry"}, ["/action"]),
    ],
)
def test_what_is_wrong_with_an_answer_has_its_place(
    type: str, said: dict[str, Any], places: list[str]
) -> None:
    question = ask(type, **({"options": WAYS} if type == "decision" else {}), schema=SCHEMA)
    found = check_answer(question, NODE, {}, Answer(ask="0.ask", **said))
    assert [problem.path for problem in found] == places


def test_an_option_may_have_the_name_of_an_answer_about_a_failure() -> None:
    question = ask("decision", options=("use", "retry"))
    assert check_answer(question, NODE, {}, Answer(ask="0.ask", action="use")) == ()
    assert check_answer(question, NODE, {}, Answer(ask="0.ask", action="retry")) == ()


def test_an_answer_of_another_type_is_refused_with_those_that_there_are(says: Says) -> None:
    (problem,) = check_answer(ask(), NODE, {}, Answer(ask="0.ask", action="aprove"))
    says((problem.message, problem.suggestion))


# ---- how it is shown and told


def test_what_there_is_to_say_of_a_question_is_shown() -> None:
    takeover = Takeover(url="https://bank.test", instructions="Log in.")
    one = ask("decision", options=WAYS, title="How?", details={"n": 1}, takeover=takeover, asked_at=T0)
    shown = as_json(question_view("ask", (2,), one))
    assert shown["options"] == ["table", "delivery", "nothing"]
    assert shown["choices"] == [
        {"id": "table", "label": "A table", "description": "", "default": True, "destructive": False},
        {
            "id": "delivery",
            "label": "delivery",
            "description": "To the door.",
            "default": False,
            "destructive": True,
        },
    ]
    assert shown["takeover"] == {"url": "https://bank.test", "picture": "", "instructions": "Log in."}
    assert (shown["type"], shown["asked_for"], shown["title"], shown["details"]) == (
        "decision",
        None,
        "How?",
        {"n": 1},
    )
    assert shown["asked_at"] == "2023-11-14T22:13:20.000Z"


@pytest.mark.parametrize(("to", "told"), [("", "user"), ("group:finance", "group:finance")])
def test_its_notice_goes_to_whom_it_is_for(to: str, told: str) -> None:
    notice = notice_of(waiting(ask()), "ask@1", ask(to=to, title="Book it?"), T0)
    assert (notice.key, notice.to, notice.code, notice.node) == ("s1/0.ask", told, "approval", "ask")
    assert (notice.message, notice.severity, notice.incident) == ("Book it?: Shall we?", "medium", False)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(
    ("risk", "severity", "told"),
    [
        ("", "", "medium"),
        ("low", "", "low"),
        ("high", "", "high"),
        ("critical", "", "critical"),
        ("low", "high", "high"),
    ],
)
def test_people_are_told_of_a_question_as_severely_as_much_depends_on_it(
    type: str, risk: str, severity: str, told: str
) -> None:
    one = ask(type, risk=risk, severity=severity)
    assert notice_of(waiting(one), "ask", one, T0).severity == told
    assert notice_again(waiting(one), "ask", one, T0).severity == told
