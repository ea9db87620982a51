"""Numbers and times as people read them."""

from __future__ import annotations

import pytest

from baton.console.rendering import many, moment, prose, took

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("at", "words"),
    [(NOW, "now"), (NOW - 999, "now"), (NOW - 1_000, "1.0 s ago"), (NOW + 500, "in 500 ms")],
)
def test_a_time_of_this_second_is_now(at: int, words: str) -> None:
    assert f">{words} <span" in moment(at, NOW)


def test_one_is_one() -> None:
    assert [many(number, "cold start") for number in (0, 1, 1_200)] == [
        "0 cold starts",
        "1 cold start",
        "1,200 cold starts",
    ]


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("to start needs `run` or `operate`", "to start needs <code>run</code> or <code>operate</code>"),
        ("`<b>&`", "<code>&lt;b&gt;&amp;</code>"),
        ("<code>`a</code>`", "&lt;code&gt;<code>a&lt;/code&gt;</code>"),
        ("one ` alone, `` two, `a\nline`", "one ` alone, `` two, `a\nline`"),
        (None, ""),
    ],
)
def test_what_stands_between_backticks_is_code_and_the_rest_is_text(said: str | None, shown: str) -> None:
    assert prose(said) == f"<bdi>{shown}</bdi>"


def test_a_saga_took_as_long_as_it_ran_or_has_run_so_far() -> None:
    row = {"created_at": "2026-01-01T00:00:00Z", "changed_at": "2026-01-01T00:00:03Z"}
    now = 1_767_225_600_000 + 60_000
    assert took(row | {"status": "completed"}, now) == "3.0 s"
    assert took(row | {"status": "waiting"}, now) == "1 min"
