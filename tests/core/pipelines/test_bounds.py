"""Whatever a pipeline asks for, it ends soon, in little memory, and says what was too much. Work is counted, not timed."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.pipelines import base, pipeline, texts
from baton.core.pipelines.base import Broken, Pattern, PipelineFailed, WorkBudget, key_of
from tests.core.pipelines.kit import MOST, broken, result, run
from tests.kit.sentences import Says

TOO_LARGE = "pipeline_too_large"


def table(rows: int, **columns: Any) -> list[dict[str, Any]]:
    return [{"n": number} | columns for number in range(rows)]


def test_a_table_has_so_many_rows(says: Says) -> None:
    rows = table(base.ROWS)
    assert result(rows, {"op": "top_k", "k": 1}).row_count == 1
    code, message = broken([*rows, {}], {"op": "top_k", "k": 1})
    assert code == TOO_LARGE
    says(message)


def test_a_join_that_would_explode_is_counted_and_not_made(says: Says) -> None:
    code, message = broken(table(5_000, k=1), {"op": "join", "with": "t", "on": "k"})
    assert code == TOO_LARGE
    says(message)


def test_a_wide_table_has_fewer_rows(says: Says) -> None:
    wide = [dict.fromkeys(map(str, range(500)), 0)]
    code, message = broken(
        table(3_000, k=1), {"op": "join", "with": "w", "on": {"k": "x"}, "how": "left"}, w=wide
    )
    assert code == TOO_LARGE
    says(message)


@pytest.mark.no_cover  # the tracer would take ten times as long as what it traces
def test_steps_share_one_account_of_work(monkeypatch: pytest.MonkeyPatch, says: Says) -> None:
    # A twentieth of the work that there is: what is counted is the same.
    monkeypatch.setattr(pipeline, "WorkBudget", lambda: WorkBudget(base.WORK // 20))
    rows = table(500, **dict.fromkeys("abcdefghijklmnopqrstuvw", 0))
    step = {"op": "table_select", "fields": [*rows[0]]}
    assert result(rows, *[step] * 9).row_count == 500
    code, message = broken(rows, *[step] * 11)
    assert code == TOO_LARGE
    says(message)


@pytest.mark.no_cover  # the tracer would take ten times as long as what it traces
def test_texts_count_by_their_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row refers to one text: sorting compares it as often as there are rows, whatever its bytes are."""
    # A twentieth of the work that there is: what is counted is the same.
    monkeypatch.setattr(pipeline, "WorkBudget", lambda: WorkBudget(base.WORK // 20))
    spread = {"op": "join", "with": "long", "on": "k"}
    rows, long = table(2_000, k=1), [{"k": 1, "text": "x" * 10_000}]
    pattern = {"op": "regex_extract", "field": "text", "pattern": "(x+x+)+y", "into": "a"}
    matches = {"op": "table_filter", "where": {"field": "text", "op": "matches", "value": "(x+x+)+y"}}
    heavy = {"op": "table_filter", "where": {"field": "text", "op": "matches", "value": "([a-z]{1,50}y){20}"}}
    for some, step in (
        (rows, {"op": "table_sort", "by": "text"}),
        (rows, pattern),
        (rows, matches),
        (rows[:100], heavy),
    ):
        code, message = broken(some, spread, step, long=long)
        assert (code, message[:3], "units of work" in message) == (TOO_LARGE, "/1:", True)
    assert run(long, pattern)[0]["a"] is None


@pytest.mark.no_cover  # the tracer would take ten times as long as what it traces
@pytest.mark.parametrize(
    "expression",
    [
        "[@,@]|" * 60 + "@",
        "join('',[@,@])|" * 60 + "@",
        "to_string([@,@])|" * 60 + "@",
        "[@,@][]|" * 60 + "@",
        "[" + "@," * 400 + "@][]|[" + "@," * 400 + "@][]|[" + "@," * 90 + "@][]",
        "join(to_string(@),[@,@,@,@,@,@,@,@])|" * 20 + "@",
        "[@,@]|" * 60 + "@ == @",
    ],
)
@pytest.mark.parametrize("value", ["x" * 100, ["x" * 100] * 100])
def test_an_expression_that_doubles_what_it_has_ends_soon(
    expression: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A twentieth of the work that there is: what is counted is the same.
    monkeypatch.setattr(pipeline, "WorkBudget", lambda: WorkBudget(base.WORK // 20))
    code, _ = broken(value, {"op": "transform", "expression": expression})
    assert code in {TOO_LARGE, "pipeline_data"}


def test_a_separator_is_joined_as_often_as_it_is_said() -> None:
    value = {"sep": "x" * 100_000, "list": [""] * 40_000}
    code, message = broken(value, {"op": "transform", "expression": "join(sep, list)"})
    assert (code, "units of work" in message) == (TOO_LARGE, True)


@pytest.mark.parametrize("expression", ["!" * 1_900 + "a", "{a:@}|" * 320 + "@"])
def test_an_expression_is_only_so_deep(expression: str) -> None:
    assert broken({}, {"op": "transform", "expression": expression})[0] in {"pipeline_invalid", TOO_LARGE}


def test_an_expression_that_is_read_but_too_deep_to_be_followed_is_told(says: Says) -> None:
    def deeper(levels: int) -> tuple[str, str]:
        if levels:
            return deeper(levels - 1)
        with pytest.raises(PipelineFailed) as caught:
            pipeline.run_pipeline(plan, {"t": 1}, most_bytes=MOST)
        return caught.value.code, str(caught.value)

    plan = pipeline.read_pipeline([{"op": "transform", "expression": "!" * 200 + "a"}], {"t": 1})
    says(deeper(550))


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (float("nan"), "pipeline_invalid"),
        ([{"a": float("inf")}], "pipeline_invalid"),
        ({"a"}, "pipeline_invalid"),
        pytest.param(10**5_000, "pipeline_invalid", id="huge"),
        ("\ud800", "pipeline_invalid"),
        ("x" * 6_000_000, TOO_LARGE),
    ],
)  # fmt: skip
def test_what_is_no_json_or_too_large_is_no_input(value: Any, code: str, says: Says) -> None:
    found = broken(value, {"op": "transform", "expression": "@"})
    assert found[0] == code
    says(found[1])


def test_data_are_only_so_deep() -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    assert broken(deep, {"op": "transform", "expression": "@"})[0] == TOO_LARGE
    circle: list[Any] = []
    circle.append(circle)
    assert broken(circle, {"op": "transform", "expression": "@"})[0] == TOO_LARGE


def test_a_result_is_no_larger_than_a_result_may_be(says: Says) -> None:
    rows, long = table(1_000, k=1), [{"k": 1, "text": "x" * 10_000}]
    code, message = broken(rows, {"op": "join", "with": "long", "on": "k"}, long=long)
    assert code == TOO_LARGE
    says(message)


def test_what_is_in_a_value_is_weighed() -> None:
    work = WorkBudget(10)
    work.weigh({"a": [1, "x" * 64]})
    assert work._left == 10 - 1 - 1 - 1 - 1 - 3


def test_what_a_list_is_made_of_is_paid_for_before_it_is_flattened() -> None:
    value = {"a": [0] * 1_000}
    texts.Expression("[a,a]").of(value, WorkBudget(5_000))
    with pytest.raises(Broken, match="units of work"):
        texts.Expression("[a,a]").of(value, WorkBudget(3_000))


def test_a_pattern_is_paid_for_before_it_is_held_against_texts() -> None:
    pattern = Pattern("(x+x+)+y")
    with pytest.raises(Broken, match="units of work"):
        pattern.charge(["x" * 10_000] * 10, WorkBudget(100))
    pattern.charge(["x"] * 10, WorkBudget(100))


def test_dates_are_paid_for_by_their_formats() -> None:
    rows = table(base.ROWS, at="21")
    step = {"op": "parse_date", "field": "at", "format": ["%d.%m.%Y"] * 16, "strict": False}
    assert "units of work" in broken(rows, step)[1]


def test_large_numbers_are_looked_up_by_their_digits() -> None:
    """All of these have the hash 0 in Python."""
    keys = {key_of(number * (2**61 - 1), WorkBudget()) for number in range(1, 2_000)}
    assert len(keys) == 1_999
    assert len({hash(key) for key in keys}) > 1_900
    assert key_of(10**20, WorkBudget()) == key_of(1e20, WorkBudget())
    assert key_of(2**53 + 1, WorkBudget()) != key_of(2.0**53, WorkBudget())
