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
    ("steps", "said"),
    [
        (5, "/: a pipeline is a list of 1 to 32 steps, not a number"),
        ([], "/: a pipeline is a list of 1 to 32 steps, not 0"),
        ([SORT] * 33, "/: a pipeline is a list of 1 to 32 steps, not 33"),
    ],
)
def test_a_pipeline_is_a_list_of_steps(steps: Any, said: str) -> None:
    with pytest.raises(PipelineFailed) as caught:
        pipeline.read_pipeline(steps, {"t": []})
    assert (caught.value.code, str(caught.value)) == (INVALID, said)


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"op": 5}, "/0/op: there is no step a number (there are table_sort,"),
        ({"op": "qqq"}, "/0/op: there is no step `qqq` (there are table_sort,"),
        ({"op": "table_sort"}, "/0: `by` is missing"),
        ({"op": "table_sort", "by": ""}, "/0/by: this must be the name of a field, not empty"),
        ({"op": "table_sort", "by": 5}, "/0/by: this must be the name of a field, or {field, order}, not a number"),
        ({"op": "table_sort", "by": [5]}, "/0/by/0: this must be the name of a field, or {field, order}"),
        ({"op": "table_sort", "by": []}, "/0/by: this has 0 items; it must have 1 to 64"),
        ({"op": "table_sort", "by": "x" * 201}, "/0/by: this has 201 characters, and at most 200 are allowed"),
        ({"op": "table_sort", "by": "a", "order": 1}, "/0/order: a number is not one of asc, desc"),
        ({"op": "table_sort", "by": "a", "zz": 1}, "/0/zz: there is no field `zz` here (there are by, order, input, as)"),
        ({"op": "top_k", "k": True}, "/0/k: this must be a whole number from 1 to 50000, not a boolean"),
        ({"op": "top_k", "k": 10**5000}, "/0/k: this must be a whole number from 1 to 50000, not a number"),
        ({"op": "table_select", "fields": "a"}, "/0/fields: this must be a list of fields, not a text"),
        ({"op": "table_select", "fields": ["a", "b", {"field": "c", "as": "a"}]}, "/0/fields/2: there are two fields `a`"),
        ({"op": "groupby", "by": "a", "aggregates": []}, "/0/aggregates: this must be an object: name"),
        ({"op": "groupby", "by": "a", "aggregates": {}}, "/0/aggregates: this has 0 entries; it must have 1 to 64"),
        ({"op": "groupby", "by": "a", "aggregates": {"n": 1}}, "/0/aggregates/n: this must be an object {fn, field}"),
        ({"op": "groupby", "by": "a", "aggregates": {"n": {"fn": "sum"}}}, "/0/aggregates/n: `sum` needs a `field`"),
        ({"op": "groupby", "by": "a", "aggregates": {"a": {"fn": "count"}}}, "/0/aggregates/a: `a` is one of `by` already"),
        ({"op": "groupby", "by": ["a", "a"]}, "/0/by/1: `a` is there twice"),
        ({"op": "join", "with": "x", "on": "a"}, "/0/with: there is no input or earlier step `x` (there are t)"),
        ({"op": "join", "with": "t", "on": 1}, "/0/on: this must be the name of a field, a list of them, or {left: right}"),
        ({"op": "table_sort", "by": "a", "as": "t"}, "/0/as: there is an input or an earlier step `t` already"),
        ({"op": "transform", "expression": 5}, "/0/expression: this must be a JMESPath expression, not a number"),
        ({"op": "transform", "expression": "a["}, "/0/expression: not a JMESPath expression: "),
        ({"op": "transform", "expression": "(" * 1_999}, "/0/expression: the expression is nested too deep"),
        ({"op": "regex_extract", "field": "a", "pattern": "(?=a)", "into": "b"}, "/0/pattern: `(?=a)` is not a regular expression: invalid perl operator: (?= (the syntax is RE2's"),
        ({"op": "regex_extract", "field": "a", "pattern": "\ud800", "into": "b"}, "/0/pattern: "),
        ({"op": "regex_extract", "field": "a", "pattern": "((a{100}){100}){100}", "into": "b"}, "/0/pattern: the pattern is too large"),
        ({"op": "regex_extract", "field": "a", "pattern": "b"}, "/0: `into` is missing, and the pattern has no named groups"),
        ({"op": "regex_extract", "field": "a", "pattern": "(?P<x>b)", "into": "c"}, "/0/into: the pattern names its groups: x"),
        ({"op": "parse_date", "field": "a", "format": "is"}, "/0/format: `is` is neither iso, unix nor unix_ms, and has no directives (did you mean `iso`?)"),
        ({"op": "parse_date", "field": "a", "format": "zzz"}, "/0/format: `zzz` is neither iso, unix nor unix_ms, and has no directives (such as"),
        ({"op": "parse_date", "field": "a", "format": "%d %d"}, "/0/format: `%d` is there twice"),
        ({"op": "parse_date", "field": "a", "format": "%Q"}, "/0/format: there is no `%Q` in a format (there are %a,"),
        ({"op": "parse_date", "field": "a", "format": "%d%"}, "/0/format: there is no `%` in a format"),
        ({"op": "parse_date", "field": "a", "timezone": "Europe/Berlni"}, "/0/timezone: there is no time zone `Europe/Berlni` (did you mean `Europe/Berlin`?)"),
        ({"op": "parse_date", "field": "a", "timezone": "../../x"}, "/0/timezone: there is no time zone `../../x`"),
        ({"op": "parse_date", "field": "a", "strict": "no"}, "/0/strict: this must be true or false, not a text"),
        ({"op": "table_filter"}, "/0: `where` is missing"),
        ({"op": "table_filter", "where": 1}, "/0/where: this must be {field, op, value}, {and: […]}, {or: […]} or {not: …}, not a number"),
        ({"op": "table_filter", "where": {"field": "a", "op": "<=", "value": 1}}, "/0/where/op: `<=` is not one of eq, ne, lt, le, gt, ge, in, contains, exists, matches (did you mean `le`?)"),
        ({"op": "table_filter", "where": {"field": "a", "op": "contain", "value": 1}}, "/0/where/op: `contain` is not one of eq, ne, lt, le, gt, ge, in, contains, exists, matches (did you mean `contains`?)"),
        ({"op": "table_filter", "where": {"field": "a", "op": 3, "value": 1}}, "/0/where/op: a number is not one of"),
        ({"op": "table_filter", "where": {"feld": "a", "op": "eq", "value": 1}}, "/0/where: there is no `feld` in a condition (did you mean `field`?)"),
        ({"op": "table_filter", "where": {"field": "a", "op": "eq", "zzz": 1}}, "/0/where: there is no `zzz` in a condition (a condition is {field"),
        ({"op": "table_filter", "where": {"field": "a", "op": "eq"}}, "/0/where: `value` is missing (`eq` compares the field with it)"),
        ({"op": "table_filter", "where": {"field": "a", "op": "lt", "value": True}}, "/0/where/value: `lt` takes a number or a text, not a boolean"),
        ({"op": "table_filter", "where": {"field": "a", "op": "in", "value": "b"}}, "/0/where/value: `in` takes a list, not a text (write `eq` for one value)"),
        ({"op": "table_filter", "where": {"field": "a", "op": "exists", "value": 1}}, "/0/where/value: `exists` takes true or false, or no value"),
        ({"op": "table_filter", "where": {"field": "a", "op": "matches", "value": "("}}, "/0/where/value: `(` is not a regular expression: missing ): ( (the syntax is RE2's, without"),
        ({"op": "table_filter", "where": {"field": "a"}}, "/0/where: `op` is missing"),
        ({"op": "table_filter", "where": {"op": "exists"}}, "/0/where: `field` is missing"),
        ({"op": "table_filter", "where": {"and": []}}, "/0/where/and: this must be a list of conditions, not an empty list"),
        ({"op": "table_filter", "where": {"or": 1}}, "/0/where/or: this must be a list of conditions, not a number"),
        ({"op": "table_filter", "where": {"not": {"field": "a", "op": "exists"}, "b": 1}}, "/0/where: beside `not` nothing else may stand"),
        ({"op": "http_request", "url": "https://x"}, "/0/op: this pipeline sends no requests, so there is no `http_request` (use `std.http_pipeline`"),
    ],
)  # fmt: skip
def test_a_mistake_is_told_with_its_place_and_what_would_be_right(step: Any, said: str) -> None:
    found = problems(step)
    assert any(line.startswith(said) for line in found), found


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
