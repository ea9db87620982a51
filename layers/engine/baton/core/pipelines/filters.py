"""`table_filter`: the rows for which a condition holds, which is plain data.

Conditions of documents are another thing (core/conditions): they are about a saga.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from baton.core.conditions.outcome import TYPE, ConditionError
from baton.core.conditions.values import compared, is_number, member, type_of
from baton.core.expressions.spelling import nearest
from baton.core.pipelines import limits
from baton.core.pipelines.base import DATA, Broken, Call, Primitive, Row, Work, key_of
from baton.core.pipelines.patterns import PATTERN
from baton.core.pipelines.shapes import Field, Shape, Told
from baton.core.pipelines.tables import FIELD

_ORDERS: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
OPERATORS: Final = ("eq", "ne", *_ORDERS, "in", "contains", "exists", "matches")
_MEANT = {
    "==": "eq", "=": "eq", "equals": "eq", "!=": "ne", "neq": "ne", "<": "lt", "<=": "le", "lte": "le", ">": "gt",
    ">=": "ge", "gte": "ge", "regex": "matches", "like": "matches", "startswith": "matches",
}  # fmt: skip
_GROUPS = ("and", "or", "not")
_TEST = ("field", "op", "value")


class _Reader:
    """Reads one condition. `left`: so many more may be in it."""

    def __init__(self, told: Told) -> None:
        self._told, self._left = told, limits.CONDITIONS

    def read(self, given: Any, path: str, depth: int = 0) -> Any:
        self._left -= 1
        if self._left == 0 or depth > limits.NESTING:
            most = f"{limits.CONDITIONS} conditions, and {limits.NESTING} inside each other"
            self._told.wrong(path, f"a condition has at most {most}")
        if self._left <= 0 or depth > limits.NESTING:
            return None
        if not isinstance(given, dict):
            self._told.wrong(path, f"this must be {SAYS}, not {type_of(given)}")
            return None
        group = next((word for word in _GROUPS if word in given), "")
        if not group:
            return self._test(given, path)
        if len(given) > 1:
            self._told.wrong(path, f"beside `{group}` nothing else may stand", "put it into an `and`")
        inner, at = given[group], f"{path}/{group}"
        if group == "not":
            return {group: self.read(inner, at, depth + 1)}
        if not isinstance(inner, list) or not inner:
            what = "an empty list" if inner == [] else type_of(inner)
            self._told.wrong(at, f"this must be a list of conditions, not {what}")
            return None
        return {group: [self.read(one, f"{at}/{index}", depth + 1) for index, one in enumerate(inner)]}

    def _test(self, given: dict[str, Any], path: str) -> Any:
        for key in given:
            if key not in _TEST:
                hint = nearest(str(key), (*_TEST, *_GROUPS)) or f"a condition is {SAYS}"
                self._told.wrong(path, f"there is no `{str(key)[:40]}` in a condition", hint)
        for key in _TEST[:2]:
            if key not in given:
                self._told.wrong(path, f"`{key}` is missing", f"a condition is {SAYS}")
        field, op, value = (given.get(key) for key in _TEST)
        if "field" in given:
            FIELD.read(field, f"{path}/field", self._told)
        if "op" in given:
            value = self._value(op, given, path)
        return {"field": field, "op": op, "value": value}

    def _value(self, op: Any, given: Mapping[str, Any], path: str) -> Any:
        value, at = given.get("value"), f"{path}/value"
        if op not in OPERATORS:
            what = f"`{op[:40]}`" if isinstance(op, str) else type_of(op)
            hint = f"did you mean `{_MEANT[op]}`?" if isinstance(op, str) and op in _MEANT else ""
            hint = hint or (nearest(op, OPERATORS) if isinstance(op, str) else "")
            self._told.wrong(f"{path}/op", f"{what} is not one of {', '.join(OPERATORS)}", hint)
        elif op == "exists":
            if not isinstance(given.get("value", True), bool):
                self._told.wrong(at, "`exists` takes true or false, or no value")
            return given.get("value", True)
        elif "value" not in given:
            self._told.wrong(path, "`value` is missing", f"`{op}` compares the field with it")
        elif op in _ORDERS and not is_number(value) and not isinstance(value, str):
            self._told.wrong(at, f"`{op}` takes a number or a text, not {type_of(value)}")
        elif op == "in" and not isinstance(value, list):
            self._told.wrong(at, f"`in` takes a list, not {type_of(value)}", "write `eq` for one value")
        elif op == "matches":
            return PATTERN.read(value, at, self._told)
        return value


def _chosen(condition: Mapping[str, Any], rows: Sequence[Row], places: list[int], call: Call) -> list[int]:
    """Those of the places whose row it holds for. What an `and` or `or` does not need is not looked at."""
    call.work.spend(1 + len(places))
    if "and" in condition:
        for one in condition["and"]:
            places = _chosen(one, rows, places, call)
        return places
    if "or" in condition:
        found, rest = set[int](), places
        for one in condition["or"]:
            found.update(_chosen(one, rows, rest, call))
            rest = [place for place in rest if place not in found]
        return [place for place in places if place in found]
    if "not" in condition:
        held = set(_chosen(condition["not"], rows, places, call))
        return [place for place in places if place not in held]
    values = call.column(condition["field"], [rows[place] for place in places])
    test = _test(condition["op"], condition["value"], values, call.work)
    held_for = []
    for place, value in zip(places, values, strict=True):
        try:
            if test(value):
                held_for.append(place)
        except ConditionError as error:
            what = f"`{condition['field']}` in row {place}: {error.message}"
            raise Broken(
                DATA, what, "where", "convert it with `transform`, or filter such rows out first"
            ) from error
    return held_for


def _test(op: str, wanted: Any, values: Sequence[Any], work: Work) -> Callable[[Any], bool]:
    """Whether it holds for a value. Raises `ConditionError` for a type that it cannot take; null never is one."""
    if op in {"eq", "ne"}:
        key = key_of(wanted, work)
        return lambda value: (key_of(value, work) == key) is (op == "eq")
    if op == "in":
        keys = {key_of(one, work) for one in wanted}
        return lambda value: key_of(value, work) in keys
    if op == "exists":
        return lambda value: (value is not None) is wanted
    if op == "matches":
        wanted.charge([value for value in values if isinstance(value, str)], work)
        return lambda value: value is not None and _matches(wanted, value)
    if op == "contains":
        for value in values:
            if isinstance(value, list):
                work.weigh(value)
        return lambda value: value is not None and member(value, "contains", wanted)
    sign = _ORDERS[op]
    return lambda value: value is not None and compared(value, sign, wanted)


def _matches(pattern: Any, value: Any) -> bool:
    if not isinstance(value, str):
        raise ConditionError(TYPE, f"`matches` looks into a text, not {type_of(value)}")
    return pattern.found(value) is not None


def _filter(call: Call) -> Any:
    rows = call.rows
    return [rows[place] for place in _chosen(call.fields["where"], rows, list(range(len(rows))), call)]


SAYS: Final = "{field, op, value}, {and: […]}, {or: […]} or {not: …}"
_LIKE: Final = {"type": "object", "description": f"A condition like this one: {SAYS}."}
_SCHEMA: Final = {
    "anyOf": [
        {
            "type": "object",
            "properties": {
                "field": FIELD.schema,
                "op": {"enum": list(OPERATORS)},
                "value": {"description": "What the field is compared with: of any type, a list for `in`, RE2 for `matches`."},
            },
            "required": ["field", "op"],
            "additionalProperties": False,
        },
        *(
            {
                "type": "object",
                "properties": {word: _LIKE if word == "not" else {"type": "array", "items": _LIKE, "minItems": 1}},
                "required": [word],
                "additionalProperties": False,
            }
            for word in _GROUPS
        ),
    ]
}  # fmt: skip

CONDITION: Final = Shape(SAYS, _SCHEMA, lambda value, path, told: _Reader(told).read(value, path))

FILTER = Primitive(
    "table_filter",
    "Keeps the rows for which a condition holds. What a row lacks is null, which is only `eq` null and `ne` anything else.",
    (
        Field(
            "where",
            CONDITION,
            f"`{SAYS}`; `op` is one of {', '.join(OPERATORS)}. `lt` to `ge` take numbers or texts, `in` a list, "
            "`contains` looks into a list or a text, `matches` takes RE2's syntax",
        ),
    ),
    _filter,
)
