"""Conditions against Python itself, over made-up values: what it says of two values, and of the sizes of data."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from baton.core.conditions import ConditionError, judge
from baton.core.conditions.model import Cel, Compare, JsonPath
from baton.core.conditions.values import COMPARISONS, ORDERINGS, measure
from tests.core.build import MORE, PROPERTY
from tests.core.conditions.corpus import lookup_in

SIGNS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
NUMBERS = st.integers(-(2**53), 2**53) | st.floats(-1e15, 1e15)
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.sampled_from([0.0, 1.0, 2.5])
    | st.text("ab", max_size=2)
)
VALUES = st.recursive(LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=3), max_leaves=6)  # fmt: skip


def canonical(value: Any) -> Any:
    """A value of Python that equals another where the JSON values are the same."""
    if isinstance(value, dict):
        return ("object", frozenset((key, canonical(item)) for key, item in value.items()))
    if isinstance(value, list):
        return ("list", tuple(map(canonical, value)))
    return (
        type(value).__name__ if isinstance(value, (bool, str)) else "number" if value is not None else "null",
        value,
    )


def compared(left: Any, sign: str, right: Any) -> bool | str:
    return judged(Compare(left="${output[0]}", operator=sign, right="${output[1]}"), [left, right])


def judged(condition: Any, output: Any) -> bool | str:
    try:
        return judge(condition, lookup_in(output, {}), {}, {})
    except ConditionError as error:
        return error.code


@settings(PROPERTY, max_examples=36 * MORE)
@given(NUMBERS, NUMBERS, st.sampled_from(COMPARISONS))
def test_numbers_are_compared_by_value_by_every_kind_of_condition(
    left: float, right: float, sign: str
) -> None:
    expected = SIGNS[sign](left, right)
    assert compared(left, sign, right) is expected
    assert judged(JsonPath(query="$[0]", operator=sign, value=right), [left]) is expected
    assert judged(Cel(expression=f"output[0] {sign} output[1]"), [left, right]) is expected
    if sign != "!=":
        assert judged(JsonPath(query=f"$[?@.a {sign} @.b]"), [{"a": left, "b": right}]) is expected


@settings(PROPERTY, max_examples=54 * MORE)
@given(VALUES, VALUES)
def test_values_are_equal_where_json_has_them_equal(left: Any, right: Any) -> None:
    expected = canonical(left) == canonical(right)
    assert compared(left, "==", right) is expected
    assert compared(left, "!=", right) is not expected
    assert compared(left, "==", json.loads(json.dumps(left))) is True
    assert judged(JsonPath(query="$[?@.a == @.b]"), [{"a": left, "b": right}]) is expected
    assert compared(left, "in", [right]) is expected


@settings(PROPERTY, max_examples=36 * MORE)
@given(VALUES, VALUES, st.sampled_from(ORDERINGS))
def test_what_has_no_order_is_an_error_and_never_true(left: Any, right: Any, sign: str) -> None:
    kinds = {canonical(left)[0], canonical(right)[0]}
    expected: bool | str = "condition_type"
    if kinds in ({"number"}, {"str"}):
        expected = SIGNS[sign](left, right)
    assert compared(left, sign, right) == expected


@settings(PROPERTY, max_examples=36 * MORE)
@given(st.lists(st.integers(-(2**60), 2**60), max_size=5))
def test_figures_are_those_of_python(items: list[int]) -> None:
    assert judged(JsonPath(query="$[*]", operator="sum", value=sum(items)), items) is True
    assert judged(JsonPath(query="$", operator="count", value=len(items)), items) is True
    for name, figure in (("min", min), ("max", max)):
        expected = figure(items) if items else 0
        assert judged(JsonPath(query="$[*]", operator=name, value=expected), items) == (
            True if items else "condition_missing"
        )


def depth_of(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + max(map(depth_of, inner), default=0)


@settings(PROPERTY, max_examples=36 * MORE)
@given(VALUES)
def test_the_shape_of_a_value_is_the_largest_at_every_depth(value: Any) -> None:
    levels = [value]
    for size, width, text in zip(
        *(vars(measure(value))[name] for name in ("sizes", "widths", "texts")), strict=True
    ):
        assert width == max((len(one) for one in levels if isinstance(one, (dict, list))), default=0)
        assert (text > 0) == any(isinstance(one, str) for one in levels)
        assert size >= max(1 if not isinstance(one, (dict, list)) else 1 + len(one) for one in levels)
        inner = [one for one in levels if isinstance(one, (dict, list))]
        levels = [x for one in inner for x in ([*one, *one.values()] if isinstance(one, dict) else one)]
    assert levels == []
    assert len(measure(value).sizes) == depth_of(value)
