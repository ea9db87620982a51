"""`groupby`: a row for each group, with what its rows come to."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

from baton.core.conditions.values import is_number, type_of
from baton.core.pipelines import limits
from baton.core.pipelines.base import DATA, Broken, Call, Primitive, key_of
from baton.core.pipelines.shapes import Field, Told, named, one_of, record, some
from baton.core.pipelines.tables import FIELD

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


def _groups(call: Call) -> Any:
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


def _fit(fields: Mapping[str, Any], path: str, told: Told) -> None:
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
        Field("by", some(FIELD, limits.FIELDS, 0), "field, or several; an empty list makes one group of all"),
        Field(
            "aggregates",
            named(
                record(
                    (
                        Field("fn", one_of(*AGGREGATES), "how its values are put together"),
                        Field("field", FIELD, "of which field; `count` without one counts rows", None),
                    ),
                    "an object {fn, field}",
                ),
                limits.FIELDS,
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
