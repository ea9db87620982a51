"""What a message says, and to which address a mail goes: values in, values out."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.adapters.channels.aws import MailNotices, address_of, cloud_event
from baton.adapters.channels.words import id_of, letter_of, line, notice_data, notice_kind, subject_of
from baton.core.log.events import Ask, Notice
from baton.core.log.records import Escalation, Option
from baton.ports import Telling
from baton.ports.outside import Letter
from tests.kit.sentences import Says

AT = 1_790_000_000_000
ASK = Ask(
    id="0.how",
    kind="decision",
    type="decision",
    title="How shall we pay?",
    message="40 dollars",
    details={"iban": "only those who may answer see it"},
    options=(
        Option(id="card", label="By card", default=True),
        Option(id="void", label="Cancel it", description="the table is gone", destructive=True),
        "later",
    ),
    expires_at=AT + 3_600_000,
)
NOTICE = Notice(
    key="s1/0.how",
    to="user",
    code="decision",
    message="How shall we pay?: 40 dollars",
    at=AT,
    node="how",
    ask="0.how",
)
TOLD = Telling(tenant="acme", saga="s1", user="ada@a.example", notice=NOTICE, now=AT + 5, ask=ASK)


class Post:
    """A `Mailer` that keeps its letters."""

    def __init__(self) -> None:
        self.letters: list[Letter] = []

    def send(self, letter: Letter) -> str:
        self.letters.append(letter)
        return "m1"


def test_a_mail_says_what_is_asked_by_which_saga_until_when_and_how_to_answer(says: Says) -> None:
    says(letter_of(TOLD))
    with_link = letter_of(replace(TOLD, link="https://a.example/c?t=1"))
    says(with_link)
    decided = Escalation(at=AT + 60_000, decide="void")
    asked = letter_of(replace(TOLD, ask=replace(ASK, risk="high", escalate=(decided,))))
    assert (
        "\n\nUntil: 2026-09-21T14:14:20.000Z\nRisk: high\n\nAnswer with" in asked
    )  # no answer counts after the decision
    form = letter_of(replace(TOLD, ask=replace(ASK, options=("submit",))))
    assert "\n  baton answer s1 0.how submit --data JSON\n" in form
    closed = letter_of(replace(TOLD, ask=None))
    assert "baton answer" not in closed
    assert closed.startswith("How shall we pay?")


@pytest.mark.parametrize(
    ("changes", "ask", "said", "titled"),
    [
        ({}, ASK, "[medium] Question: decision in s1", "[medium] Question: How shall we pay?"),
        (
            {},
            replace(ASK, title=""),
            "[medium] Question: decision in s1",
            "[medium] Question: decision in s1",
        ),
        ({"ask": ""}, None, "[medium] Notice: decision in s1", "[medium] Notice: decision in s1"),
        (
            {"incident": True, "severity": "high"},
            None,
            "[high] Incident: decision in s1",
            "[high] Incident: decision in s1",
        ),
    ],
)
def test_a_subject_says_what_it_is_about(
    changes: dict[str, Any], ask: Ask | None, said: str, titled: str
) -> None:
    told = replace(TOLD, notice=replace(NOTICE, **changes), ask=ask)
    assert (subject_of(told), subject_of(told, titled=True)) == (said, titled)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Pay?\r\nBcc: all@b.example", "Pay???Bcc: all@b.example"),
        ("a\x00\x1b[31m\u2028b\u202ec\ud800", "a??[31m?b?c?"),
        ("Überraschung 食", "Überraschung 食"),
        ("x" * 300, "x" * 197 + "..."),
    ],
)
def test_no_title_begins_a_header_or_hides_what_it_says(text: str, shown: str) -> None:
    post = Post()
    ask = replace(ASK, title=text)
    MailNotices(post, "desk@a.example", "{name}", "").tell(replace(TOLD, ask=ask))
    (letter,) = post.letters
    assert letter.subject == line(f"[medium] Question: {text}", 200)
    assert letter.subject.isprintable()
    assert len(letter.subject) <= 200
    assert line(text, 200) == shown
    assert letter.headers == {"Auto-Submitted": "auto-generated"}


OURS = "{name}@a.example"


@pytest.mark.parametrize(
    ("pattern", "name", "address"),
    [
        ("", "ada@a.example", ""),
        ("{name}", "ada@b.example", "ada@b.example"),
        ("{name}", "ada", ""),
        (OURS, "ada", "ada@a.example"),
        (OURS, "Ada@A.example", "Ada@A.example"),
        (OURS, "ada@b.example", ""),
        (OURS, "ada@b.example,eve", ""),
        (OURS, "ada\r\nBcc: eve", ""),
        (OURS, "ada <eve", ""),
        (OURS, "", ""),
        (OURS, "x" * 65, ""),
        ("baton+{name}@a.example", "ada", "baton+ada@a.example"),
        ("{name}", "ada@localhost", ""),
        ("{name}", "a@b@c.example", ""),
    ],
)
def test_an_address_is_made_by_the_pattern_and_no_name_leads_to_another_domain(
    pattern: str, name: str, address: str
) -> None:
    assert address_of(pattern, name) == address


@pytest.mark.parametrize(
    ("to", "address"),
    [
        ("user", "ada@a.example"),
        ("user:bob", "bob@a.example"),
        ("group:hosts", "hosts@lists.a.example"),
        ("role:operate", ""),
        ("on_call", ""),
    ],
)
def test_a_mail_goes_to_whom_the_notice_is_for_if_they_have_an_address(to: str, address: str) -> None:
    post = Post()
    channel = MailNotices(post, "desk@a.example", OURS, "{name}@lists.a.example")
    told = replace(TOLD, notice=replace(NOTICE, to=to))
    assert channel.reaches(told) == bool(address)
    if address:
        channel.tell(told)
        assert [(letter.sender, letter.to) for letter in post.letters] == [("desk@a.example", address)]


def test_programs_get_the_question_without_what_only_those_may_see_who_answer() -> None:
    assert notice_data(TOLD) == {
        "tenant": "acme",
        "saga": "s1",
        "user": "ada@a.example",
        "node": "how",
        "to": "user",
        "code": "decision",
        "severity": "medium",
        "message": "How shall we pay?: 40 dollars",
        "question": {
            "id": "0.how",
            "type": "decision",
            "options": ["card", "void", "later"],
            "title": "How shall we pay?",
            "expires_at": "2026-09-21T15:13:20.000Z",
        },
    }
    assert "question" not in notice_data(replace(TOLD, ask=None))
    linked = replace(TOLD, link="https://a.example")
    assert "link" not in notice_data(linked), "who listens to a bus may not answer"
    assert notice_data(linked, linked=True)["link"] == "https://a.example"
    kinds = [
        notice_kind(replace(TOLD, notice=replace(NOTICE, **one)))
        for one in ({}, {"incident": True}, {"ask": ""})
    ]
    assert kinds == ["baton.question.asked", "baton.incident.opened", "baton.notice.given"]


def test_an_id_is_the_same_for_every_try_and_no_others() -> None:
    first = id_of(TOLD, "webhook")
    assert id_of(replace(TOLD, now=AT + 99, saga="s2"), "webhook") == first
    assert "." not in first
    others = [
        id_of(TOLD, "events"),
        id_of(replace(TOLD, tenant="globex"), "webhook"),
        id_of(replace(TOLD, notice=replace(NOTICE, key="s1/0.how/2")), "webhook"),
        id_of(replace(TOLD, notice=replace(NOTICE, at=AT + 1)), "webhook"),
    ]
    assert len({first, *others}) == 5


def test_a_cloud_event_has_what_its_specification_requires() -> None:
    event = cloud_event(replace(TOLD, tenant="a b/c"))
    assert {name: event[name] for name in ("specversion", "source", "type", "subject", "time")} == {
        "specversion": "1.0",
        "source": "/baton/a%20b%2Fc",
        "type": "baton.question.asked",
        "subject": "s1",
        "time": "2026-09-21T14:13:20.000Z",
    }
    assert event["id"]
    assert event["datacontenttype"] == "application/json"
    # Attributes of the context are lower-case letters and digits.
    assert all(name.isalnum() and name.islower() for name in event)


def test_the_end_that_is_told_is_that_of_the_escalation_where_this_decides_earlier() -> None:
    early = replace(TOLD, ask=replace(ASK, escalate=(Escalation(at=AT + 60_000, decide="card"),)))
    end = "2026-09-21T14:14:20.000Z"
    assert f"Until: {end}" in letter_of(early)
    assert notice_data(early)["question"]["expires_at"] == end
