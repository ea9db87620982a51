"""`table_sort`, `table_select` and `top_k`: rows in order, and some of their fields or of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from baton.core.conditions.values import type_of
from baton.core.pipelines import limits
from baton.core.pipelines.base import DATA, Broken, Call, Primitive, Row
from baton.core.pipelines.shapes import Field, Told, by_type, list_of, one_of, record, some, text, whole

FIELD: Final = text(limits.NAME, "the name of a field")
ASC, DESC = "asc", "desc"
_ORDER = one_of(ASC, DESC)
_SORTED = ({int, float}, {str}, {bool})

_KEY = by_type(
    "the name of a field, or {field, order}",
    str=FIELD,
    dict=record(
        (
            Field("field", FIELD, "a field, or the way to one: `price.total`"),
            Field("order", _ORDER, "its own order", None),
        ),
        "an object",
    ),
)
_KEYS = some(_KEY, limits.FIELDS)


def ordered(call: Call, keys: Sequence[Any], order: str) -> list[Row]:
    """The rows by these keys, the first one first; equal rows stay as they are, and nulls are last either way."""
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
    """Raises `Broken` for values that have no order."""
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


def _sort(call: Call) -> Any:
    return ordered(call, call.fields["by"], call.fields["order"])


def _top(call: Call) -> Any:
    by = call.fields["by"]
    rows = call.rows if by is None else ordered(call, by, call.fields["order"])
    return list(rows[: call.fields["k"]])


def _name(one: Any) -> str:
    return str(one) if isinstance(one, str) else str(one["as"] or one["field"])


def _select(call: Call) -> Any:
    chosen = call.fields["fields"]
    call.work.make(len(call.rows), len(chosen))
    found = {_name(one): call.column(one if isinstance(one, str) else one["field"]) for one in chosen}
    return [dict(zip(found, values, strict=True)) for values in zip(*found.values(), strict=True)]


def _names_differ(fields: Mapping[str, Any], path: str, told: Told) -> None:
    names = [_name(one) for one in fields["fields"]]
    for index, name in enumerate(names):
        if name in names[:index]:
            told.wrong(f"{path}/fields/{index}", f"there are two fields `{name}`", "rename one: {field, as}")


SORT = Primitive(
    "table_sort",
    "Sorts rows. Nulls are last, and equal rows keep their order.",
    (
        Field("by", _KEYS, "field, or several, the most important first; each may be {field, order}"),
        Field("order", _ORDER, "`desc`: largest first", ASC),
    ),
    _sort,
)

TOP_K = Primitive(
    "top_k",
    "Keeps the first k rows: as they come, or by a field, largest first.",
    (
        Field("k", whole(1, limits.ROWS), "how many"),
        Field("by", _KEYS, "field, or several, to sort by first", None),
        Field("order", _ORDER, "of `by`; `asc`: smallest first", DESC),
    ),
    _top,
)

SELECT = Primitive(
    "table_select",
    "Keeps some fields of each row, under new names where wanted. What a row lacks is null.",
    (
        Field(
            "fields",
            list_of(
                by_type(
                    "the name of a field, or {field, as}",
                    str=FIELD,
                    dict=record(
                        (
                            Field("field", FIELD, "a field, or the way to one: `price.total`"),
                            Field("as", FIELD, "its new name", None),
                        ),
                        "an object",
                    ),
                ),
                limits.FIELDS,
                says="a list of fields",
            ),
            "names of fields, or {field, as}",
        ),
    ),
    _select,
    check=_names_differ,
)
