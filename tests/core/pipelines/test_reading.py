"""A pipeline as it is written: every problem at once, with its place and what would be right."""

from __future__ import annotations

from typing import Any

import pytest

from baton.core.conditions.schema import violations
from baton.core.pipelines import base, pipeline
from baton.core.pipelines.base import INVALID, PipelineFailed
from baton.core.pipelines.pipeline import PRIMITIVES
from baton.errors import Problem
from tests.core.pipelines.kit import problems
from tests.kit.sentences import Says

SORT = {"op": "table_sort", "by": "price"}

# Everything that a step can have, in as few steps as that takes.
WHOLE: list[dict[str, Any]] = [
    {
        "op": "http_request", "url": "https://flights.example", "method": "POST", "headers": {"a": "b"},
        "query": {"from": "NYC", "n": 1, "x": 1.5, "y": True}, "json": {"any": [1]}, "timeout": "5s", "as": "found",
    },
    {"op": "http_request", "url": "https://flights.example", "timeout": 5},
    {"op": "transform", "expression": "[].{a: a}", "as": "cheap"},
    {"op": "table_sort", "input": "found", "by": ["a", {"field": "b.c", "order": "desc"}], "order": "asc"},
    {"op": "top_k", "k": 3, "by": {"field": "a"}, "order": "asc"},
    {"op": "table_select", "fields": ["a", {"field": "b", "as": "c"}]},
    {"op": "join", "with": "cheap", "on": {"a": "b"}, "how": "left", "suffix": "_2"},
    {"op": "join", "with": "cheap", "on": ["a"]},
    {"op": "regex_extract", "field": "a", "pattern": "(b)", "into": "d"},
    {"op": "parse_date", "field": "a", "format": ["iso", "%d.%m.%Y %%"], "timezone": "Europe/Berlin", "into": "e"},
    {"op": "parse_date", "field": "a", "format": "unix", "strict": False},
    {
        "op": "table_filter",
        "where": {"or": [{"and": [{"field": "a", "op": "in", "value": [1]}]}, {"not": {"field": "b", "op": "exists"}}]},
    },
    {"op": "groupby", "by": ["a"], "aggregates": {"n": {"fn": "count"}, "m": {"fn": "max", "field": "b"}}},
]  # fmt: skip


def test_a_pipeline_with_everything_is_read_and_valid_by_its_schema() -> None:
    plan = pipeline.read_pipeline(WHOLE, {}, requests=True)
    assert [step.primitive.op for step in plan.steps] == [step["op"] for step in WHOLE]
    assert violations(pipeline.schema(requests=True), WHOLE) == ()
    assert violations(pipeline.schema(requests=True), [SORT | {"order_by": "b"}])
    assert [*plan.requests] == [0, 1]
    assert plan.requests[1] == {
        "url": "https://flights.example", "method": "GET", "headers": None, "query": None, "json": None, "timeout": 5,
        "as": None,
    }  # fmt: skip


def test_all_ten_primitives_are_there_and_described() -> None:
    assert set(PRIMITIVES) == {
        "http_request", "table_sort", "table_filter", "table_select", "top_k", "groupby", "join", "transform",
        "regex_extract", "parse_date",
    }  # fmt: skip
    ops = [one["properties"]["op"]["const"] for one in pipeline.schema(requests=True)["items"]["anyOf"]]
    assert set(ops) == set(PRIMITIVES)
    pure = [one["properties"]["op"]["const"] for one in pipeline.schema(requests=False)["items"]["anyOf"]]
    assert set(pure) == set(PRIMITIVES) - {"http_request"}


def test_every_problem_is_told_at_once(says: Says) -> None:
    found = problems(
        {"op": "table_sorted", "by": "a"},
        {"op": "table_sort", "by": {"feld": "a"}, "order": "down"},
        7,
        {"op": "top_k", "k": 0},
        {"by": "a"},
    )
    says(found)


@pytest.mark.parametrize(
    "steps",
    [
        5,
        [],
        [SORT] * 33,
    ],
)
def test_a_pipeline_is_a_list_of_steps(steps: Any, says: Says) -> None:
    with pytest.raises(PipelineFailed) as caught:
        pipeline.read_pipeline(steps, {"t": []})
    assert caught.value.code == INVALID
    says(str(caught.value))


