"""`baton dlq`: what it sends, shows and refuses."""

from __future__ import annotations

import json
from typing import Any

import pytest

from baton.client.exits import REFUSED
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says

LETTER: dict[str, Any] = {
    "id": "s1",
    "status": "pending",
    "saga": "s1",
    "node": "pay",
    "version": 4,
    "code": "unreadable_log",
    "reason": "CorruptLog: an entry\ndoes not decode",
    "source": "wakes",
    "messages": 2,
    "attempts": 3,
    "first_at": "2026-01-01T00:00:00.000Z",
    "last_at": "2026-01-01T01:00:00.000Z",
    "redrives": 1,
    "redrives_left": 2,
    "decided_by": "ada",
    "message": "{}",
}
ANSWER = {"matched": 2, "redriven": 2, "refused": [], "next": None}


def test_a_list_is_filtered_and_shown_as_a_table(api: FakeApi, baton: Baton) -> None:
    api.on("GET /dead-letters", (200, {"dead_letters": [LETTER], "next": None}))
    result = baton("dlq", "list", "--saga", "s1", "--node", "pay", "--reason", "decode")
    assert result.exit_code == 0, result.output
    assert "unreadable_log: CorruptLog: an entry\\ndoes not decode" in " ".join(result.output.split())
    (asked,) = api.of("GET", "/dead-letters")
    assert asked.query == {
        "status": "pending",
        "saga": "s1",
        "node": "pay",
        "reason": "decode",
        "limit": asked.query["limit"],
    }


def test_a_list_for_programs_goes_on_to_its_end(api: FakeApi, baton: Baton) -> None:
    pages: list[Any] = [
        (200, {"dead_letters": [LETTER], "next": "more"}),
        (200, {"dead_letters": [LETTER], "next": None}),
    ]
    api.on("GET /dead-letters", *pages)
    result = baton("dlq", "list", "--all", "--json")
    assert json.loads(result.stdout) == {"dead_letters": [LETTER, LETTER], "next": None}


def test_a_letter_is_shown_with_all_that_is_known(api: FakeApi, baton: Baton) -> None:
    api.on("GET /dead-letters/s1", (200, LETTER))
    shown = baton("dlq", "show", "s1").output
    assert "redrives left" in shown
    assert json.loads(baton("dlq", "show", "s1", "--json").stdout) == LETTER


