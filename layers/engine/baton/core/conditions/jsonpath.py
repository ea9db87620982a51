"""Conditions that look for values with a JSONPath query and hold them by an operator.

The query language and its library are in jsonpath.py.

| operator | holds when | none found | more than one found |
|---|---|---|---|
| `==` `!=` `<` `<=` `>` `>=` `in` `not_in` | compares with `value` | `condition_missing` | `condition_type` |
| `exists`, `not_exists` | something, or nothing, is found; takes no `value` | | |
| `contains` | `value` is among the values | does not hold | |
| `count` | there are so many values | 0 | |
| `sum` | the numbers add up to it | 0 | |
| `min`, `max`, `avg` | the least, the greatest, the mean is it | `condition_missing` | |

`count` to `avg` mean equality, and with `_eq`, `_ne`, `_gt`, `_gte`, `_lt` or `_lte` behind them, that
comparison.
From `contains` on, a query that can find one value only, and finds a
list, stands for the items of that list; what
`contains` finds otherwise is looked into. `.length()` at the end: the length of the value that such a query
finds,
or else the number of values. Of what is not a number there is no sum: `condition_type`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from jsonpath import JSONPathEnvironment
from jsonpath.exceptions import JSONPathError
from jsonpath.filter import (
    BaseExpression,
    FilterExpression,
    FilterQuery,
    FunctionExtension,
    IntegerLiteral,
    StringLiteral,
    walk,
)
from jsonpath.function_extensions import ExpressionType, FilterFunction
from jsonpath.match import JSONPathMatch, NodeList
from jsonpath.parse import Parser
from jsonpath.path import JSONPath
from jsonpath.segments import JSONPathRecursiveDescentSegment
from jsonpath.selectors import Filter
from jsonpath.stream import TokenStream

from baton.core.conditions import model
from baton.core.conditions.model import (
    ERROR,
    INVALID,
    MISSING,
    TOO_LARGE,
    TYPE,
    ConditionError,
    Facts,
    Fault,
    JsonPath,
)
from baton.core.conditions.patterns import BadPattern, matcher, time_of
from baton.core.conditions.reading import path_of, value_of
from baton.core.conditions.values import (
    COMPARISONS,
    MEMBERSHIPS,
    ORDERINGS,
    compare_values,
    equal,
    is_number,
    measure,
    member,
    type_of,
    units,
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
class QueryPlan:
    """A compiled query. `is_length`: the query ends in `.length()`."""

    query: Any
    is_singular: bool
    is_length: bool


@lru_cache(maxsize=model.PLANS)
def query_plan(text: str) -> QueryPlan:
    """Compile a query. Raises `BadQuery`."""

    source = text.strip()
    query, is_singular = compile_query(source.removesuffix(_LENGTH))
    return QueryPlan(query, is_singular, source.endswith(_LENGTH))


def faults(condition: JsonPath) -> list[Fault]:
    """Return the faults of the condition."""

    found = []
    try:
        query_plan(condition.query)
    except BadQuery as error:
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
    """Return the type that the operator requires of `value`; empty if `value` has it."""
    if operator in AGGREGATES and not is_number(value):
        return "a number"
    if operator in ORDERINGS and not is_number(value) and not isinstance(value, str):
        return "a number or a text"
    if operator in {"in", "not_in"} and not isinstance(value, list):
        return "a list"
    return ""


def names(condition: JsonPath) -> tuple[Path, ...]:
    """Return the path that the query reads."""
    return (path_of(condition.of),)


def judge(condition: JsonPath, facts: Facts) -> bool:
    """Return true if the condition holds. Raises `ConditionError`."""

    try:
        plan = query_plan(condition.query)
    except BadQuery as error:
        raise ConditionError(INVALID, f"`{condition.query[:200]}`: {error}") from error
    data = value_of(condition.of, facts.lookup)
    measure(data)
    try:
        return _judge(condition, plan, run_query(plan.query, data))
    except ConditionError as error:
        raise ConditionError(
            error.code, f"`{condition.query[:200]}` {condition.operator}: {error.message}"
        ) from error


def _judge(condition: JsonPath, plan: QueryPlan, found: list[Any]) -> bool:
    operator, value = condition.operator, condition.value
    if plan.is_length:
        found = [_length(plan, found)]
    if operator in UNARY:
        return bool(found) is (operator == "exists")
    if operator in AGGREGATES:
        name, sign = AGGREGATES[operator]
        return compare_values(_figure(name, _items(plan, found)), sign, value)
    if operator == "contains" and not plan.is_singular:
        return member(value, "in", found)
    one = _one(found)
    if operator in MEMBERSHIPS:
        return member(one, operator, value)
    if operator in COMPARISONS:
        return compare_values(one, operator, value)
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


def _length(plan: QueryPlan, found: list[Any]) -> int:
    if not plan.is_singular:
        return len(found)
    value = _one(found)
    if isinstance(value, (list, dict, str)):
        return len(value)
    raise ConditionError(TYPE, f"{type_of(value)} has no length")


def _items(plan: QueryPlan, found: list[Any]) -> list[Any]:
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


class BadQuery(Exception):
    """A query that does not compile, with a suggestion."""

    def __init__(self, message: str, suggestion: str = "") -> None:
        super().__init__(message)
        self.suggestion = suggestion


class _Budget:
    """The remaining steps of one run of a query."""

    def __init__(self) -> None:
        self._left = model.QUERY_STEPS

    def spend(self, steps: int = 1) -> None:
        self._left -= steps
        if self._left < 0:
            raise ConditionError(
                TOO_LARGE,
                f"the query looks at more than {model.QUERY_STEPS} values; start it deeper in the data with `of`",
            )


_budget: ContextVar[_Budget] = ContextVar("_budget")


class _Node(JSONPathMatch):
    """A match that costs a step. It keeps neither its place nor its children."""

    __slots__ = ()

    def new_child(self, obj: object, key: int | str) -> JSONPathMatch:
        _budget.get().spend()
        return _node(obj, self.root)

    def add_child(self, *children: JSONPathMatch) -> None:
        """Drop the children: no caller reads them, and they would keep all visited data in memory."""


def _node(obj: object, root: Any) -> _Node:
    return _Node(filter_context={}, obj=obj, parent=None, path="", parts=(), root=root)


class _Query(JSONPath):
    """A query that starts with a node of this module. The library's would parse a text as JSON."""

    __slots__ = ()

    def finditer(self, data: Any, *, filter_context: Any = None) -> Iterable[JSONPathMatch]:
        _budget.get().spend()
        nodes: Iterable[JSONPathMatch] = [_node(data, data)]
        for segment in self.segments:
            nodes = segment.resolve(nodes)
        return nodes


