"""What holds of pipelines whatever the data are, against plain definitions; and that nothing else than a failure comes out."""

from __future__ import annotations

import copy
import json
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from baton.core.conditions.schema import violations
from baton.core.conditions.values import equal, type_of
from baton.core.pipelines import pipeline
from baton.core.pipelines.base import PipelineFailed
from baton.core.pipelines.pipeline import PRIMITIVES
from tests.core.build import MORE, PROPERTY
from tests.core.pipelines.kit import MOST, run

LONGER = settings(PROPERTY, max_examples=18 * MORE)

NUMBERS = st.one_of(
    st.none(), st.integers(-3, 3), st.floats(-3, 3, width=16), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)  # fmt: skip
SCALARS = st.one_of(NUMBERS, st.booleans(), st.text(max_size=5))
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
NAMES = st.sampled_from(["a", "b", "c", "a.b", "a.0", "k"])


def rows_of(values: st.SearchStrategy[Any]) -> st.SearchStrategy[list[dict[str, Any]]]:
    return st.lists(st.dictionaries(st.sampled_from("abc"), values, max_size=3), max_size=12)


def numbered(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row | {"id": place} for place, row in enumerate(rows)]


@LONGER
@given(rows_of(NUMBERS), st.sampled_from(["asc", "desc"]), st.sampled_from(["asc", "desc"]))
def test_a_sort_is_a_stable_permutation_in_order_with_nulls_last(
    rows: list[dict[str, Any]], first: str, second: str
) -> None:
    rows = numbered(rows)
    by = [{"field": "a", "order": first}, {"field": "b", "order": second}]
    made = run(rows, {"op": "table_sort", "by": by})
    assert sorted(row["id"] for row in made) == [row["id"] for row in rows]
    for one, other in pairwise(made):
        for name, order in (("a", first), ("b", second)):
            left, right = one.get(name), other.get(name)
            if left is None and right is None:
                continue
            if left is None or right is None:
                assert right is None
                break
            if left != right:
                assert (left < right) is (order == "asc")
                break
        else:
            assert one["id"] < other["id"]


@LONGER
@given(rows_of(NUMBERS), st.integers(1, 15))
def test_the_largest_are_the_beginning_of_all_in_order(rows: list[dict[str, Any]], k: int) -> None:
    rows = numbered(rows)
    in_order = run(rows, {"op": "table_sort", "by": "a", "order": "desc"})
    assert run(rows, {"op": "top_k", "k": k, "by": "a"}) == in_order[:k]


def conditions() -> st.SearchStrategy[Any]:
    tests = st.one_of(
        st.fixed_dictionaries({"field": NAMES, "op": st.sampled_from(["eq", "ne"]), "value": VALUES}),
        st.fixed_dictionaries({"field": NAMES, "op": st.just("in"), "value": st.lists(VALUES, max_size=3)}),
        st.fixed_dictionaries({"field": NAMES, "op": st.just("exists")}, optional={"value": st.booleans()}),
    )
    return st.recursive(
        tests,
        lambda inner: st.one_of(
            st.fixed_dictionaries({"not": inner}),
            st.fixed_dictionaries({"and": st.lists(inner, min_size=1, max_size=3)}),
            st.fixed_dictionaries({"or": st.lists(inner, min_size=1, max_size=3)}),
        ),
        max_leaves=6,
    )


def holds(condition: dict[str, Any], row: dict[str, Any]) -> bool:
    """The definition."""
    if "not" in condition:
        return not holds(condition["not"], row)
    if "and" in condition:
        return all(holds(one, row) for one in condition["and"])
    if "or" in condition:
        return any(holds(one, row) for one in condition["or"])
    value: Any = row
    for step in condition["field"].split("."):
        if isinstance(value, list) and step.isdigit():
            value = value[int(step)] if int(step) < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    if condition["op"] == "exists":
        return (value is not None) is condition.get("value", True)
    if condition["op"] == "in":
        return any(equal(value, one) for one in condition["value"])
    return equal(value, condition["value"]) is (condition["op"] == "eq")


@LONGER
@given(rows_of(VALUES), conditions())
def test_a_filter_keeps_what_its_condition_says_and_its_opposite_the_rest(
    rows: list[dict[str, Any]], where: Any
) -> None:
    rows = numbered(rows)
    kept = run(rows, {"op": "table_filter", "where": where})
    assert kept == [row for row in rows if holds(where, row)]
    others = run(rows, {"op": "table_filter", "where": {"not": where}})
    assert sorted([*kept, *others], key=lambda row: row["id"]) == rows


@LONGER
@given(rows_of(VALUES), st.lists(st.sampled_from("abc"), max_size=2, unique=True))
def test_groups_are_all_rows_once_and_each_is_of_equal_rows(
    rows: list[dict[str, Any]], by: list[str]
) -> None:
    rows = numbered(rows)
    aggregates = {
        "n": {"fn": "count"},
        "ids": {"fn": "list", "field": "id"},
        "sum": {"fn": "sum", "field": "id"},
    }
    made = run(rows, {"op": "groupby", "by": by, "aggregates": aggregates})
    assert sum(row["n"] for row in made) == len(rows)
    assert sum(row["sum"] for row in made) == sum(row["id"] for row in rows)
    assert sorted(one for row in made for one in row["ids"]) == [*range(len(rows))]
    for row in made:
        assert all(equal(row[key], rows[one].get(key)) for one in row["ids"] for key in by)
    for place, row in enumerate(made):
        assert not any(all(equal(row[key], other[key]) for key in by) for other in made[:place])


