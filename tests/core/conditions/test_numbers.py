"""Numbers in conditions and patterns: divisions that drop a fraction, large literals of queries, groups of patterns."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.conditions import cel, jsonpath
from baton.core.conditions.model import Cel
from baton.core.pipelines.base import Broken, Pattern, Work

EITHER = "`/` drops the fraction where both sides are whole numbers: 7 / 2 is 3"


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("1/3 == 0", "`1 / 3` drops the fraction"),
        ("output.x > 0 && 7 / 2 == 3", "`7 / 2` drops the fraction"),
        ("input.spent / input.limit > 0.8", EITHER),
        ("output.seconds / 60 >= 2", EITHER),
        ("(input.a + 1) / size(input.l) > 2", EITHER),
        ("[input.a / 2 > 1][0]", EITHER),
        ("input.l.exists(x, x / 2 > 1)", EITHER),
        ("{'a': input.a / 2}.a > 1", EITHER),
    ],
)
def test_a_division_that_may_drop_a_fraction_says_which_is_meant(expression: str, message: str) -> None:
    assert [fault.message for fault in cel.faults(Cel(expression=expression))] == [message]


@pytest.mark.parametrize(
    "expression",
    [
        "double(input.a) / double(input.b) > 0.3",
        "int(input.a) / int(input.b) == 3",
        "size(input.l) / 2 == 1",
        "input.a / 2.0 > 1.5",
        "input.a / double(input.b) > 1.5",
        "(input.a + 1.0) / input.b > 1.5",
        "(size(input.l) + 1) / 2 == 1",
        "6 / 3 == 2",
        "1 / 0 == 1",
        "has(input.a) && input.l.all(x, x > 1)",
    ],
)
def test_a_division_that_says_which_is_meant_is_taken(expression: str) -> None:
    assert cel.faults(Cel(expression=expression)) == []


LARGE = 9_007_199_254_740_993  # the first whole number that a float does not have


@pytest.mark.parametrize(
    ("filter_", "found"),
    [
        (f"@ == {LARGE}", [LARGE]),
        (f"@ > {LARGE - 1}", [LARGE, 2**60 + 1]),
        (f"@ == {2**60 + 1}", [2**60 + 1]),
        ("@ == -9007199254740993", [-LARGE]),
        ("@ == 1e-2", [0.01]),
        ("@ == 0", []),
        ("@ == 1E3", [1000]),
        ("@ == 0.5e1", [5]),
    ],
)
def test_the_numbers_of_a_query_are_those_that_are_written(filter_: str, found: list[Any]) -> None:
    data = [LARGE - 1, LARGE, 2**60 + 1, -LARGE, 0.01, 1000, 5]
    assert jsonpath.run(jsonpath.compile_query(f"$[?{filter_}]")[0], data) == found


@pytest.mark.parametrize("number", ["1e400", "-1e400", "1.5e999"])
def test_a_number_that_no_float_holds_is_refused(number: str) -> None:
    with pytest.raises(jsonpath.BadQuery, match="too large"):
        jsonpath.compile_query(f"$[?@ < {number}]")


def test_each_group_of_a_pattern_is_paid_for() -> None:
    texts = ["a" * 240] * 250
    with pytest.raises(Broken, match="more than"):
        Pattern("(a?)" * 240).charge(texts, Work(250_000))
    Pattern("(?:a?)" * 160).charge(texts, Work(250_000))
    Pattern("(a+)(b*)").charge(texts, Work(25_000))