@pytest.mark.parametrize(
    "step",
    [
        {"op": 5},
        {"op": "qqq"},
        {"op": "table_sort"},
        {"op": "table_sort", "by": ""},
        {"op": "table_sort", "by": 5},
        {"op": "table_sort", "by": [5]},
        {"op": "table_sort", "by": []},
        {"op": "table_sort", "by": "x" * 201},
        {"op": "table_sort", "by": "a", "order": 1},
        {"op": "table_sort", "by": "a", "zz": 1},
        {"op": "top_k", "k": True},
        {"op": "top_k", "k": 10**5000},
        {"op": "table_select", "fields": "a"},
        {"op": "table_select", "fields": ["a", "b", {"field": "c", "as": "a"}]},
        {"op": "groupby", "by": "a", "aggregates": []},
        {"op": "groupby", "by": "a", "aggregates": {}},
        {"op": "groupby", "by": "a", "aggregates": {"n": 1}},
        {"op": "groupby", "by": "a", "aggregates": {"n": {"fn": "sum"}}},
        {"op": "groupby", "by": "a", "aggregates": {"a": {"fn": "count"}}},
        {"op": "groupby", "by": ["a", "a"]},
        {"op": "join", "with": "x", "on": "a"},
        {"op": "join", "with": "t", "on": 1},
        {"op": "table_sort", "by": "a", "as": "t"},
        {"op": "transform", "expression": 5},
        {"op": "transform", "expression": "a["},
        {"op": "transform", "expression": "(" * 1_999},
        {"op": "regex_extract", "field": "a", "pattern": "(?=a)", "into": "b"},
        {"op": "regex_extract", "field": "a", "pattern": "\ud800", "into": "b"},
        {"op": "regex_extract", "field": "a", "pattern": "((a{100}){100}){100}", "into": "b"},
        {"op": "regex_extract", "field": "a", "pattern": "b"},
        {"op": "regex_extract", "field": "a", "pattern": "(?P<x>b)", "into": "c"},
        {"op": "parse_date", "field": "a", "format": "is"},
        {"op": "parse_date", "field": "a", "format": "zzz"},
        {"op": "parse_date", "field": "a", "format": "%d %d"},
        {"op": "parse_date", "field": "a", "format": "%Q"},
        {"op": "parse_date", "field": "a", "format": "%d%"},
        {"op": "parse_date", "field": "a", "timezone": "Europe/Berlni"},
        {"op": "parse_date", "field": "a", "timezone": "../../x"},
        {"op": "parse_date", "field": "a", "strict": "no"},
        {"op": "table_filter"},
        {"op": "table_filter", "where": 1},
        {"op": "table_filter", "where": {"field": "a", "op": "<=", "value": 1}},
        {"op": "table_filter", "where": {"field": "a", "op": "contain", "value": 1}},
        {"op": "table_filter", "where": {"field": "a", "op": 3, "value": 1}},
        {"op": "table_filter", "where": {"feld": "a", "op": "eq", "value": 1}},
        {"op": "table_filter", "where": {"field": "a", "op": "eq", "zzz": 1}},
        {"op": "table_filter", "where": {"field": "a", "op": "eq"}},
        {"op": "table_filter", "where": {"field": "a", "op": "lt", "value": True}},
        {"op": "table_filter", "where": {"field": "a", "op": "in", "value": "b"}},
        {"op": "table_filter", "where": {"field": "a", "op": "exists", "value": 1}},
        {"op": "table_filter", "where": {"field": "a", "op": "matches", "value": "("}},
        {"op": "table_filter", "where": {"field": "a"}},
        {"op": "table_filter", "where": {"op": "exists"}},
        {"op": "table_filter", "where": {"and": []}},
        {"op": "table_filter", "where": {"or": 1}},
        {"op": "table_filter", "where": {"not": {"field": "a", "op": "exists"}, "b": 1}},
        {"op": "http_request", "url": "https://x"},
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place_and_what_would_be_right(step: Any, says: Says) -> None:
    found = problems(step)
    says([line.encode(errors="replace").decode() for line in found])


def test_conditions_are_so_many_and_so_deep_and_no_more(says: Says) -> None:
    one = {"field": "a", "op": "exists"}
    deep: dict[str, Any] = one
    for _ in range(base.NESTING + 1):
        deep = {"not": deep}
    "/0/where" + "/not" * 9
    says(problems({"op": "table_filter", "where": deep}))
    says(problems({"op": "table_filter", "where": {"and": [one] * 500}}))


def test_a_request_needs_no_input_and_its_parameters_are_plain(says: Says) -> None:
    request = {"op": "http_request", "url": "https://x"}
    says(problems(request | {"input": "t", "query": {"a": [1]}, "headers": {"b": 1}}, requests=True))
    some = [request | {"as": f"r{number}"} for number in range(base.REQUESTS + 1)]
    found = problems(*some, {"op": "join", "with": "r0", "on": "a"}, requests=True)
    says(found)


def test_the_first_step_takes_the_only_input_and_names_one_of_several(says: Says) -> None:
    says(problems(SORT, names={}))
    says(problems(SORT, names={"a": 1, "b": 2}))
    says(problems(SORT | {"input": "c"}, names={}))
    assert pipeline.read_pipeline([SORT], {"a": 1}).steps[0].sources == {"input": "a"}


def test_a_step_can_use_an_earlier_one_only(says: Says) -> None:
    says(problems(SORT | {"as": "sorted"}, SORT | {"input": "sorte"}, SORT | {"as": "later"})[0])
    says(problems(SORT | {"input": "later"}, SORT | {"as": "later"}))
    says(problems(SORT | {"as": "a"}, SORT | {"as": "a"}))


def test_a_name_of_a_step_with_problems_is_known_all_the_same() -> None:
    assert len(problems({"op": "table_sorted", "as": "a"}, SORT | {"input": "a"})) == 1


def test_a_result_that_no_later_step_uses_is_a_mistake(says: Says) -> None:
    says(problems(SORT, SORT | {"input": "t"}))


def test_a_failure_tells_twenty_problems_and_how_many_more() -> None:
    error = PipelineFailed(INVALID, [Problem("/a", "x")] * 23)
    assert str(error).splitlines() == ["/a: x"] * 20 + ["and 3 more"]
    assert len(error.problems) == 23
