"""A question of a node: what it says, what each answer comes to, and how it is shown.

Documents are compiled, and the saga is carried on entry by entry; no clock here. What becomes of a question without an
answer is in test_human_closing.py.
"""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.expressions import iso
from baton.core.log import events as ev
from baton.core.log.questions import open_questions
from baton.core.log.records import Option, Takeover
from baton.core.log.state import ANSWER, status_of
from baton.core.read.definition_views import graph_view
from baton.core.read.views import saga_view
from tests.core.asked import notices_of, steps_of
from tests.core.build import T0, problems_of, ready
from tests.core.nodes.asking import (
    APPROVAL,
    DAY,
    DECISION,
    ERROR,
    HOUR,
    INPUT,
    TAKEOVER,
    USUAL,
    answer,
    asked,
    asking,
    compiled,
    output,
    said_by_no,
)
from tests.core.told import ROOM, story, why
from tests.kit.sentences import Says
from tests.kit.views import as_json, explain

# ---- what is asked


def test_a_question_is_opened_with_its_values_and_told_and_the_saga_is_suspended() -> None:
    saga = asking(APPROVAL)
    assert saga.kinds == ["question_opened", "notice_due"]
    ask = asked(saga)
    assert (ask.id, ask.type, ask.kind, ask.options) == (
        "0.ask",
        "approval",
        "approval",
        ("approve", "reject"),
    )
    assert (ask.title, ask.message, ask.details) == ("Book Ubuntu?", "For 4.", {"n": 4})
    assert (ask.asked_at, ask.expires_at, ask.to) == (T0, T0 + DAY, "")
    assert status_of(saga.state, saga.program) == "suspended"
    (notice,) = notices_of(saga.decision)
    assert (notice.to, notice.code, notice.message) == ("user", "approval", "Book Ubuntu?: For 4.")
    assert (saga.decision.due, steps_of(saga.decision)) == (T0 + DAY, ())
    assert saga.tell().due == T0 + DAY


@pytest.mark.parametrize(
    ("human", "type", "options"),
    [
        (APPROVAL, "approval", ("approve", "reject")),
        (INPUT, "input", ("submit",)),
        (TAKEOVER, "takeover", ("done",)),
        (ERROR, "error", ("done", "reject")),
        (DECISION, "decision", ("table", "home")),
        ("{type: approval, title: x, options: [{id: approve, label: Yes}, {id: reject}]}", "approval", ("approve", "reject")),
    ],
)  # fmt: skip
def test_each_type_is_known_by_what_it_has(human: str, type: str, options: tuple[str, ...]) -> None:
    ask = asked(asking(human))
    assert (ask.type, ask.actions) == (type, options)


def test_options_have_their_words_and_marks() -> None:
    assert asked(asking(DECISION)).options == (
        Option(id="table", label="A table for 4"),
        Option(id="home", destructive=True),
    )


def test_a_takeover_has_its_address_and_what_is_to_be_done() -> None:
    assert asked(asking(TAKEOVER)).takeover == Takeover(url="https://bank.test/login", instructions="Do it.")


@pytest.mark.parametrize(
    ("to", "kept"),
    [
        ("starter", ""),
        ("{user: '${input.name}'}", "user:Ubuntu"),
        ("{group: finance}", "group:finance"),
        ("{role: operate}", "role:operate"),
    ],
)
def test_a_question_is_for_whom_it_names(to: str, kept: str) -> None:
    saga = asking(f"{{title: x, to: {to}}}")
    assert asked(saga).to == kept
    assert notices_of(saga.decision)[0].to == (kept or "user")


def test_a_title_that_is_an_expression_alone_may_be_any_value() -> None:
    assert asked(asking("{title: '${input.party}'}")).title == "4"


