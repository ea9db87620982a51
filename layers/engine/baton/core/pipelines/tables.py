"""Primitives on tables: filter, sort, select, top, join and group."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from baton.core.conditions.model import TYPE, ConditionError
from baton.core.conditions.values import compare_values, is_number, member, type_of
from baton.core.expressions import nearest
from baton.core.pipelines import base
from baton.core.pipelines.base import (
    DATA,
    PATTERN,
    Broken,
    FieldShape,
    PipelineProblems,
    Primitive,
    PrimitiveCall,
    PrimitiveField,
    Row,
    Rows,
    WorkBudget,
    by_type,
    columns,
    key_of,
    list_of,
    object_shape,
    one_of_shape,
    one_or_list_shape,
    record,
    text_shape,
    whole_shape,
)

FIELD: Final = text_shape(base.NAME, "the name of a field")
ASC, DESC = "asc", "desc"
_ORDER = one_of_shape(ASC, DESC)
_SORTED = ({int, float}, {str}, {bool})

_KEY = by_type(
    "the name of a field, or {field, order}",
    str=FIELD,
    dict=record(
        (
            PrimitiveField("field", FIELD, "a field, or the way to one: `price.total`"),
            PrimitiveField("order", _ORDER, "its own order", None),
        ),
        "an object",
    ),
)
_KEYS = one_or_list_shape(_KEY, base.FIELDS)


def order_rows(call: PrimitiveCall, keys: Sequence[Any], order: str) -> list[Row]:
    """Return the rows sorted by these keys, the first key first.

    The sort is stable, and nulls are last either way.
    """
    rows = call.rows
    places = list(range(len(rows)))
    for key in reversed(keys):
        path, own = (key, None) if isinstance(key, str) else (key["field"], key["order"])
        values = call.column(path)
        _check(path, values)
        there = [place for place in places if values[place] is not None]
        there.sort(key=values.__getitem__, reverse=(own or order) == DESC)
        places = there + [place for place in places if values[place] is None]
    return [rows[place] for place in places]


def _check(path: str, values: Sequence[Any]) -> None:
    """Raise `Broken` for values that have no order."""
    kinds = set(map(type, values)) - {type(None)}
    if not kinds or any(kinds <= alike for alike in _SORTED):
        return
    first: dict[str, int] = {}
    for place, value in enumerate(values):
        if value is not None:
            first.setdefault(type_of(value), place)
    found = " and ".join(f"{kind} in row {place}" for kind, place in first.items())
    right = "numbers, texts or booleans can be sorted, of one type; convert or filter first"
    raise Broken(DATA, f"`{path}` is {found}", "by", right)


def _sort(call: PrimitiveCall) -> Any:
    return order_rows(call, call.fields["by"], call.fields["order"])


def _top(call: PrimitiveCall) -> Any:
    by = call.fields["by"]
    rows = call.rows if by is None else order_rows(call, by, call.fields["order"])
    return list(rows[: call.fields["k"]])


def _name(one: Any) -> str:
    return str(one) if isinstance(one, str) else str(one["as"] or one["field"])


def _select(call: PrimitiveCall) -> Any:
    chosen = call.fields["fields"]
    call.work.make(len(call.rows), len(chosen))
    found = {_name(one): call.column(one if isinstance(one, str) else one["field"]) for one in chosen}
    return [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]


def _names_differ(fields: Mapping[str, Any], path: str, told: PipelineProblems) -> None:
    names = [_name(one) for one in fields["fields"]]
    for index, name in enumerate(names):
        if name in names[:index]:
            told.wrong(f"{path}/fields/{index}", f"there are two fields `{name}`", "rename one: {field, as}")


SORT = Primitive(
    "table_sort",
    "Sorts rows. Nulls are last, and equal rows keep their order.",
    (
        PrimitiveField(
            "by", _KEYS, "field, or several, the most important first; each may be {field, order}"
        ),
        PrimitiveField("order", _ORDER, "`desc`: largest first", ASC),
    ),
    _sort,
)

TOP_K = Primitive(
    "top_k",
    "Keeps the first k rows: as they come, or by a field, largest first.",
    (
        PrimitiveField("k", whole_shape(1, base.ROWS), "how many"),
        PrimitiveField("by", _KEYS, "field, or several, to sort by first", None),
        PrimitiveField("order", _ORDER, "of `by`; `asc`: smallest first", DESC),
    ),
    _top,
)

SELECT = Primitive(
    "table_select",
    "Keeps some fields of each row, under new names where wanted. What a row lacks is null.",
    (
        PrimitiveField(
            "fields",
            list_of(
                by_type(
                    "the name of a field, or {field, as}",
                    str=FIELD,
                    dict=record(
                        (
                            PrimitiveField("field", FIELD, "a field, or the way to one: `price.total`"),
                            PrimitiveField("as", FIELD, "its new name", None),
                        ),
                        "an object",
                    ),
                ),
                base.FIELDS,
                says="a list of fields",
            ),
            "names of fields, or {field, as}",
        ),
    ),
    _select,
    check=_names_differ,
)


_ORDERS: Final = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
OPERATORS: Final = ("eq", "ne", *_ORDERS, "in", "contains", "exists", "matches")
_MEANT = {
    "==": "eq", "=": "eq", "equals": "eq", "!=": "ne", "neq": "ne", "<": "lt", "<=": "le", "lte": "le", ">": "gt",
    ">=": "ge", "gte": "ge", "regex": "matches", "like": "matches", "startswith": "matches",
}  # fmt: skip
_GROUPS = ("and", "or", "not")
_TEST = ("field", "op", "value")


class _Reader:
    """Reader of one condition. `left`: number of conditions that may still be in it."""

    def __init__(self, told: PipelineProblems) -> None:
        self._told, self._left = told, base.CONDITIONS

    def read(self, given: Any, path: str, depth: int = 0) -> Any:
        self._left -= 1
        if self._left == 0 or depth > base.NESTING:
            most = f"{base.CONDITIONS} conditions, and {base.NESTING} inside each other"
            self._told.wrong(path, f"a condition has at most {most}")
        if self._left <= 0 or depth > base.NESTING:
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


def _chosen(
    condition: Mapping[str, Any], rows: Sequence[Row], places: list[int], call: PrimitiveCall
) -> list[int]:
    """Return the places whose row satisfies the condition.
    Values that an `and` or `or` does not need are not read.
    """
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


def _test(op: str, wanted: Any, values: Sequence[Any], work: WorkBudget) -> Callable[[Any], bool]:
    """Return the test of a value.

    The test raises `ConditionError` for a type that it cannot take; null never raises.
    """
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
    return lambda value: value is not None and compare_values(value, sign, wanted)


def _matches(pattern: Any, value: Any) -> bool:
    if not isinstance(value, str):
        raise ConditionError(TYPE, f"`matches` looks into a text, not {type_of(value)}")
    return pattern.found(value) is not None


def _filter(call: PrimitiveCall) -> Any:
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

CONDITION: Final = FieldShape(SAYS, _SCHEMA, lambda value, path, told: _Reader(told).read(value, path))

FILTER = Primitive(
    "table_filter",
    "Keeps the rows for which a condition holds. What a row lacks is null, which is only `eq` null and `ne` anything else.",
    (
        PrimitiveField(
            "where",
            CONDITION,
            f"`{SAYS}`; `op` is one of {', '.join(OPERATORS)}. `lt` to `ge` take numbers or texts, `in` a list, "
            "`contains` looks into a list or a text, `matches` takes RE2's syntax",
        ),
    ),
    _filter,
)


INNER, LEFT = "inner", "left"
NAME_OF_INPUT: Final = text_shape(base.NAME, "the name of an input or of an earlier step")

_ON: Final = by_type(
    "the name of a field, a list of them, or {left: right}",
    str=FIELD,
    list=list_of(FIELD, base.FIELDS),
    dict=object_shape(FIELD, base.FIELDS, "an object"),
)


def _pairs(on: Any) -> list[tuple[str, str]]:
    """Return the pairs (field of the input, field of the other)."""
    if isinstance(on, dict):
        return list(on.items())
    return [(name, name) for name in ([on] if isinstance(on, str) else on)]


def _keys(call: PrimitiveCall, rows: Rows, paths: Sequence[str]) -> list[Any]:
    """Return a key for each row, null where a part of it is null: such a row equals none."""
    found = []
    for values in zip(*(call.column(path, rows) for path in paths), strict=True):
        has_null = any(value is None for value in values)
        found.append(None if has_null else tuple(key_of(value, call.work) for value in values))
    return found


def _join(call: PrimitiveCall) -> Any:
    left, right = call.rows, call.other(call.fields["with"])
    pairs = _pairs(call.fields["on"])
    index: dict[Any, list[int]] = {}
    for place, key in enumerate(_keys(call, right, [path for _, path in pairs])):
        if key is not None:
            index.setdefault(key, []).append(place)
    lone = [-1] if call.fields["how"] == LEFT else []
    partners = [index.get(key, lone) for key in _keys(call, left, [path for path, _ in pairs])]
    taken = columns(left, call.work)
    names = _names(call, taken, right, {path for path, other in pairs if path == other})
    call.work.make(sum(map(len, partners)), len(taken) + len(names))
    empty = dict.fromkeys(names.values())
    beside = [empty | {new: row[name] for name, new in names.items() if name in row} for row in right]
    beside.append(empty)  # at the place -1
    return [{**row, **beside[place]} for row, of in zip(left, partners, strict=True) for place in of]


def _names(call: PrimitiveCall, taken: Mapping[str, None], right: Rows, same: set[str]) -> dict[str, str]:
    """Return the fields of the other table, with the names that they get.
    A key of one name is there already.
    """
    others = columns(right, call.work)
    suffix = call.fields["suffix"]
    names = {name: name + suffix if name in taken else name for name in others if name not in same}
    twice = next((new for name, new in names.items() if new != name and (new in taken or new in names)), "")
    if twice:
        raise Broken(DATA, f"there would be two fields `{twice}`", "suffix", "give another suffix")
    call.work.spend(len(right) * len(names))
    return names


JOIN = Primitive(
    "join",
    "Puts the rows of another table beside those of the input, where keys are equal. Null equals nothing.",
    (
        PrimitiveField("with", NAME_OF_INPUT, "the other table: an input, or the `as` of an earlier step"),
        PrimitiveField(
            "on", _ON, "the field that both have, a list of such, or {field of the input: field of the other}"
        ),
        PrimitiveField(
            "how", one_of_shape(INNER, LEFT), "`left` keeps rows without a partner, with nulls beside", INNER
        ),
        PrimitiveField(
            "suffix", text_shape(20), "for fields of the other table whose names the input has, too", "_right"
        ),
    ),
    _join,
    further=("with",),
)


COUNT: Final = "count"


def _numbers(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def of(values: list[Any]) -> Any:
        there = [value for value in values if value is not None]
        strange = next((value for value in there if not is_number(value)), None)
        if strange is not None:
            raise ValueError(f"{type_of(strange)} is there, and this takes numbers")
        return function(there)

    return of


def _sum(values: list[Any]) -> Any:
    return math.fsum(values) if float in set(map(type, values)) else sum(values)


def _avg(values: list[Any]) -> Any:
    return _sum(values) / len(values) if values else None


def _extreme(function: Callable[[list[Any]], Any]) -> Callable[[list[Any]], Any]:
    def of(values: list[Any]) -> Any:
        there = [value for value in values if value is not None]
        kinds = {type_of(value) for value in there}
        if kinds not in ({"a number"}, {"a text"}, set()):
            raise ValueError(f"{' and '.join(sorted(kinds))} are there, and this takes numbers or texts")
        return function(there) if there else None

    return of


AGGREGATES: Final[Mapping[str, Callable[[list[Any]], Any]]] = {
    COUNT: lambda values: sum(1 for value in values if value is not None),
    "sum": _numbers(_sum),
    "avg": _numbers(_avg),
    "min": _extreme(min),
    "max": _extreme(max),
    "first": lambda values: values[0] if values else None,
    "list": list,
}
"""By name. All but `first` and `list` leave nulls out."""


def _groups(call: PrimitiveCall) -> Any:
    by, aggregates = call.fields["by"], call.fields["aggregates"]
    rows = call.rows
    keys = [call.column(path) for path in by]
    places = dict[Any, list[int]]() if by else {(): list(range(len(rows)))}
    for place, parts in enumerate(zip(*keys, strict=True)):
        places.setdefault(tuple(key_of(part, call.work) for part in parts), []).append(place)
    call.work.make(len(places), len(by) + len(aggregates))
    made = [{path: keys[index][of[0]] for index, path in enumerate(by)} for of in places.values()]
    for name, aggregate in aggregates.items():
        path, function = aggregate["field"], AGGREGATES[aggregate["fn"]]
        values = [True] * len(rows) if path is None else call.column(path)
        for row, of in zip(made, places.values(), strict=True):
            row[name] = _come_to(function, [values[place] for place in of], name)
    return made


def _come_to(function: Callable[[list[Any]], Any], values: list[Any], name: str) -> Any:
    try:
        return function(values)
    except ValueError as error:
        raise Broken(DATA, str(error), f"aggregates/{name}", "convert with `transform` first") from error
    except OverflowError as error:
        raise Broken(DATA, "the numbers are too large", f"aggregates/{name}") from error


def _fit(fields: Mapping[str, Any], path: str, told: PipelineProblems) -> None:
    for name, aggregate in fields["aggregates"].items():
        at = f"{path}/aggregates/{name}"
        if aggregate["field"] is None and aggregate["fn"] != COUNT:
            told.wrong(at, f"`{aggregate['fn']}` needs a `field`", "only `count` can do without one")
        if name in fields["by"]:
            told.wrong(at, f"`{name}` is one of `by` already", "call the aggregate something else")
    for index, key in enumerate(fields["by"]):
        if key in fields["by"][:index]:
            told.wrong(f"{path}/by/{index}", f"`{key}` is there twice")


GROUPBY = Primitive(
    "groupby",
    "Makes one row of each group of rows that have the same values in `by`, in order of their first rows.",
    (
        PrimitiveField(
            "by",
            one_or_list_shape(FIELD, base.FIELDS, 0),
            "field, or several; an empty list makes one group of all",
        ),
        PrimitiveField(
            "aggregates",
            object_shape(
                record(
                    (
                        PrimitiveField("fn", one_of_shape(*AGGREGATES), "how its values are put together"),
                        PrimitiveField(
                            "field", FIELD, "of which field; `count` without one counts rows", None
                        ),
                    ),
                    "an object {fn, field}",
                ),
                base.FIELDS,
                "an object: name of the new field → {fn, field}",
            ),
            f"new fields: `{{total: {{fn: sum, field: price}}}}`; `fn` is one of {', '.join(AGGREGATES)}. "
            "Nulls do not count, except for `first` and `list`",
            {COUNT: {"fn": COUNT, "field": None}},
        ),
    ),
    _groups,
    check=_fit,
)
