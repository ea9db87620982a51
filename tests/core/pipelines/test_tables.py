"""`table_sort`, `top_k`, `table_select`, `table_filter`, `groupby` and `join`: what they make of rows."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.pipelines import base, pipeline
from tests.core.pipelines.kit import broken, result, run
from tests.kit.sentences import Says

FLIGHTS = [
    {"id": 1, "airline": "Delta", "price": {"total": 299}, "stops": 0, "tags": ["meal", "wifi"]},
    {"id": 2, "airline": "United", "price": {"total": 199.5}, "stops": 1, "tags": []},
    {"id": 3, "airline": "Delta", "price": None, "stops": 1},
    {"id": 4, "airline": "Alaska", "price": {"total": 299}, "stops": None, "tags": ["wifi"]},
]


def ids(rows: Any) -> list[int]:
    return [row["id"] for row in rows]


# ---- sort, top_k -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "order"),
    [
        ({"by": "price.total"}, [2, 1, 4, 3]),
        ({"by": "price.total", "order": "desc"}, [1, 4, 2, 3]),
        ({"by": ["stops", {"field": "airline", "order": "desc"}]}, [1, 2, 3, 4]),
        ({"by": [{"field": "stops"}, "id"], "order": "desc"}, [3, 2, 1, 4]),
        ({"by": "tags.0"}, [1, 4, 2, 3]),
        ({"by": "tags.1"}, [1, 2, 3, 4]),
        ({"by": "tags.x"}, [1, 2, 3, 4]),
    ],
)
def test_rows_are_sorted_by_several_keys_nulls_last_and_equal_ones_stay(
    step: dict[str, Any], order: list[int]
) -> None:
    assert ids(run(FLIGHTS, {"op": "table_sort", **step})) == order


def test_a_field_of_a_name_with_a_dot_is_found_before_a_way() -> None:
    rows = [{"a.b": 2, "a": {"b": 0}}, {"a.b": 1, "a": {"b": 5}}]
    assert run(rows, {"op": "table_sort", "by": "a.b"}) == rows[::-1]


@pytest.mark.parametrize(
    "values",
    [
        [1, "a"],
        [None, True, None, 1],
        [[1], [2]],
    ],
)
def test_what_has_no_order_is_told_with_its_rows(values: list[Any], says: Says) -> None:
    code, message = broken([{"v": value} for value in values], {"op": "table_sort", "by": "v"})
    assert code == "pipeline_data"
    says(message)


def test_the_first_rows_are_kept_or_the_largest() -> None:
    assert ids(run(FLIGHTS, {"op": "top_k", "k": 2})) == [1, 2]
    assert ids(run(FLIGHTS, {"op": "top_k", "k": 2, "by": "price.total"})) == [1, 4]
    assert ids(run(FLIGHTS, {"op": "top_k", "k": 1, "by": "price.total", "order": "asc"})) == [2]
    assert ids(run(FLIGHTS, {"op": "top_k", "k": 9})) == [1, 2, 3, 4]


# ---- select ----------------------------------------------------------------------------------------------------


def test_fields_are_selected_renamed_and_null_where_there_are_none() -> None:
    fields = ["id", "price.total", {"field": "tags.0", "as": "tag"}, {"field": "stops"}]
    assert run(FLIGHTS[:3], {"op": "table_select", "fields": fields}) == [
        {"id": 1, "price.total": 299, "tag": "meal", "stops": 0},
        {"id": 2, "price.total": 199.5, "tag": None, "stops": 1},
        {"id": 3, "price.total": None, "tag": None, "stops": 1},
    ]


def test_a_selected_way_has_the_same_name_in_later_steps() -> None:
    steps = (
        {"op": "table_select", "fields": ["id", "price.total"]},
        {"op": "top_k", "k": 1, "by": "price.total"},
    )
    assert run(FLIGHTS, *steps) == [{"id": 1, "price.total": 299}]


# ---- filter ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ({"field": "airline", "op": "eq", "value": "Delta"}, [1, 3]),
        ({"field": "airline", "op": "ne", "value": "Delta"}, [2, 4]),
        ({"field": "price", "op": "eq", "value": {"total": 299.0}}, [1, 4]),
        ({"field": "tags", "op": "eq", "value": ["wifi"]}, [4]),
        ({"field": "tags", "op": "eq", "value": None}, [3]),
        ({"field": "price.total", "op": "lt", "value": 299}, [2]),
        ({"field": "price.total", "op": "le", "value": 299}, [1, 2, 4]),
        ({"field": "airline", "op": "gt", "value": "Delta"}, [2]),
        ({"field": "airline", "op": "ge", "value": "Delta"}, [1, 2, 3]),
        ({"field": "stops", "op": "in", "value": [1.0, None]}, [2, 3, 4]),
        ({"field": "stops", "op": "in", "value": [True]}, []),
        ({"field": "tags", "op": "contains", "value": "wifi"}, [1, 4]),
        ({"field": "airline", "op": "contains", "value": "elt"}, [1, 3]),
        ({"field": "stops", "op": "exists"}, [1, 2, 3]),
        ({"field": "stops", "op": "exists", "value": False}, [4]),
        ({"field": "airline", "op": "matches", "value": "^[A-D]"}, [1, 3, 4]),
        ({"field": "nothing", "op": "matches", "value": "a"}, []),
        ({"not": {"field": "price.total", "op": "lt", "value": 299}}, [1, 3, 4]),
        ({"and": [{"field": "stops", "op": "eq", "value": 1}, {"field": "price", "op": "exists"}]}, [2]),
        ({"or": [{"field": "id", "op": "eq", "value": 4}, {"field": "stops", "op": "eq", "value": 0}]}, [1, 4]),
    ],
)  # fmt: skip
def test_rows_are_kept_for_which_the_condition_holds(where: dict[str, Any], kept: list[int]) -> None:
    assert ids(run(FLIGHTS, {"op": "table_filter", "where": where})) == kept


@pytest.mark.parametrize(
    "where",
    [
        {"field": "airline", "op": "lt", "value": 3},
        {"field": "id", "op": "matches", "value": "a"},
        {"field": "id", "op": "contains", "value": 1},
    ],
)
def test_a_type_that_an_operator_cannot_take_is_told_with_its_row(where: dict[str, Any], says: Says) -> None:
    code, message = broken(FLIGHTS, {"op": "table_filter", "where": where})
    assert code == "pipeline_data"
    says(message)


def test_what_an_and_or_an_or_does_not_need_is_not_looked_at() -> None:
    rows = [{"id": 1, "v": 5}, {"id": 2, "v": "5"}]
    small, first = {"field": "v", "op": "lt", "value": 9}, {"field": "id", "op": "eq", "value": 1}
    assert ids(run(rows, {"op": "table_filter", "where": {"and": [first, small]}})) == [1]
    assert ids(run(rows, {"op": "table_filter", "where": {"or": [{"not": first}, small]}})) == [1, 2]
    assert broken(rows, {"op": "table_filter", "where": {"and": [small, first]}})[0] == "pipeline_data"


# ---- groupby ---------------------------------------------------------------------------------------------------


def test_groups_have_what_their_rows_come_to_in_order_of_appearance() -> None:
    aggregates = {
        "n": {"fn": "count"}, "tagged": {"fn": "count", "field": "tags"}, "total": {"fn": "sum", "field": "price.total"},
        "mean": {"fn": "avg", "field": "price.total"}, "low": {"fn": "min", "field": "price.total"},
        "last": {"fn": "max", "field": "id"}, "one": {"fn": "first", "field": "id"}, "all": {"fn": "list", "field": "stops"},
    }  # fmt: skip
    made = run(FLIGHTS, {"op": "groupby", "by": "airline", "aggregates": aggregates})
    assert made[0] == {
        "airline": "Delta", "n": 2, "tagged": 1, "total": 299, "mean": 299, "low": 299, "last": 3, "one": 1, "all": [0, 1],
    }  # fmt: skip
    assert [row["airline"] for row in made] == ["Delta", "United", "Alaska"]


def test_of_nothing_there_is_a_sum_and_no_mean() -> None:
    aggregates = {
        fn: {"fn": fn, "field": "v"} for fn in ("count", "sum", "avg", "min", "max", "first", "list")
    }
    empty: dict[str, Any] = {
        "count": 0,
        "sum": 0,
        "avg": None,
        "min": None,
        "max": None,
        "first": None,
        "list": [],
    }
    assert run([], {"op": "groupby", "by": [], "aggregates": aggregates}) == [empty]
    assert run([], {"op": "groupby", "by": "a"}) == []


def test_without_keys_there_is_one_group_and_without_aggregates_a_count() -> None:
    assert run(FLIGHTS, {"op": "groupby", "by": []}) == [{"count": 4}]
    assert run(FLIGHTS, {"op": "groupby", "by": ["airline", "stops"]})[0] == {
        "airline": "Delta",
        "stops": 0,
        "count": 1,
    }


def test_keys_are_equal_as_in_json() -> None:
    rows = [{"k": key} for key in (1, 1.0, True, "1", None, {"a": [1]}, {"a": [1.0]}, {"a": [True]})]
    assert [row["count"] for row in run(rows, {"op": "groupby", "by": "k"})] == [2, 1, 1, 1, 2, 1]


@pytest.mark.parametrize(
    ("fn", "values"),
    [
        ("sum", [1, "2"]),
        ("max", [1, "2"]),
        ("min", [[1]]),
        ("sum", [1e308, 1e308]),
        ("avg", [10**400, 10**400]),
    ],
)
def test_what_cannot_be_put_together_is_told(fn: str, values: list[Any], says: Says) -> None:
    rows = [{"v": value} for value in values]
    step = {"op": "groupby", "by": [], "aggregates": {"x": {"fn": fn, "field": "v"}}}
    code, message = broken(rows, step)
    assert code == "pipeline_data"
    says(message)


# ---- join ------------------------------------------------------------------------------------------------------

AIRLINES = [{"name": "Delta", "id": "DL", "hub": "ATL"}, {"name": "Alaska", "id": "AS", "club": True}]


def test_rows_are_put_beside_each_other_where_keys_are_equal() -> None:
    step = {"op": "join", "with": "airlines", "on": {"airline": "name"}}
    assert run(FLIGHTS, step, {"op": "table_select", "fields": ["id", "name", "id_right", "hub", "club"]}, airlines=AIRLINES) == [
        {"id": 1, "name": "Delta", "id_right": "DL", "hub": "ATL", "club": None},
        {"id": 3, "name": "Delta", "id_right": "DL", "hub": "ATL", "club": None},
        {"id": 4, "name": "Alaska", "id_right": "AS", "hub": None, "club": True},
    ]  # fmt: skip


def test_a_left_join_keeps_rows_without_a_partner() -> None:
    left, right = (
        [{"k": 1}, {"k": None}, {"k": 2}],
        [{"k": 1, "v": "a"}, {"k": 1, "v": "b"}, {"k": None, "v": "c"}],
    )
    found = run(left, {"op": "join", "with": "r", "on": "k", "how": "left"}, r=right)
    assert found == [{"k": 1, "v": "a"}, {"k": 1, "v": "b"}, {"k": None, "v": None}, {"k": 2, "v": None}]
    assert run(left, {"op": "join", "with": "r", "on": ["k"]}, r=right) == found[:2]
    assert run(left, {"op": "join", "with": "r", "on": "k", "how": "left"}, r=[]) == left


def test_a_suffix_that_makes_no_new_name_is_told(says: Says) -> None:
    left, right = [{"k": 1, "v": 1, "v_right": 1}], [{"k": 1, "v": 2}]
    code, message = broken(left, {"op": "join", "with": "r", "on": "k"}, r=right)
    assert code == "pipeline_data"
    says(message)
    assert run(left, {"op": "join", "with": "r", "on": "k", "suffix": "_2"}, r=right) == [
        {**left[0], "v_2": 2}
    ]
    right = [{"k": 1, "v": 2, "v_2": 3}]
    assert broken(left, {"op": "join", "with": "r", "on": "k", "suffix": "_2"}, r=right)[0] == "pipeline_data"


def test_a_table_is_joined_with_itself_and_with_an_earlier_step() -> None:
    rows = [{"id": 1, "boss": 2}, {"id": 2, "boss": None}]
    assert run(rows, {"op": "join", "with": "t", "on": {"boss": "id"}}) == [
        {"id": 1, "boss": 2, "id_right": 2, "boss_right": None}
    ]
    counted = {"op": "groupby", "by": "airline", "as": "counted"}
    steps = counted, {"op": "join", "input": "t", "with": "counted", "on": "airline"}, {"op": "top_k", "k": 1}
    assert run(FLIGHTS, *steps)[0]["count"] == 2


# ---- what a table is, and what is said of it -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rows": []}, "/0: its input must be a list of objects, not an object (take the list out of it with `transform` first)"),
        ("abc", "/0: its input must be a list of objects, not a text"),
        ([{}, 5], "/0: its input must be a list of objects, and row 1 is a number (make objects of them with `transform`"),
    ],
)  # fmt: skip
def test_what_is_no_table_is_told(given: Any, said: str) -> None:
    code, message = broken(given, {"op": "table_sort", "by": "a"})
    assert code == "pipeline_data"
    assert message.startswith(said)


def test_another_table_is_told_by_its_name(says: Says) -> None:
    code, message = broken([], {"op": "join", "with": "r", "on": "k"}, r=7)
    assert code == "pipeline_data"
    says(message)


def test_a_field_that_no_row_has_is_noted_and_one_without_values_is_not(says: Says) -> None:
    rows = [{"price": 1, "a": None, "x.y": None}]
    step = {"op": "table_filter", "where": {"or": [{"field": "prise", "op": "gt", "value": 0}] * 2}}
    says(result(rows, step).notes)
    says(result(rows, {"op": "table_select", "fields": ["q"]}).notes)
    assert result(rows, {"op": "table_select", "fields": ["a", "x.y", "price.b"]}).notes == []


def test_a_result_has_its_rows_their_number_and_a_preview() -> None:
    rows = [{"n": n, "text": "x" * 500} for n in range(30)]
    plan = pipeline.read_pipeline([{"op": "top_k", "k": 20}], {"t": rows})
    made = pipeline.run_pipeline(plan, {"t": rows}, most_bytes=100_000, preview=2)
    assert (made.value, made.row_count) == (rows[:20], 20)
    assert made.preview == [{"n": n, "text": "x" * 199 + "…"} for n in (0, 1)]
    assert made.notes == []


def test_what_is_no_table_is_shown_by_its_beginning() -> None:
    value = {
        "wide": [*range(90)],
        "deep": {"a": {"b": {"c": 1, "d": []}, "e": {}}},
        **{f"k{n}": n for n in range(90)},
    }
    made = result(value, {"op": "transform", "expression": "@"})
    assert made.row_count is None
    assert len(made.preview) == base.PREVIEW_ITEMS
    assert made.preview["wide"] == [*range(20)]
    assert made.preview["deep"] == {"a": {"b": {"c": 1, "d": []}, "e": {}}}
    assert result([[[[[1], []]]]], {"op": "transform", "expression": "@"}).preview == [[[["…", []]]]]


def test_what_a_pipeline_is_given_stays_as_it_was() -> None:
    rows = [{"a": 2}, {"a": 1}]
    run(rows, {"op": "parse_date", "field": "a", "format": "unix"}, {"op": "table_sort", "by": "a"})
    assert rows == [{"a": 2}, {"a": 1}]