@pytest.mark.parametrize(
    ("human", "given", "message"),
    [
        (TAKEOVER, {"url": "http://bank.test"}, "takeover.url: it must be an address that begins with https://"),
        (TAKEOVER, {"url": "https://ada:pw@bank.test"}, "takeover.url: it must be an address that begins with https://"),
        (TAKEOVER, {"url": "https:// bank"}, "takeover.url: it must be an address that begins with https://"),
        (TAKEOVER, {"url": "javascript:alert(1)"}, "takeover.url: it must be an address that begins with https://"),
        ("{title: x, takeover: {url: 'https://a', picture: '${input.url}'}}", {"url": "data:x"}, "takeover.picture: it must be an address that begins with https:// or cas://sha256/"),
        ("{title: x, to: {user: '${input.who}'}}", {"who": 7}, "to.user: it must be a name"),
        ("{title: x, to: {group: '${input.who}'}}", {"who": " "}, "to.group: it must be a name"),
        ("{title: x, details: '${input}'}", "x" * 40_000, "it says too much: it is larger than 32768 bytes"),
    ],
)  # fmt: skip
def test_a_question_that_cannot_be_asked_with_its_values_fails(human: str, given: Any, message: str) -> None:
    saga = asking(human, given)
    assert said_by_no(saga) == message
    assert "question_opened" not in [
        one.__struct_config__.tag for entry in saga.entries for one in entry.events
    ]


@pytest.mark.parametrize("period", ["", "@512d40"])
def test_a_picture_may_be_a_blob(period: str) -> None:
    picture = "cas://sha256/" + "0" * 64 + period
    saga = asking("{title: x, takeover: {url: 'https://a/b?c#d', picture: '${input}'}}", picture)
    assert asked(saga).takeover == Takeover(url="https://a/b?c#d", picture=picture)


def test_a_value_that_is_not_there_fails_the_node_as_it_does_any_other() -> None:
    saga = asking("{title: '${input.nothing}'}", catch=False)
    assert saga.state.failure is not None
    assert saga.state.failure.code == "input_unbound"


# ---- what an answer comes to


@pytest.mark.parametrize(
    ("human", "said"),
    [
        (APPROVAL, {"action": "approve", "comment": "Fine."}),
        (DECISION, {"action": "home"}),
        (INPUT, {"action": "submit", "data": {"n": 4}}),
        (TAKEOVER, {"action": "done"}),
        (ERROR, {"action": "done", "comment": "Refilled."}),
        ("{title: x, options: [{id: reject}, {id: b}]}", {"action": "reject"}),
    ],
)
def test_an_answer_is_the_output_with_who_gave_it_and_when(human: str, said: dict[str, Any]) -> None:
    saga = asking(human)
    saga.now += HOUR
    answer(saga, **said)
    assert ready(saga.go(after_ms=5)) == ["then"]
    assert saga.kinds == ["question_closed", "node_passed", "node_skipped"]
    assert output(saga) == {
        "answer": said["action"],
        "data": said.get("data"),
        "comment": said.get("comment"),
        "by": "bob",
        "at": iso(T0 + HOUR),
        "source": "person",
    }
    closed = saga.entries[-1].events[0]
    assert closed == ev.QuestionClosed(
        node="ask", ask="0.ask", action=said["action"], at=T0 + HOUR + 5, by="0.ask"
    )
    assert (saga.state.open, saga.state.signals) == ({}, ())


@pytest.mark.parametrize("human", [APPROVAL, ERROR])
@pytest.mark.parametrize("comment", ["Too dear.", ""])
def test_a_rejection_fails_the_node_and_catch_is_its_path(human: str, comment: str, says: Says) -> None:
    saga = asking(human)
    answer(saga, "reject", **({"comment": comment} if comment else {}))
    saga.go()
    assert saga.kinds[:2] == ["question_closed", "step_failed"]
    says(said_by_no(saga))
    assert saga.state.signals == ()


def test_a_rejection_without_a_path_fails_the_saga_for_good_and_is_not_asked_again() -> None:
    saga = asking(APPROVAL, catch=False)
    saga.tell()
    answer(saga, "reject")
    saga.go()
    ended = saga.state.ended
    assert ended is not None
    assert ended.failure is not None
    assert (ended.status, ended.failure.code, ended.failure.node) == ("failed", "rejected", "ask")


def test_a_large_answer_is_fetched_before_it_counts() -> None:
    saga = asking(INPUT)
    answer(saga, "submit", ref="cas://x")
    assert ready(saga.go()) == []
    said = {"ask": "0.ask", "action": "submit", "data": {"n": 9}}
    assert ready(saga.go(blobs={"cas://x": said})) == ["then"]
    assert output(saga)["data"] == {"n": 9}


def test_the_first_answer_in_the_log_counts_and_others_go_with_the_question() -> None:
    saga = asking(DECISION)
    ask = "0.ask"
    for key, action in (("k", "home"), ("l", "table")):
        said = ev.Value(v={"ask": ask, "action": action})
        event = ev.SignalReceived(name=ANSWER, key=f"{ask}/{key}", payload=said, by=key, at=T0)
        saga.put(event, epoch=0, invocation="api")
    saga.go()
    assert (output(saga)["answer"], output(saga)["by"], saga.state.signals) == ("home", "k", ())


