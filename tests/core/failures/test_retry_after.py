"""`Retry-After` in both its forms, with all three ways of writing a date (RFC 9110)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from baton.core.failures.evidence import LONGEST_MS, parse_retry_after
from tests.core.build import PROPERTY

NOW = 784_111_717_000  # Sun, 06 Nov 1994 08:48:37 GMT


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("0", 0),
        ("120", 120_000),
        (" 120\t", 120_000),
        ("00007", 7_000),
        ("9" * 5_000, LONGEST_MS),
        ("999999999", LONGEST_MS),
        ("Sun, 06 Nov 1994 08:49:37 GMT", 60_000),
        ("Sunday, 06-Nov-94 08:49:37 GMT", 60_000),
        ("Sun Nov  6 08:49:37 1994", 60_000),
        ("Sat, 05 Nov 1994 08:49:37 GMT", 0),
        ("Sun, 06 Nov 1994 08:48:60 GMT", 23_000),
        ("Fri, 31 Dec 9999 23:59:59 GMT", LONGEST_MS),
        ("Tuesday, 06-Nov-40 08:49:37 GMT", LONGEST_MS),
        ("Tuesday, 06-Nov-45 08:49:37 GMT", 0),  # more than 50 years away: 1945
    ],
)
def test_a_pause_is_read(text: str, ms: int) -> None:
    assert parse_retry_after(text, NOW) == ms


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "-5",
        "1.5",
        "١٢",  # digits, and none of HTTP's
        "Sun, 06 Nov 1994 08:49:37 CET",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:49:37 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "06 Nov 1994 08:49:37 GMT",
        "Sun, 06 Xyz 1994 08:49:37 GMT",
        "Sun, 06 Nov 0094 08:49:37 GMT",
    ],
)
def test_what_is_no_pause_is_none(text: str) -> None:
    assert parse_retry_after(text, NOW) is None


def test_two_digits_of_a_year_mean_the_one_that_is_less_than_fifty_years_away() -> None:
    year_2026 = 1_790_000_000_000
    assert parse_retry_after("Sunday, 06-Nov-77 08:49:37 GMT", year_2026) == 0  # 1977
    assert parse_retry_after("Sunday, 06-Nov-76 08:49:37 GMT", year_2026) == LONGEST_MS  # 2076


@pytest.mark.no_cover
@PROPERTY
@given(st.text(max_size=60) | st.integers(0, 10**15).map(str))
def test_whatever_a_service_sends_there_is_an_answer_within_bounds(text: str) -> None:
    found = parse_retry_after(text, NOW)
    assert found is None or 0 <= found <= LONGEST_MS