def test_letters_are_redriven_one_by_one_and_those_before_a_refusal_are_told(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    api.on("POST /dead-letters/s1/redrive", (202, LETTER))
    api.on("POST /dead-letters/message~1/redrive", (409, {"title": "No", "detail": "it names no saga"}))
    result = baton("dlq", "redrive", "s1", "message~1", "--force")
    assert result.exit_code != 0
    says(result.output)
    assert "it names no saga" in result.stderr
    assert api.of("POST", "/dead-letters/s1/redrive")[0].json == {"force": True}


def test_many_can_be_counted_alone(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("POST /dead-letters/redrive", (202, ANSWER | {"redriven": 0}))
    counted = baton("dlq", "redrive", "--reason", "unreadable_log", "--dry-run")
    says(counted.output)
    (asked,) = api.of("POST", "/dead-letters/redrive")
    assert (asked.json["dry_run"], asked.json["reason"]) == (True, "unreadable_log")


def test_what_was_refused_is_named_and_is_no_success(api: FakeApi, baton: Baton, says: Says) -> None:
    refused = {"id": "s9", "why": "it was redriven 3 times"}
    api.on(
        "POST /dead-letters/redrive",
        (202, {"matched": 1, "redriven": 1, "refused": [], "next": "more"}),
        (202, {"matched": 1, "redriven": 0, "refused": [refused], "next": None}),
    )
    result = baton("dlq", "redrive", "--all", "--yes")
    assert "1 of 2 are redriven" in result.output
    says(result.stderr)
    assert result.exit_code == REFUSED
    assert [asked.json["cursor"] for asked in api.of("POST", "/dead-letters/redrive")] == ["", "more"]


def test_before_many_are_redriven_a_person_is_asked(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("POST /dead-letters/redrive", (202, ANSWER | {"redriven": 0}))
    result = baton("dlq", "redrive", "--all")
    assert result.exit_code != 0, "there is no answer"
    says(result.stderr)
    assert [asked.json["dry_run"] for asked in api.of("POST", "/dead-letters/redrive")] == [True]


def test_a_person_is_asked_too_where_there_was_no_time_to_count_them(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    api.on("POST /dead-letters/redrive", (202, ANSWER | {"matched": 0, "redriven": 0, "next": "more"}))
    result = baton("dlq", "redrive", "--all")
    says(result.stderr)
    assert [asked.json["dry_run"] for asked in api.of("POST", "/dead-letters/redrive")] == [True]


def test_many_are_discarded_and_those_before_a_refusal_are_told(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    gone = LETTER | {"status": "discarded"}
    api.on("POST /dead-letters/s1/discard", (202, gone), (202, gone))
    api.on("POST /dead-letters/s2/discard", (202, gone | {"id": "s2"}))
    api.on("POST /dead-letters/s3/discard", (404, {"title": "No", "detail": "there is no dead letter"}))
    result = baton("dlq", "discard", "s1", "s2", "s3", "--reason", "ended")
    assert result.exit_code == REFUSED
    says(result.stdout)
    says(result.stderr)
    told = baton("dlq", "discard", "s1", "--reason", "ended", "--json").stdout
    assert json.loads(told) == {"dead_letters": [gone]}


@pytest.mark.parametrize("words", [[], ["s1", "--all"], ["s1", "--dry-run"], ["s1", "--node", "pay"]])
def test_it_is_said_which_letters_in_one_way(api: FakeApi, baton: Baton, words: list[str]) -> None:
    assert baton("dlq", "redrive", *words).exit_code == 2
    assert api.asked == []


def test_a_letter_is_discarded_with_a_reason(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("POST /dead-letters/s1/discard", (202, LETTER | {"status": "discarded"}))
    assert baton("dlq", "discard", "s1").exit_code == 2
    result = baton("dlq", "discard", "s1", "--reason", "a test")
    says(result.output)
    assert api.of("POST", "/dead-letters/s1/discard")[0].json == {"reason": "a test"}


def test_those_that_match_are_counted_and_then_discarded_a_request_for_many(
    api: FakeApi, baton: Baton, says: Says
) -> None:
    path = "POST /dead-letters/discard"
    counted = {"matched": 2, "discarded": 0, "refused": [], "next": None}
    api.on(path, (202, counted), (202, counted))
    says(baton("dlq", "discard", "--node", "pay", "--dry-run").stdout)
    refused = baton("dlq", "discard", "--all", "--reason", "a test", stdin="n\n")
    assert refused.exit_code == 1
    says(refused.stderr)
    assert [(one.json.get("node"), one.json["dry_run"]) for one in api.asked] == [("pay", True), (None, True)]
    left = {"id": "s3", "why": "there is no dead letter `s3`"}
    api.on(
        path,
        (202, counted | {"discarded": 2, "next": "c"}),
        (202, counted | {"matched": 1, "refused": [left]}),
    )
    done = baton("dlq", "discard", "--all", "--reason", "a test", "--yes")
    assert done.exit_code == REFUSED
    says(done.stdout)
    says(done.stderr)
    assert [one.json for one in api.asked[2:]] == [{"why": "a test", "cursor": at} for at in ("", "c")]


def test_a_discard_says_which_and_why(baton: Baton, says: Says) -> None:
    assert "which dead letters?" in baton("dlq", "discard", "--reason", "a test").stderr
    assert "which dead letters?" in baton("dlq", "discard", "s1", "--all", "--reason", "a test").stderr
    says(baton("dlq", "discard", "--all").stderr)
    assert "leave it out" in baton("dlq", "discard", "s1", "--dry-run").stderr


def test_a_list_says_what_can_be_done_about_letters_with_a_saga_and_without(
    api: FakeApi, baton: Baton
) -> None:
    stray = LETTER | {"id": "message~1", "saga": None}
    for letters, redrives, discards in (
        ([LETTER], True, False),
        ([stray], False, True),
        ([LETTER, stray], True, True),
    ):
        api.on("GET /dead-letters", (200, {"dead_letters": letters, "next": None}))
        said = baton("dlq", "list").stderr
        assert ("dlq redrive LETTER" in said, "dlq discard LETTER" in said) == (redrives, discards)