class _Descent(JSONPathRecursiveDescentSegment):
    """`..`, with a cost for items without content, too."""

    __slots__ = ()

    def _visit(self, node: JSONPathMatch, depth: int = 1) -> Iterator[JSONPathMatch]:
        yield node
        items = node.obj
        if isinstance(items, (dict, list)):
            _budget.get().spend(len(items))
            for item in items.values() if isinstance(items, dict) else items:
                if isinstance(item, (dict, list)):
                    yield from self._visit(_node(item, node.root))


class _Counted(FilterExpression):
    """A filter that costs a step for each evaluation."""

    __slots__ = ()

    def evaluate(self, context: Any) -> bool:
        _budget.get().spend()
        return bool(super().evaluate(context))


class _Pattern(FilterFunction):
    """`match` and `search`, in linear time."""

    arg_types = [ExpressionType.VALUE, ExpressionType.VALUE]  # noqa: RUF012  as the library declares it
    return_type = ExpressionType.LOGICAL

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole

    def __call__(self, value: object, pattern: str) -> bool:
        if not isinstance(value, str):
            return False
        _budget.get().spend(time_of(pattern, units(value)) // 10)
        return bool(matcher(pattern, self._whole)(value))


class _Parser(Parser):
    """A parser that keeps numbers as they are written.
    The library's converts every whole number from a float.
    """

    def parse_integer_literal(self, stream: TokenStream) -> BaseExpression:
        text = stream.current().value
        if not text.lstrip("-").isdecimal():
            return self.parse_float_literal(stream)
        super().parse_integer_literal(stream)  # takes it, and refuses `012`
        return IntegerLiteral(value=int(text))

    def parse_float_literal(self, stream: TokenStream) -> BaseExpression:
        text = stream.current().value
        literal = super().parse_float_literal(stream)
        if not math.isfinite(float(text)):
            raise BadQuery(f"the number {text[:40]} is too large")
        return literal


class _Environment(JSONPathEnvironment):
    """A strict environment that compares by JSON's types."""

    parser_class = _Parser

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        self.function_extensions |= {"match": _Pattern(whole=True), "search": _Pattern(whole=False)}

    def _eq(self, left: object, right: object) -> bool:
        left, right = _single(left), _single(right)
        if isinstance(left, (dict, list)) and isinstance(right, (dict, list)):
            _budget.get().spend(_count(left))
        return equal(left, right)

    def _lt(self, left: object, right: object) -> bool:
        left, right = _single(left), _single(right)
        both = (is_number(left) and is_number(right)) or (isinstance(left, str) and isinstance(right, str))
        return both and left < right  # type: ignore[operator]  # two numbers or two texts


def _single(value: object) -> object:
    """Replace an empty node list by a marker that equals itself only."""
    return _NOTHING if isinstance(value, NodeList) or type(value).__name__ == "_Undefined" else value


_NOTHING = object()


def _count(value: Any) -> int:
    if isinstance(value, (dict, list)):
        return 1 + sum(map(_count, value.values() if isinstance(value, dict) else value))
    return 1


@lru_cache(maxsize=1)
def _environment() -> _Environment:
    return _Environment(strict=True, filter_caching=False)


def compile_query(text: str) -> tuple[Any, bool]:
    """Return the query, and true if it can find one value only. Raises `BadQuery`."""
    if len(text) > model.QUERY_LENGTH:
        raise BadQuery(f"the query has more than {model.QUERY_LENGTH} characters")
    try:
        query = _environment().compile(text)
    except (JSONPathError, RecursionError, ValueError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error.args[0])
        raise BadQuery(said.split("\n")[0][:200], _hint(text)) from error
    assert isinstance(query, JSONPath)
    return _counted(query), query.singular_query()


def _hint(text: str) -> str:
    if "=~" in text:
        return "RFC 9535 has no `=~`: write match(@.x, 'a.*') or search(@.x, 'a')"
    if not text.startswith("$"):
        return "a query begins with `$`"
    if ".length" in text:
        return "`.length()` stands at the end; in a filter write length(@.x)"
    if " and " in text or " or " in text:
        return "filters are joined with `&&` and `||`"
    return ""


def _counted(query: JSONPath) -> JSONPath:
    """Return the same query, built of parts that count steps."""
    segments = []
    for segment in query.segments:
        if isinstance(segment, JSONPathRecursiveDescentSegment):
            segment = _Descent(env=segment.env, token=segment.token, selectors=segment.selectors)
        for selector in segment.selectors:
            if isinstance(selector, Filter):
                _mend(selector.expression)
                selector.expression = _Counted(selector.expression.expression)
        segments.append(segment)
    return _Query(env=query.env, segments=segments)


def _mend(expression: FilterExpression) -> None:
    for part in walk(expression.expression):
        if isinstance(part, FilterQuery):
            part.path = _counted(part.path)
        elif isinstance(part, FunctionExtension) and part.name in {"match", "search"}:
            pattern = part.args[1]
            if not isinstance(pattern, StringLiteral):
                raise BadQuery(f"the pattern of `{part.name}` must be a text that stands in the query")
            try:
                matcher(pattern.value, part.name == "match")
            except BadPattern as error:
                raise BadQuery(str(error)) from error


def run_query(query: Any, value: Any) -> list[Any]:
    """Return the values that the query finds. Raises `ConditionError` for too much work."""
    token = _budget.set(_Budget())
    try:
        return [node.obj for node in query.finditer(value)]
    finally:
        _budget.reset(token)
