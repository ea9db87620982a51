"""What happens to a question of a node while it has no answer: people are told again, others are asked, or it is decided."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.expressions import iso
from baton.core.log import events as ev
from baton.core.log.questions import awaited_question, closed_by_time, may_answer
from baton.core.log.records import Escalation
from baton.core.read.definition_views import graph_view
from baton.core.read.views import entry_view, saga_view
from baton.errors import NotAllowedNow
from tests.core.build import T0, Saga, ready
from tests.core.nodes.asking import DAY, HOUR, answer, asked, asking, output
from tests.core.told import ROOM, story, why
from tests.kit.sentences import Says
from tests.kit.views import as_json, explain

STEPS = (
    "[{after: 4h, remind: true}, {after: 8h, hand_on: {group: '${input.name}'}}, {after: 12h, decide: %s}]"
)
POLICY = "{title: Book?, to: {group: hosts}, risk: low, escalate: " + STEPS % "approve" + "}"
REJECTS = "{title: Book?, to: {group: hosts}, escalate: " + STEPS % "reject" + "}"
CHOOSES = (
    "{title: How?, options: [{id: a}, {id: reject}], risk: critical, escalate: [{after: 1h, decide: reject}]}"
)
REMINDS = "{title: Book?, escalate: [{after: 1h, remind: true}, {after: 2h, remind: true}, {after: 3h, hand_on: starter}]}"


def open_ask(saga: Saga) -> ev.Ask:
    ask = saga.state.open["ask"].ask
    assert ask is not None
    return ask


def told(saga: Saga) -> list[tuple[str, str, str]]:
    """Key, audience and words of the notices of the last entry."""
    return [
        (one.notice.key, one.notice.to, one.notice.message)
        for one in saga.entries[-1].events
        if isinstance(one, ev.NoticeDue)
    ]


def test_the_steps_are_a_part_of_the_question_from_its_beginning() -> None:
    ask = asked(asking(POLICY))
    assert ask.escalate == (
        Escalation(at=T0 + 4 * HOUR),
        Escalation(at=T0 + 8 * HOUR, to="group:Ubuntu"),
        Escalation(at=T0 + 12 * HOUR, decide="approve"),
    )
    assert (ask.risk, ask.due, ask.ends_at, ask.expires_at) == (
        "low",
        T0 + 4 * HOUR,
        T0 + 12 * HOUR,
        T0 + DAY,
    )


def test_it_is_due_at_the_nearest_of_the_next_step_and_its_end() -> None:
    saga, due = asking(POLICY), []
    for _ in range(3):
        due.append(saga.decision.due)
        saga.go(after_ms=4 * HOUR)
    assert due == [T0 + 4 * HOUR, T0 + 8 * HOUR, T0 + 12 * HOUR]
    assert (
        asking(REMINDS.replace("1h", "23h").split(", {after")[0] + "]}").go(after_ms=23 * HOUR).due
        == T0 + DAY
    )


def test_a_reminder_tells_its_audience_again_under_a_key_of_its_own() -> None:
    saga = asking(POLICY)
    saga.go(after_ms=4 * HOUR - 1)
    assert saga.kinds == ["question_opened", "notice_due"]
    saga.go(after_ms=1)
    assert saga.kinds == ["question_escalated", "notice_due"]
    assert told(saga) == [(f"s1/0/0.ask/{T0 + 4 * HOUR}", "group:hosts", "Reminder: Book?")]
    assert open_ask(saga).told_at == T0 + 4 * HOUR


def test_what_was_done_is_not_done_again() -> None:
    saga = asking(POLICY)
    saga.go(after_ms=5 * HOUR)
    entries = len(saga.entries)
    saga.die()
    saga.go(after_ms=HOUR)
    assert len(saga.entries) == entries + 1
    saga.put(*saga.entries[entries - 1].events)
    assert len(open_ask(saga).escalate) == 2
    assert len(saga.state.outbox.due) == 2


def test_after_it_was_handed_on_the_new_audience_answers_and_the_former_may_not() -> None:
    saga = asking(POLICY)
    saga.go(after_ms=4 * HOUR)
    saga.go(after_ms=4 * HOUR)
    assert told(saga) == [(f"s1/0/0.ask/{T0 + 8 * HOUR}", "group:Ubuntu", "Handed on: Book?")]
    assert may_answer(saga.state, open_ask(saga)) == (("group", "Ubuntu"), ("role", "operate"))


@pytest.mark.parametrize(
    ("human", "ends"),
    [
        (POLICY, {"answer": "approve", "data": None, "comment": None, "by": None, "source": "policy"}),
        (CHOOSES, {"answer": "reject", "data": None, "comment": None, "by": None, "source": "policy"}),
    ],
)
def test_its_last_step_decides_and_the_output_says_that_no_person_did(
    human: str, ends: dict[str, Any]
) -> None:
    saga = asking(human)
    at = open_ask(saga).ends_at
    saga.go(after_ms=at - T0)
    assert output(saga) == ends | {"at": iso(at)}
    assert [event.by for event in saga.entries[-1].events if isinstance(event, ev.QuestionClosed)] == [""]


def test_an_approval_that_its_last_step_rejects_fails(says: Says) -> None:
    saga = asking(REJECTS, catch=False)
    saga.go(after_ms=12 * HOUR)
    assert saga.state.ended is not None
    says(saga.state.ended.failure)


@pytest.mark.parametrize(
    ("slept", "kinds", "messages", "left"),
    [
        (HOUR, ["question_escalated", "notice_due"], ["Reminder: Book?"], 2),
        (2 * HOUR, ["question_escalated"] * 2 + ["notice_due"], ["Reminder: Book?"], 1),
        (4 * HOUR, ["question_escalated"] * 3 + ["notice_due"], ["Handed on: Book?"], 0),
    ],
)
def test_a_worker_that_slept_does_all_steps_in_their_order_in_one_entry_and_tells_people_of_the_last(
    slept: int, kinds: list[str], messages: list[str], left: int
) -> None:
    saga = asking(REMINDS)
    before = len(saga.entries)
    saga.go(after_ms=slept, room=1)
    assert len(saga.entries) == before + 1
    assert saga.kinds == kinds
    assert [message for _, _, message in told(saga)] == messages
    assert len(open_ask(saga).escalate) == left


def test_steps_that_the_end_of_a_question_has_overtaken_are_not_taken() -> None:
    saga = asking(REMINDS)
    saga.go(after_ms=DAY)
    assert [event.action for event in saga.entries[2].events if isinstance(event, ev.QuestionClosed)] == [
        "expired"
    ]
    assert not any(
        isinstance(event, ev.QuestionEscalated) for entry in saga.entries for event in entry.events
    )
    assert len(saga.state.outbox.due) == 1


def test_a_question_that_was_told_late_is_not_told_twice() -> None:
    saga = asking(REMINDS)
    saga.go(after_ms=2 * HOUR)
    saga.tell()
    saga.go(after_ms=HOUR - 1)
    assert saga.state.outbox.due == ()


@pytest.mark.parametrize("late_ms", [0, 1, DAY])
def test_an_answer_that_is_in_the_log_counts_whatever_was_due_before_a_worker_looked(late_ms: int) -> None:
    saga = asking(POLICY)
    saga.now += 12 * HOUR
    answer(saga, "approve", by="eve")
    assert ready(saga.go(after_ms=late_ms)) == ["then"]
    assert (output(saga)["by"], output(saga)["source"]) == ("eve", "person")


def test_who_answers_after_its_last_step_is_told_that_it_was_decided(says: Says) -> None:
    saga = asking(POLICY)
    late = saga.now + 12 * HOUR
    with says.raised(NotAllowedNow):
        awaited_question(saga.state, "0.ask", late)
    assert awaited_question(saga.state, "0.ask", late - 1)[0] == "ask"
    saga.go(after_ms=12 * HOUR)
    assert closed_by_time(saga.state, "0.ask") == "policy"
    with says.raised(NotAllowedNow):
        awaited_question(saga.state, "0.ask", late)


# ---- forks


def test_a_fork_to_where_it_was_open_leaves_it_the_steps_and_the_time_that_were_left() -> None:
    saga = asking(POLICY)
    saga.go(after_ms=4 * HOUR)
    cut = saga.state.version
    saga.go(after_ms=4 * HOUR)
    saga.tell()
    saga.now += DAY
    saga.put(ev.Forked(cut=cut, branch=1, by="ada", at=saga.now), epoch=0)
    ask = open_ask(saga)
    assert (ask.to, [step.at - saga.now for step in ask.escalate]) == ("group:hosts", [4 * HOUR, 8 * HOUR])
    assert ask.expires_at == saga.now + 20 * HOUR
    saga.go(after_ms=4 * HOUR)
    (key, to, _), *_ = told(saga)
    assert (key, to) == (f"s1/1/0.ask/{saga.now}", "group:Ubuntu")


def test_a_fork_leaves_a_question_that_has_not_changed_since_the_cut_as_it_is() -> None:
    saga = asking(POLICY)
    before = open_ask(saga)
    saga.now += HOUR
    saga.put(ev.Forked(cut=saga.state.version, branch=1, by="ada", at=saga.now), epoch=0)
    assert open_ask(saga) == before


# ---- what is shown


def test_it_is_shown_what_is_waited_for_since_when_from_whom_and_what_comes_next() -> None:
    saga = asking(POLICY)
    (shown,) = as_json(saga_view(saga.state, saga.program))["questions"]
    assert shown["escalate"] == [
        {"at": iso(T0 + 4 * HOUR), "action": "remind", "to": None, "answer": None},
        {
            "at": iso(T0 + 8 * HOUR),
            "action": "hand_on",
            "to": {"kind": "group", "name": "Ubuntu"},
            "answer": None,
        },
        {"at": iso(T0 + 12 * HOUR), "action": "decide", "to": None, "answer": "approve"},
    ]
    assert (shown["risk"], shown["claim"], shown["told_at"]) == ("low", None, None)
    saga.go(after_ms=4 * HOUR)
    assert as_json(saga_view(saga.state, saga.program))["questions"][0]["told_at"] == iso(T0 + 4 * HOUR)
    (active,) = as_json(saga_view(saga.state, saga.program))["active"]
    assert active["until"] == iso(T0 + 12 * HOUR)
    node = next(one for one in graph_view(saga.program.graph)["nodes"] if one["name"] == "ask")
    assert (node["risk"], node["escalate"][0]) == ("low", {"after_ms": 4 * HOUR, "remind": True})


def test_the_log_is_shown_with_times() -> None:
    saga = asking(POLICY)
    opened = entry_view(saga.entries[-1])["events"][0]
    assert opened["ask"]["escalate"][0] == {"at": iso(T0 + 4 * HOUR)}
    saga.go(after_ms=4 * HOUR)
    assert entry_view(saga.entries[-1])["events"][0]["due"] == iso(T0 + 4 * HOUR)


def test_the_way_of_a_saga_says_what_has_happened_to_its_question(says: Says) -> None:
    saga = asking(REMINDS)
    saga.go(after_ms=HOUR)
    saga.go(after_ms=2 * HOUR)
    says(why(saga, "ask"))
    saga = asking(POLICY)
    saga.go(after_ms=12 * HOUR)
    text = as_json(explain(story(saga), "ask", ROOM))["iterations"][0]["text"]
    says(text)


# ---- what makes no question


@pytest.mark.parametrize("name", ["' '", "'${input.party}'"])
def test_a_question_that_is_handed_on_to_no_name_makes_no_question(name: str, says: Says) -> None:
    saga = asking(f"{{title: x, escalate: [{{after: 1h, hand_on: {{group: {name}}}}}]}}")
    says(output(saga, "no"))
