"""Conditions that look for values with a JSONPath query and hold them by an operator.

The query language and its library are in queries.py.

| operator | holds when | none found | more than one found |
|---|---|---|---|
| `==` `!=` `<` `<=` `>` `>=` `in` `not_in` | the one value compares so with `value` | `condition_missing` | `condition_type` |
| `exists`, `not_exists` | something, or nothing, is found; takes no `value` | | |
| `contains` | `value` is among the values | does not hold | |
| `count` | there are so many values | 0 | |
| `sum` | the numbers add up to it | 0 | |
| `min`, `max`, `avg` | the least, the greatest, the mean is it | `condition_missing` | |

`count` to `avg` mean equality, and with `_eq`, `_ne`, `_gt`, `_gte`, `_lt` or `_lte` behind them, that comparison.
From `contains` on, a query that can find one value only, and finds a list, stands for the items of that list; what
`contains` finds otherwise is looked into. `.length()` at the end: the length of the value that such a query finds,
or else the number of values. Of what is not a number there is no sum: `condition_type`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from baton.core.conditions import limits
from baton.core.conditions.model import JsonPath
from baton.core.conditions.outcome import ERROR, INVALID, MISSING, TYPE, ConditionError, Facts, Fault
from baton.core.conditions.reading import path_of, value_of
from baton.core.conditions.values import (
    COMPARISONS,
    MEMBERSHIPS,
    ORDERINGS,
    compared,
    is_number,
    measure,
    member,
    type_of,
    unknown_operator,
)
from baton.core.expressions import ExpressionError, Path

_SUFFIXES = {"": "==", "_eq": "==", "_ne": "!=", "_gt": ">", "_gte": ">=", "_lt": "<", "_lte": "<="}
_FIGURES = ("count", "sum", "min", "max", "avg")
AGGREGATES = {name + suffix: (name, sign) for name in _FIGURES for suffix, sign in _SUFFIXES.items()}
UNARY = ("exists", "not_exists")
OPERATORS = (*COMPARISONS, *MEMBERSHIPS, *UNARY, *AGGREGATES)
_LENGTH = ".length()"


@dataclass(frozen=True)
class Plan:
    """A compiled query. `is_length`: it is the length that counts."""

    query: Any
    is_singular: bool
    is_length: bool


@lru_cache(maxsize=limits.PLANS)
def plan_of(text: str) -> Plan:
    """Raises `queries.BadQuery`."""
    from baton.core.conditions import queries  # a library that few processes need

    source = text.strip()
    query, is_singular = queries.compile_query(source.removesuffix(_LENGTH))
    return Plan(query, is_singular, source.endswith(_LENGTH))


def faults(condition: JsonPath) -> list[Fault]:
    """What is wrong with it as it is written."""
    from baton.core.conditions import queries

    found = []
    try:
        plan_of(condition.query)
    except queries.BadQuery as error:
        found.append(Fault("jsonpath", f"not a JSONPath query: {error}", error.suggestion))
    try:
        path_of(condition.of)
    except ExpressionError as error:
        found.append(Fault("of", str(error)))
    if condition.operator not in OPERATORS:
        found.append(Fault("operator", *unknown_operator(condition.operator, OPERATORS, _LISTED)))
    elif wanted := _wanted(condition.operator, condition.value):
        found.append(Fault("value", f"`{condition.operator}` needs {wanted}, not {type_of(condition.value)}"))
    return found


_LISTED = f"{', '.join((*COMPARISONS, *MEMBERSHIPS, *UNARY, *_FIGURES))}, and such as sum_gt"


def _wanted(operator: str, value: Any) -> str:
    """What the value would have to be, if it is not."""
    if operator in AGGREGATES and not is_number(value):
        return "a number"
    if operator in ORDERINGS and not is_number(value) and not isinstance(value, str):
        return "a number or a text"
    if operator in {"in", "not_in"} and not isinstance(value, list):
        return "a list"
    return ""


def names(condition: JsonPath) -> tuple[Path, ...]:
    """What it reads."""
    return (path_of(condition.of),)


def judge(condition: JsonPath, facts: Facts) -> bool:
    """Raises `ConditionError`."""
    from baton.core.conditions import queries

    try:
        plan = plan_of(condition.query)
    except queries.BadQuery as error:
        raise ConditionError(INVALID, f"`{condition.query[:200]}`: {error}") from error
    data = value_of(condition.of, facts.lookup)
    measure(data)
    try:
        return _judge(condition, plan, queries.run(plan.query, data))
    except ConditionError as error:
        raise ConditionError(
            error.code, f"`{condition.query[:200]}` {condition.operator}: {error.message}"
        ) from error


def _judge(condition: JsonPath, plan: Plan, found: list[Any]) -> bool:
    operator, value = condition.operator, condition.value
    if plan.is_length:
        found = [_length(plan, found)]
    if operator in UNARY:
        return bool(found) is (operator == "exists")
    if operator in AGGREGATES:
        name, sign = AGGREGATES[operator]
        return compared(_figure(name, _items(plan, found)), sign, value)
    if operator == "contains" and not plan.is_singular:
        return member(value, "in", found)
    one = _one(found)
    if operator in MEMBERSHIPS:
        return member(one, operator, value)
    if operator in COMPARISONS:
        return compared(one, operator, value)
    raise ConditionError(INVALID, "there is no such operator")


def _one(found: list[Any]) -> Any:
    if not found:
        raise ConditionError(MISSING, "nothing was found; ask `exists` first, in an `all`")
    if len(found) > 1:
        raise ConditionError(
            TYPE,
            f"{len(found)} values were found, and this operator takes one; use count, contains, sum, min, max "
            "or avg, or name one with [0]",
        )
    return found[0]


def _length(plan: Plan, found: list[Any]) -> int:
    if not plan.is_singular:
        return len(found)
    value = _one(found)
    if isinstance(value, (list, dict, str)):
        return len(value)
    raise ConditionError(TYPE, f"{type_of(value)} has no length")


def _items(plan: Plan, found: list[Any]) -> list[Any]:
    if plan.is_singular and found and isinstance(found[0], list):
        return found[0]
    return found


def _figure(name: str, items: list[Any]) -> int | float:
    if name == "count":
        return len(items)
    strange = next((item for item in items if not is_number(item)), None)
    if strange is not None or None in items:
        hint = "; name its items with [*]" if isinstance(strange, list) else ""
        raise ConditionError(TYPE, f"`{name}` takes numbers, and {type_of(strange)} was found{hint}")
    if not items and name != "sum":
        raise ConditionError(MISSING, f"nothing was found, and there is no {name} of nothing")
    try:
        if name in {"min", "max"}:
            extreme: int | float = min(items) if name == "min" else max(items)
            return extreme
        total: int | float = (
            math.fsum(items) if any(isinstance(item, float) for item in items) else sum(items)
        )
        return total / len(items) if name == "avg" else total
    except OverflowError as error:
        raise ConditionError(ERROR, f"`{name}`: the numbers are too large") from error
