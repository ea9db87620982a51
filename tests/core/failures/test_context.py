"""A context that is too long is shortened from its beginning, or parted, and what comes of the parts is put together."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.failures.alternatives import combine_results, drop_older_half, split_value
from tests.kit.sentences import Says


def say(role: str, content: Any = "x") -> dict[str, Any]:
    return {"role": role, "content": content}


SYSTEM, ASK = say("system", "Be brief."), say("user", "And now?")
TALK = [say("user", "1"), say("assistant", "2"), say("user", "3"), say("assistant", "4")]


# ---- shorter -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ("one two three four", "four"),
        ("one two th four", "th four"),
        ("aaaaaaaa", "aaaa"),
        ("a" * 300 + " b", "a" * 149 + " b"),
        ("one two   ", "wo   "),
        ("    ", "  "),
        ("a", "a"),
        ("", ""),
    ],
)
def test_a_text_loses_its_first_half_at_a_words_boundary(text: str, rest: str) -> None:
    assert drop_older_half(text) == rest


def test_what_was_shortened_can_be_shortened_again_until_nothing_is_left_to_leave_out() -> None:
    for value in ("lorem ipsum dolor " * 20, [SYSTEM, *TALK, ASK], list(range(9)), [["a", "b c d e"]]):
        seen = 0
        while (shorter := drop_older_half(value)) != value:
            assert len(str(shorter)) < len(str(value))
            value, seen = shorter, seen + 1
        assert seen > 1


def test_of_a_list_the_first_half_goes_and_of_a_single_item_its_own() -> None:
    assert drop_older_half([1, 2, 3, 4, 5]) == [3, 4, 5]
    assert drop_older_half(["one two"]) == ["two"]
    assert drop_older_half([5]) == [5]
    assert drop_older_half([]) == []


def test_of_messages_the_systems_and_the_last_stay() -> None:
    assert drop_older_half([SYSTEM, *TALK, ASK]) == [SYSTEM, *TALK[2:], ASK]
    assert drop_older_half([*TALK[:1], SYSTEM, ASK]) == [SYSTEM, ASK]
    developer = say("developer")
    assert drop_older_half([developer, *TALK[:2], ASK]) == [developer, TALK[1], ASK]


def test_answers_of_tools_do_not_stay_without_what_they_answer() -> None:
    answer = say("tool")
    assert drop_older_half([TALK[0], TALK[1], answer, TALK[3], ASK]) == [TALK[3], ASK]
    assert drop_older_half([TALK[0], TALK[1], answer, ASK]) == [ASK]


def test_the_last_message_is_shortened_when_it_is_alone() -> None:
    assert drop_older_half([SYSTEM, say("user", "one two")]) == [SYSTEM, say("user", "two")]
    assert drop_older_half([say("user", ["one", "two"])]) == [say("user", ["two"])]
    assert drop_older_half([{"role": "user"}]) == [{"role": "user"}]
    assert drop_older_half([SYSTEM]) == [SYSTEM]


@pytest.mark.parametrize("value", [None, 5, True, {"a": "one two"}])
def test_what_is_no_text_and_no_list_stays(value: Any) -> None:
    assert drop_older_half(value) == value
    assert split_value(value, 2) == [value]


# ---- parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "count", "parts"),
    [
        ("one two three four", 2, ["one two three", "four"]),
        ("one two three four", 4, ["one two", "three", "four"]),
        ("abcdef", 3, ["ab", "cd", "ef"]),
        ("", 2, [""]),
        ("  ", 2, ["  "]),
        ("a", 2, ["a"]),
        ([1, 2, 3, 4, 5], 2, [[1, 2, 3], [4, 5]]),
        (["one two"], 2, [["one"], ["two"]]),
        ([], 2, [[]]),
        ([SYSTEM, *TALK, ASK], 2, [[SYSTEM, *TALK[:2], ASK], [SYSTEM, *TALK[2:], ASK]]),
        ([SYSTEM, say("user", "one two")], 2, [[SYSTEM, say("user", "one")], [SYSTEM, say("user", "two")]]),
        ([SYSTEM], 2, [[SYSTEM]]),
    ],
)
def test_a_value_is_parted_and_nothing_of_it_is_lost(value: Any, count: int, parts: list[Any]) -> None:
    assert split_value(value, count) == parts


# ---- together ------------------------------------------------------------------------------------------------------


def test_texts_are_joined_and_lists_too() -> None:
    assert combine_results(["a", "b"]) == "a\nb"
    assert combine_results([[1], [], [2, 3]]) == [1, 2, 3]


def test_anything_else_is_a_list_only_where_that_is_allowed(says: Says) -> None:
    assert combine_results([{"a": 1}, "b"], as_list=True) == [{"a": 1}, "b"]
    with says.raised(ValueError):
        combine_results([{"a": 1}, "b"])
