"""The rules of dead letters: when one is pending, what counts, and what a decision changes."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.core.letters import (
    DISCARDED,
    KEPT_MS,
    PENDING,
    REDRIVEN,
    DeadMessage,
    Letter,
    cut_body,
    discard_letter,
    redriven,
    with_messages,
)
from tests.kit.sentences import Says

NOW, SKEW = 1_000_000, 3_000
ABOUT = Letter(id="s", tenant="acme", saga="s", code="unreadable_log", reason="a gap", version=4, v=3)


def message(number: int, sent: int = 500_000, attempts: int = 1) -> DeadMessage:
    return DeadMessage(id=f"m{number}", receipt=f"r{number}", body="{}", sent=sent, attempts=attempts)


def a_letter(*messages: DeadMessage, now: int = NOW) -> Letter:
    letter = with_messages(None, messages or (message(1),), ABOUT, now, SKEW)
    assert letter is not None
    return letter


def after(letter: Letter, one: DeadMessage, about: Letter = ABOUT, now: int = NOW + 1) -> Letter | None:
    return with_messages(letter, (one,), about, now, SKEW)


def test_the_first_message_makes_a_letter_that_is_pending() -> None:
    letter = a_letter(message(1, 500, 2), message(2, 400))
    assert (letter.status, letter.messages, letter.attempts, letter.number) == (PENDING, 2, 3, 1)
    assert (letter.first, letter.last, letter.since) == (400, 500, NOW)
    assert letter.expires == NOW + KEPT_MS
    assert letter.seen == ("m1", "m2")


def test_a_message_that_is_known_changes_nothing() -> None:
    letter = a_letter(message(1))
    assert after(letter, message(1)) is None
    assert with_messages(letter, (message(1), message(1)), ABOUT, NOW, SKEW) is None
    assert with_messages(None, (message(1), message(1)), ABOUT, NOW, SKEW) == letter, "it comes twice at once"


def test_the_newest_message_says_why_and_a_pending_letter_stays_where_it_is_in_the_list() -> None:
    letter = after(a_letter(), message(2, 600_000), replace(ABOUT, reason="gone", code="missing_graph", v=2))
    assert letter is not None
    assert (letter.reason, letter.code, letter.v, letter.since) == ("gone", "missing_graph", 3, NOW)
    assert (letter.messages, letter.number, letter.last) == (2, 2, 600_000)


def test_a_letter_whose_saga_dies_after_its_redrive_is_pending_again_and_keeps_its_count() -> None:
    again = after(redriven(a_letter(), "ada", NOW), message(2, NOW + 5), now=NOW + 9)
    assert again is not None
    assert (again.status, again.redrives, again.since, again.by) == (PENDING, 1, NOW + 9, "ada")


@pytest.mark.parametrize(("sent", "status"), [(NOW - SKEW - 1, REDRIVEN), (NOW - SKEW, PENDING)])
def test_a_message_from_before_the_redrive_counts_and_says_nothing_of_it(sent: int, status: str) -> None:
    letter = after(redriven(a_letter(), "ada", NOW), message(2, sent))
    assert letter is not None
    assert (letter.status, letter.messages) == (status, 2)


def test_a_discarded_letter_is_pending_again_by_another_cause_only() -> None:
    gone = discard_letter(a_letter(), "ada", "a test", NOW)
    same = after(gone, message(2, NOW + 1))
    assert same is not None
    assert (same.status, same.why, same.messages) == (DISCARDED, "a test", 2)
    for about in (replace(ABOUT, version=5), replace(ABOUT, code="unknown_entry")):
        other = after(gone, message(2, NOW + 1), about)
        assert other is not None
        assert other.status == PENDING


def test_a_redrive_counts_and_forgets_why_the_letter_was_discarded() -> None:
    letter = redriven(discard_letter(a_letter(), "ada", "a test", NOW), "bob", NOW + 1)
    assert (letter.status, letter.redrives, letter.by, letter.why, letter.at) == (
        REDRIVEN,
        1,
        "bob",
        "",
        NOW + 1,
    )
    assert (letter.number, letter.expires) == (3, NOW + 1 + KEPT_MS)


def test_the_ids_of_the_newest_sixteen_messages_are_kept() -> None:
    letter: Letter | None = None
    for number in range(20):
        letter = with_messages(letter, (message(number),), ABOUT, NOW, SKEW)
    assert letter is not None
    assert letter.seen == tuple(f"m{number}" for number in range(4, 20))
    assert letter.messages == 20


def test_a_long_message_is_cut_and_says_so(says: Says) -> None:
    assert cut_body("{}") == "{}"
    assert cut_body("x" * 2_000) == "x" * 2_000
    body = cut_body("x" * 2_001)
    assert body.startswith("x" * 2_000)
    says(body[2_000:])