@LONGER
@given(rows_of(SCALARS), rows_of(SCALARS), st.sampled_from(["inner", "left"]))
def test_a_join_is_two_loops_inside_each_other(left: Any, right: Any, how: str) -> None:
    left = [{"l": place} | row for place, row in enumerate(left)]
    right = [{"r": place} | row for place, row in enumerate(right)]
    pairs: list[tuple[int, int | None]] = []
    for one in left:
        partners = [
            other["r"] for other in right
            if one.get("a") is not None and equal(one.get("a"), other.get("a"))
            and one.get("b") is not None and equal(one.get("b"), other.get("c"))
        ]  # fmt: skip
        pairs += [(one["l"], partner) for partner in partners or ([None] if how == "left" else [])]
    made = run(left, {"op": "join", "with": "right", "on": {"a": "a", "b": "c"}, "how": how}, right=right)
    assert [(row["l"], row.get("r")) for row in made] == pairs
    for row in made:
        assert all(equal(row[name], value) for name, value in left[row["l"]].items())


@LONGER
@given(st.datetimes())
def test_a_date_that_was_written_is_read_again_to_the_millisecond(moment: Any) -> None:
    (row,) = run([{"at": moment.isoformat()}], {"op": "parse_date", "field": "at"})
    assert row["at"] == moment.isoformat(timespec="milliseconds") + "Z"


# ---- anything ----------------------------------------------------------------------------------------------------

EXPRESSIONS = st.sampled_from(
    ["@", "[]", "[].a", "[?a]", "a.b", "[a,b]", "{x: @}", "length(@)", "sort_by(@, &a)", "to_string(@)", "a[", "max(@)", "[::0]"]
)  # fmt: skip
PATTERNS = st.sampled_from(["a", "(a)", "(?P<x>a)|(?P<y>b)", "(a*)*b", "[", ".*", "(?=a)"])
FIELDS: dict[str, Any] = {
    "by": st.one_of(NAMES, st.lists(NAMES, max_size=2), st.fixed_dictionaries({"field": NAMES, "order": st.just("desc")})),
    "order": st.sampled_from(["asc", "desc"]),
    "k": st.integers(-1, 5),
    "fields": st.lists(st.one_of(NAMES, st.fixed_dictionaries({"field": NAMES, "as": NAMES})), max_size=3),
    "where": conditions() | st.fixed_dictionaries({"field": NAMES, "op": st.sampled_from(["lt", "contains", "matches"]), "value": SCALARS}),
    "aggregates": st.dictionaries(
        NAMES, st.fixed_dictionaries({"fn": st.sampled_from(["count", "sum", "avg", "min", "list"]), "field": NAMES}), max_size=2
    ),
    "with": NAMES,
    "on": st.one_of(NAMES, st.lists(NAMES, max_size=2), st.dictionaries(NAMES, NAMES, max_size=2)),
    "how": st.sampled_from(["inner", "left"]),
    "suffix": st.sampled_from(["_2", "x"]),
    "expression": EXPRESSIONS,
    "pattern": PATTERNS,
    "field": NAMES,
    "into": NAMES,
    "format": st.sampled_from(["iso", "unix", "%d", "%Y%m%d", "%", "x"]),
    "timezone": st.sampled_from(["UTC", "Europe/Berlin", "Mars"]),
    "strict": st.booleans(),
    "url": st.just("https://x"),
}  # fmt: skip


@st.composite
def steps(draw: Any) -> Any:
    """A step that looks like one: each field is there or not, and right more often than not."""
    primitive = PRIMITIVES[draw(st.sampled_from(sorted(PRIMITIVES)))]
    step: dict[str, Any] = {"op": primitive.op}
    for field in primitive.fields:
        if draw(st.integers(0, 9)) < 8:
            step[field.name] = draw(FIELDS.get(field.name, VALUES) if draw(st.integers(0, 19)) else VALUES)
    for name in ("input", "as"):
        if not draw(st.integers(0, 3)):
            step[name] = draw(NAMES)
    return step


@LONGER
@given(st.lists(steps() | VALUES, max_size=4), st.dictionaries(NAMES, rows_of(VALUES) | VALUES, max_size=3))
def test_any_pipeline_over_any_data_gives_json_or_its_own_failure(given_steps: Any, data: Any) -> None:
    before = copy.deepcopy((given_steps, data))
    failed: PipelineFailed | None = None
    made: pipeline.PipelineResult | None = None
    try:
        plan = pipeline.read_pipeline(given_steps, data, requests=True)
        made = pipeline.run_pipeline(
            plan, data, {place: [{"a": 1}] for place in plan.requests}, most_bytes=MOST
        )
    except PipelineFailed as error:
        failed = error
    if failed is not None:
        assert failed.code in {"pipeline_invalid", "pipeline_data", "pipeline_too_large"}
        assert failed.problems
    if made is not None:
        json.dumps([made.value, made.preview, made.notes], allow_nan=False)
        assert violations(pipeline.schema(requests=True), given_steps) == ()
    assert repr((given_steps, data)) == repr(before)


@LONGER
@given(VALUES)
def test_a_preview_has_the_type_of_what_it_shows(value: Any) -> None:
    plan = pipeline.read_pipeline([{"op": "transform", "expression": "@"}], {"t": value})
    assert type_of(pipeline.run_pipeline(plan, {"t": value}, most_bytes=MOST).preview) == type_of(value)
