"""What `baton events` says of questions and of work elsewhere: sentences, with times that a person reads."""

from __future__ import annotations

import re
from typing import Any

import pytest
from msgspec.structs import replace

from baton.cli.text.render import EventLines
from baton.core.log import events as ev
from baton.core.log.records import Escalation
from baton.core.read.views import entry_view
from tests.kit.sentences import Says

T0 = 1_795_458_562_846
HOUR = 3_600_000
ASK = ev.Ask(
    id="0.cook",
    kind="approval",
    type="approval",
    title="Can you cook?",
    message="For\n3.",
    options=("approve", "reject"),
    to="group:kitchen",
    asked_at=T0,
    expires_at=T0 + 4 * HOUR,
    escalate=(Escalation(at=T0 + HOUR), Escalation(at=T0 + 2 * HOUR, to="role:operate")),
)
NOTICE = ev.Notice(
    key="s/0.cook", to="group:kitchen", code="approval", message="Can you cook?", node="cook", ask="0.cook"
)


def said(*events: ev.Event) -> list[str]:
    """What stands behind version and time, with two spaces between columns."""
    entry = ev.Entry(version=2, branch=0, at=T0, epoch=1, invocation="i", events=events)
    columns = [str(line)[21:].split(None, 1) for line in EventLines().of(entry_view(entry))][1:]
    return [f"{kind}  {re.sub(' {2,}', '  ', rest)}" for kind, rest in columns]


def answer(**more: Any) -> ev.SignalReceived:
    value = ev.Value(v={"ask": "0.cook", "action": "approve", **more})
    return ev.SignalReceived(name=":answer", key="0.cook/k", payload=value, by="bob", at=T0)


def closed(action: str = "approve", by: str = "") -> ev.QuestionClosed:
    return ev.QuestionClosed(node="cook", ask="0.cook", action=action, at=T0, by=by)


def claimed(to: str = "") -> ev.QuestionClaimed:
    return ev.QuestionClaimed(node="cook", ask="0.cook", at=T0, by="bob", to=to)


def escalated(**more: Any) -> ev.QuestionEscalated:
    return ev.QuestionEscalated(node="cook", ask="0.cook", at=T0, **more)


CASES: list[ev.Event] = [
    ev.QuestionOpened(node="cook", ask=ASK),
    claimed(to="user:bob"),
    claimed(),
    escalated(due=T0),
    escalated(by="eve"),
    escalated(due=T0, to="role:operate"),
    escalated(due=T0, to=""),
    answer(),
    answer(comment="Fine."),
    closed("expired"),
    closed("reject"),
    closed(by="0.cook"),
    ev.NoticeDue(notice=NOTICE),
    ev.NoticesSent(keys=("a", "b"), shown={"0.cook": ev.Shown(to="user:bob", until=T0)}, withdrawn=("0.x",)),
    ev.CallbackHeartbeat(node="print", callback="c", at=T0),
]


@pytest.mark.parametrize("event", CASES)
def test_an_event_about_a_question_is_a_sentence(event: ev.Event, says: Says) -> None:
    says(said(event))


def test_the_end_of_a_question_says_who_has_answered_it(says: Says) -> None:
    says(said(answer(), closed(by="0.cook/k"))[1])


def test_what_an_answer_brings_stands_behind_its_sentence(says: Says) -> None:
    (line,) = said(answer(data={"seats": 4}, comment="Yes."))
    says(line)
    assert '"seats": 4' in line
    large = ev.SignalReceived(
        name=":answer", key="0.cook", payload=ev.Value(ref="cas://sha256/ab", size=9_000), by="bob", at=T0
    )
    assert "payload=cas://sha256/ab (9,000 bytes)" in said(large)[0]


def test_work_elsewhere_says_until_when_it_is_waited_for(says: Says) -> None:
    opened = ev.CallbackOpened(
        node="print",
        callback="c",
        until=T0 + HOUR,
        attempt=1,
        started_at=T0 - 250,
        ended_at=T0,
        tool="t",
        tool_version="1",
        schema_hash="h",
        heartbeat_ms=30_000,
    )
    (line,) = said(opened)
    says(line)
    asked = ev.Response(id="resp_1", model="m", held=9)
    (line,) = said(replace(opened, heartbeat_ms=0, response=asked, cost=9, assumed=9))
    says(line)
    assert line.endswith("  cost=$0.000009")


def test_no_event_shows_a_time_or_a_length_of_time_as_a_number() -> None:
    shown = {"0.cook": ev.Shown(to="user:bob", until=T0), "0.x": ev.Shown(to="user:bob")}
    entry = ev.Entry(
        version=2,
        branch=0,
        at=T0,
        invocation="i",
        events=(ev.QuestionOpened(node="cook", ask=ASK), ev.NoticesSent(keys=("a",), shown=shown)),
    )
    assert "17954" not in str(entry_view(entry)), "of the API, too"
    assert entry_view(entry)["events"][1]["shown"]["0.cook"]["until"] == "2026-11-23T18:29:22.846Z"
    cancel = ev.CancelRequested(reason="ill", by="bob", at=T0, grace_ms=30_000)
    assert said(cancel) == ["cancel_requested  reason=ill  by=bob  grace=30.0 s"]
