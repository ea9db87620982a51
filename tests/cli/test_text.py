"""The small pieces of text."""

from __future__ import annotations

import pytest

from baton.words.text import clock, counted, epoch_ms, plain, span


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.0 s"),
        (65_000, "1 min 5 s"),
        (7_800_000, "2 h 10 min"),
        (172_800_000, "2 d 0 h"),
        (97_200_000, "1 d 3 h"),
        (None, "–"),
    ],
)
def test_a_span_is_said_as_a_person_says_it(ms: int | None, text: str) -> None:
    assert span(ms) == text


@pytest.mark.parametrize(
    "value",
    ["2026-11-21T22:00:00.123Z", "2026-11-21T22:00:00.123", "2026-11-21T23:00:00.123+01:00", 1795298400123],
)
def test_a_time_of_the_api_is_epoch_milliseconds(value: object) -> None:
    assert epoch_ms(value) == 1795298400123


@pytest.mark.parametrize("value", [None, "", True])
def test_no_time_is_none(value: object) -> None:
    assert epoch_ms(value) is None


def test_the_clock_is_utc_to_the_millisecond() -> None:
    assert (clock(1795298400123), clock(None)) == ("22:00:00.123", "")


def test_one_and_many() -> None:
    assert [counted(1, "saga"), counted(2, "saga"), counted(0, "entry", "entries")] == [
        "1 saga",
        "2 sagas",
        "0 entries",
    ]


def test_control_characters_are_replaced_and_lines_stay() -> None:
    assert plain("a\nb\tc\x1b[2J\x00é–") == "a\nb\tc\N{REPLACEMENT CHARACTER}[2J\N{REPLACEMENT CHARACTER}é–"


def test_spaces_of_other_scripts_are_text_and_what_steers_a_terminal_is_not() -> None:
    assert plain("10\u00a0000 \u6771\u3000\u4eac") == "10\u00a0000 \u6771\u3000\u4eac"
    assert plain("\x1b\x9b\u202e\u2028") == "\N{REPLACEMENT CHARACTER}" * 4