def test_an_answer_to_another_question_is_none_to_this_one() -> None:
    saga = asking(APPROVAL)
    other = ev.SignalReceived(name=ANSWER, key="0.ask2", payload=ev.Value(v={}), by="bob", at=T0)
    saga.put(other, epoch=0, invocation="api")
    saga.go()
    assert [ask.id for _, ask in open_questions(saga.state)] == ["0.ask"]


# ---- how it is shown


def test_an_open_question_is_shown_with_what_the_node_waits_for(says: Says) -> None:
    saga = asking(APPROVAL)
    view = as_json(saga_view(saga.state, saga.program))
    (question,) = view["questions"]
    assert (question["id"], question["node"], question["title"]) == ("0.ask", "ask", "Book Ubuntu?")
    assert (question["asked_at"], question["expires_at"]) == (iso(T0), iso(T0 + DAY))
    assert question["for"] == [{"kind": "user", "name": "ada"}, {"kind": "role", "name": "operate"}]
    assert question["arguments"] is None
    assert view["active"] == [
        {"node": "ask", "iteration": [], "state": "asking", "ask": "0.ask", "until": iso(T0 + DAY)}
    ]
    says(why(saga, "ask"))


def test_the_way_of_a_saga_tells_what_was_answered(says: Says) -> None:
    saga = asking(APPROVAL)
    answer(saga, "approve")
    saga.go()
    says(why(saga, "ask"))
    saga = asking(USUAL)
    saga.go(after_ms=DAY)
    says(why(saga, "ask"))
    told = as_json(explain(story(saga), "ask", ROOM))
    assert told["iterations"][0]["state"] == "passed"


def test_a_question_that_closes_on_nothing_is_passed_over() -> None:
    saga = asking(APPROVAL)
    saga.put(ev.QuestionClosed(node="then", ask="?", action="expired", at=T0))
    saga.put(ev.QuestionClosed(node="ask", ask="?", action="expired", at=T0))
    assert saga.state.keys == {}
    assert [ask.id for _, ask in open_questions(saga.state)] == ["0.ask"]


def test_a_node_that_asks_is_shown_with_what_it_asks() -> None:
    (node,) = graph_view(compiled("{title: Well?, expires: 1h}", more="", catch=False).graph)["nodes"]
    assert (node["type"], node["title"], node["expires_ms"]) == ("approval", "Well?", HOUR)


@pytest.mark.parametrize(
    ("human", "when", "told"),
    [
        ("{title: x, options: [{id: a}]}", "ctx.ask.output.answer == 'b'", True),
        ("{title: x, options: [{id: a}, {id: b}]}", "ctx.ask.output.answer == 'b'", False),
        (INPUT, "ctx.ask.output.data.m == 1", True),
        (INPUT, "ctx.ask.output.data.n == 1", False),
        ("{title: x}", "ctx.ask.output.anser == 'approve'", True),
    ],
)
def test_what_an_answer_can_be_is_known_where_it_is_read(human: str, when: str, told: bool) -> None:
    text = f'name: w\nnodes:\n  ask: {{human: {human}}}\n  then: {{tool: t, after: ask, when: "{when}"}}'
    found = problems_of(text)
    assert bool(found) == told, found


def test_a_declared_schema_is_in_place_of_the_usual_one() -> None:
    text = (
        "name: w\nnodes:\n  ask: {human: {title: x}, output_schema: {type: object, properties: {by: {}}}}\n"
    )
    assert not problems_of(text + "  then: {tool: t, after: ask, when: 'has(ctx.ask.output.by)'}")


def test_a_saga_whose_questions_all_have_an_answer_is_no_longer_shown_as_suspended() -> None:
    """The answer is in the log, and the worker that takes it in has not come yet."""
    saga = asking(APPROVAL)
    saga.go()
    assert as_json(saga_view(saga.state, saga.program))["status"] == "suspended"
    saga.put(
        ev.SignalReceived(name=ANSWER, key=asked(saga).id, payload=ev.Value(v={}), by="bob", at=saga.now)
    )
    assert as_json(saga_view(saga.state, saga.program))["status"] == "running"
