"""`baton inbox`, `answer`, `incidents` and `resolve`, and `resume --budget`: what they send and say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

ACCEPTED = (202, {"id": "s1", "status": "running", "version": 7, "changed": True})
SAME = (202, ACCEPTED[1] | {"changed": False})
INCIDENT = {
    "id": "i1",
    "status": "open",
    "saga": "s1",
    "node": "pay",
    "code": "service_down",
    "message": "The service\nis down.",
    "severity": "high",
    "opened_at": "2026-01-01T00:00:00.000Z",
    "resolved_at": None,
    "resolved_by": None,
}


def asking(*ids: str) -> tuple[int, Any]:
    questions = [{"id": one, "options": ["retry", "use", "fail"]} for one in ids]
    return 200, {"id": "s1", "status": "suspended", "questions": questions}


@pytest.mark.parametrize(
    ("words", "sent"),
    [
        (["0.pay.3", "retry"], {"ask": "0.pay.3", "action": "retry"}),
        (["retry"], {"ask": "0.book.1", "action": "retry"}),
        (["retry", "--with", '{"n": 2}'], {"ask": "0.book.1", "action": "retry", "arguments": {"n": 2}}),
        (["use", "--output", "null"], {"ask": "0.book.1", "action": "use", "output": None}),
        (["0.pay.3", "fail"], {"ask": "0.pay.3", "action": "fail"}),
        (["approve", "--comment", "Nice."], {"ask": "0.book.1", "action": "approve", "comment": "Nice."}),
        (["submit", "--data", '{"n": 4}'], {"ask": "0.book.1", "action": "submit", "data": {"n": 4}}),
        (["0.pay.3", "delivery"], {"ask": "0.pay.3", "action": "delivery"}),
    ],
)
def test_an_answer_names_its_question_which_is_the_only_one_if_none_is_said(
    api: FakeApi, baton: Baton, words: list[str], sent: dict[str, Any], says: Says
) -> None:
    api.on("GET /sagas/s1", asking("0.book.1"))
    api.on("POST /sagas/s1/answer", ACCEPTED)
    result = baton("answer", "s1", *words)
    (asked,) = api.of("POST", "/sagas/s1/answer")
    assert (result.exit_code, asked.json) == (0, sent)
    assert "idempotency-key" not in asked.headers
    says(result.stdout)
    assert len(api.asked) == (1 if "0.pay.3" in words else 2)


def test_an_answer_can_have_a_key_and_be_shown_as_json(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/s1/answer", ACCEPTED)
    result = baton("answer", "s1", "q", "fail", "--key", "k", "--json")
    assert json.loads(result.stdout) == ACCEPTED[1]
    assert api.asked[0].headers["idempotency-key"] == "k"


@pytest.mark.parametrize(
    ("words", "sent", "said"),
    [
        (["claim"], {"release": False}, "claimed 0.book.1"),
        (["claim", "--release"], {"release": True}, "released 0.book.1"),
        (["remind"], {}, "reminds of 0.book.1"),
    ],
)
def test_a_question_is_claimed_released_and_reminded_of(
    api: FakeApi, baton: Baton, words: list[str], sent: dict[str, Any], said: str
) -> None:
    command, *options = words
    api.on("GET /sagas/s1", asking("0.book.1"))
    api.on(f"POST /sagas/s1/{command}", ACCEPTED)
    assert baton(command, "s1", *options).stdout == f"s1  {said}\n"
    assert json.loads(baton(command, "s1", "0.book.1", *options, "--json").stdout) == ACCEPTED[1]
    for asked in api.of("POST", f"/sagas/s1/{command}"):
        assert asked.json == {"ask": "0.book.1"} | sent
        assert "idempotency-key" not in asked.headers


@pytest.mark.parametrize(
    "words",
    [
        ["claim"],
        ["claim", "--release"],
        ["answer", "approve"],
    ],
)
def test_what_changes_nothing_is_said_to_and_succeeds(
    api: FakeApi, baton: Baton, words: list[str], says: Says
) -> None:
    command, *rest = words
    api.on("GET /sagas/s1", asking("0.book.1"))
    api.on(f"POST /sagas/s1/{command}", SAME)
    result = baton(command, "s1", *rest)
    assert result.exit_code == 0
    says(result.stdout)


def test_an_answer_without_a_question_that_is_open_is_to_the_one_that_was_answered_last(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    events = [
        {"kind": "signal_received", "name": ":answer", "key": "0.cook"},
        {"kind": "signal_received", "name": ":answer", "key": "0.wine/a-key", "by": "me"},
        {"kind": "signal_received", "name": "bell", "key": "k"},
    ]
    ended = {"id": "s1", "status": "completed", "questions": []}
    api.on("GET /sagas/s1", (200, ended))
    api.on("GET /sagas/s1/events", (200, {"entries": [{"version": 1, "events": events}], "next": None}))
    api.on("POST /sagas/s1/answer", SAME)
    result = baton("answer", "s1", "red")
    assert result.exit_code == 0
    says(result.stdout)
    assert api.of("POST", "/sagas/s1/answer")[0].json == {"action": "red", "ask": "0.wine"}
    api.on("POST /sagas/s1/answer", (409, {"title": "No", "detail": "question `0.wine` has been answered"}))
    result = baton("answer", "s1", "white")
    assert result.exit_code == 3
    says(result.stderr)
    api.on("GET /sagas/s1/events", (200, {"entries": [], "next": None}))
    says(baton("answer", "s1", "red").stderr)
    assert baton("claim", "s1").exit_code == 3, "what is answered cannot be claimed"


def test_of_several_questions_one_must_be_named(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /sagas/s1", asking("0.book.1", "0.pay.3"))
    result = baton("answer", "s1", "retry")
    assert result.exit_code == 2
    says(result.stderr)
    api.on("GET /sagas/s1/events", (200, {"entries": [], "next": None}))
    api.on("GET /sagas/s1", asking())
    says(baton("answer", "s1", "retry").stderr)
    api.on("GET /sagas/s1", (200, {"id": "s1", "status": "failed", "questions": []}))
    says(baton("answer", "s1", "retry").stderr)


def waiting_for(saga: str, *children: str) -> tuple[int, Any]:
    active = [{"node": "w", "state": "child", "saga": child} for child in children]
    return 200, {"id": saga, "status": "waiting", "questions": [], "active": active}


def test_an_answer_to_a_saga_that_asks_nothing_goes_to_the_only_question_below_it(
    api: FakeApi, baton: Baton
) -> None:
    api.on("GET /sagas/s1", waiting_for("s1", "s1.a"))
    api.on("GET /sagas/s1.a", waiting_for("s1.a", "s1.a.b"))
    api.on("GET /sagas/s1.a.b", asking("0.pay.3"))
    for command in ("answer", "claim", "remind"):
        api.on(f"POST /sagas/s1.a.b/{command}", (202, ACCEPTED[1] | {"id": "s1.a.b"}))
        result = baton(command, "s1", *(["approve"] if command == "answer" else []))
        assert (result.exit_code, result.stdout.split()[0]) == (0, "s1.a.b")
        assert api.of("POST", f"/sagas/s1.a.b/{command}")[0].json["ask"] == "0.pay.3"


def test_of_several_questions_below_a_saga_each_is_named_with_its_child(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    api.on("GET /sagas/s1", waiting_for("s1", "s1.a", "s1.b"))
    api.on("GET /sagas/s1.a", asking("0.pay.3"))
    api.on("GET /sagas/s1.b", asking("0.w#1"))
    result = baton("answer", "s1", "approve")
    assert result.exit_code == 2
    says(result.stderr)


def test_show_says_how_to_answer(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /sagas/s1", asking("0.book.1"))
    result = baton("show", "s1")
    assert result.stderr.startswith("Answer it with: ")
    says(result.stderr)


def test_show_says_how_to_answer_each_of_several_questions_and_where_the_rest_is(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    questions = [{"id": "0.form", "options": ["submit"], "schema": {"type": "object"}}]
    questions += [{"id": f"0.{n}", "options": ["yes", "no"]} for n in range(5)]
    api.on("GET /sagas/s1", (200, {"id": "s1", "status": "suspended", "questions": questions}))
    said = baton("show", "s1").stderr.splitlines()
    says(said[0])
    assert [line.partition(" answer ")[2] for line in said[1:-1]] == [f"s1 0.{n} yes|no" for n in range(4)]
    assert said[-1].startswith("… and 1 more: ")
    assert said[-1].endswith(" inbox --saga s1")


def test_show_says_that_data_are_asked_for(api: FakeApi, baton: Baton, says: Says) -> None:
    question = {"id": "0.form", "options": ["submit"], "type": "input", "schema": {"type": "object"}}
    api.on("GET /sagas/s1", (200, {"id": "s1", "status": "suspended", "questions": [question]}))
    says(baton("show", "s1").stderr)


def test_what_is_no_answer_is_not_sent(api: FakeApi, baton: Baton, says: Says) -> None:
    result = baton("answer", "s1")
    assert (result.exit_code, api.asked) == (2, [])
    says(result.stderr)


def test_a_saga_is_resumed_with_what_it_may_spend(api: FakeApi, baton: Baton) -> None:
    api.on("POST /sagas/s1/resume", ACCEPTED)
    for options, sent in (([], {}), (["--budget", "2.50"], {"budget_usd": "2.50"})):
        assert baton("resume", "s1", *options).exit_code == 0
        assert api.asked[-1].json == sent


def test_incidents_are_listed_one_a_line_the_open_ones_if_nothing_is_said(api: FakeApi, baton: Baton) -> None:
    api.on("GET /incidents", (200, {"incidents": [INCIDENT], "next": None}))
    result = baton("incidents")
    header, line = result.stdout.splitlines()
    assert header.split("  ")[0] == "incident"
    assert line.split() == [
        *("i1", "2026-01-01", "00:00:00", "open", "high", "s1", "pay", "service_down:"),
        *("The", "service\\nis", "down."),
    ]
    assert api.asked[0].query == {"status": "open", "limit": "50"}
    baton("incidents", "--status", "all", "--all")
    assert api.asked[1].query == {"limit": "100"}


def test_more_incidents_can_be_asked_for_also_by_programs(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /incidents", (200, {"incidents": [INCIDENT], "next": "c2"}))
    result = baton("incidents", "--limit", "1")
    says(result.stderr)
    result = baton("incidents", "--limit", "1", "--cursor", "c1", "--json")
    assert json.loads(result.stdout) == {"incidents": [INCIDENT], "next": "c2"}
    assert api.asked[-1].query == {"status": "open", "limit": "1", "cursor": "c1"}


@pytest.mark.parametrize(("status", "said"), [("open", "no such incidents\n"), ("all", "no incidents yet\n")])
def test_no_incidents_are_said_to_be_none(api: FakeApi, baton: Baton, status: str, said: str) -> None:
    api.on("GET /incidents", (200, {"incidents": [], "next": None}))
    result = baton("incidents", "--status", status)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", said)


def test_an_incident_is_acknowledged_and_shown(api: FakeApi, baton: Baton, says: Says) -> None:
    taken = {
        **INCIDENT,
        "acknowledged_by": "ada",
        "acknowledged_at": "2026-01-01T00:00:01Z",
        "note": "mine\x1b",
    }
    api.on("POST /incidents/i1/acknowledge", (202, taken))
    says(baton("acknowledge", "i1", "--note", "mine").stdout)
    assert api.asked[-1].json == {"note": "mine"}
    api.on("GET /incidents/i1", (200, taken))
    shown = baton("incidents", "i1").stdout
    assert "  acknowledged  " in shown
    says(shown)
    assert json.loads(baton("incidents", "i1", "--json").stdout) == taken


def test_an_incident_is_resolved(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("POST /incidents/i1/resolve", (202, {**INCIDENT, "status": "resolved", "resolved_by": "ada"}))
    says(baton("resolve", "i1").stdout)
    assert json.loads(baton("resolve", "i1", "--json").stdout)["status"] == "resolved"


QUESTION = {
    "saga": "s1",
    "workflow": "dinner",
    "id": "0.ok",
    "type": "approval",
    "kind": "approval",
    "title": "Book it?",
    "message": "For\nsix.",
    "for": {"kind": "group", "name": "hosts"},
    "options": ["approve", "reject"],
    "asked_at": "2026-01-01T00:00:00.000Z",
    "expires_at": "2026-01-02T00:00:00.000Z",
    "told": True,
    "answer_at": "/sagas/s1/answer",
}


def test_the_inbox_lists_what_is_for_the_caller_one_question_a_line(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    api.on("GET /questions", (200, {"questions": [QUESTION], "next": "c2"}))
    result = baton("inbox", "--limit", "1")
    header, line = result.stdout.splitlines()
    assert header.split("  ")[0] == "saga"
    assert line.split()[:3] == ["s1", "0.ok", "approval"]
    assert line.endswith("2026-01-02 00:00:00  group hosts  yes   Book it?: For\\nsix.")
    assert result.stderr.splitlines()[0].endswith("baton answer s1 0.ok approve|reject")
    says(result.stderr)
    api.on("GET /questions", (200, {"questions": [QUESTION], "next": None}))
    assert json.loads(baton("inbox", "--json", "--cursor", "c2").stdout) == {
        "questions": [QUESTION],
        "next": None,
    }
    assert api.asked[-1].query == {"limit": "50", "cursor": "c2"}


def test_the_inbox_says_how_to_answer_what_it_lists(api: FakeApi, baton: Baton, says: Says) -> None:
    form = QUESTION | {"id": "0.form", "type": "input", "options": ["submit"]}
    api.on("GET /questions", (200, {"questions": [form], "next": None}))
    says(baton("inbox").stderr)
    api.on("GET /questions", (200, {"questions": [form, QUESTION], "next": None}))
    said = baton("inbox").stderr.splitlines()
    says(said[0])
    says(said[1])
    assert said[1].endswith("baton show SAGA")


def test_the_inbox_of_one_saga_takes_the_beginning_of_its_id(api: FakeApi, baton: Baton) -> None:
    saga = "ke86ac0b2fc999c27f7bdbc0e5"
    gone = {"title": "Not found", "detail": f"there is no saga `{saga[:8]}`"}
    api.on("GET /questions", (404, gone), (200, {"questions": [QUESTION], "next": None}))
    api.on("GET /sagas", (200, {"sagas": [{"id": saga, "workflow": "w", "status": "running"}], "next": None}))
    result = baton("inbox", "--saga", saga[:8], "--json")
    assert json.loads(result.stdout) == {"questions": [QUESTION], "next": None}
    assert api.asked[-1].query == {"saga": saga, "limit": "50"}


@pytest.mark.parametrize("more", [(), ("--saga", "s1")])
def test_an_empty_inbox_says_so(api: FakeApi, baton: Baton, more: tuple[str, ...], says: Says) -> None:
    api.on("GET /questions", (200, {"questions": [], "next": None}))
    says(baton("inbox", *more).stderr)


def test_an_output_that_is_missing_is_asked_for_by_its_option(api: FakeApi, baton: Baton, says: Says) -> None:
    result = baton("answer", "s1", "use")
    assert result.exit_code != 0
    says(result.stderr)
    assert not api.asked
