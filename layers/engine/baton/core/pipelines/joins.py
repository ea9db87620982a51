"""`join`: the rows of two tables side by side where their keys are equal. How many that makes is counted before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from baton.core.pipelines import limits
from baton.core.pipelines.base import DATA, Broken, Call, Primitive, Rows, columns, key_of
from baton.core.pipelines.shapes import Field, by_type, list_of, named, one_of, text
from baton.core.pipelines.tables import FIELD

INNER, LEFT = "inner", "left"
NAME_OF_INPUT: Final = text(limits.NAME, "the name of an input or of an earlier step")

_ON: Final = by_type(
    "the name of a field, a list of them, or {left: right}",
    str=FIELD,
    list=list_of(FIELD, limits.FIELDS),
    dict=named(FIELD, limits.FIELDS, "an object"),
)


def _pairs(on: Any) -> list[tuple[str, str]]:
    """(field of the input, field of the other)."""
    if isinstance(on, dict):
        return list(on.items())
    return [(name, name) for name in ([on] if isinstance(on, str) else on)]


def _keys(call: Call, rows: Rows, paths: Sequence[str]) -> list[Any]:
    """One for each row, null where a part of it is null: such a row equals none."""
    found = []
    for values in zip(*(call.column(path, rows) for path in paths), strict=True):
        has_null = any(value is None for value in values)
        found.append(None if has_null else tuple(key_of(value, call.work) for value in values))
    return found


def _join(call: Call) -> Any:
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


def _names(call: Call, taken: Mapping[str, None], right: Rows, same: set[str]) -> dict[str, str]:
    """The fields of the other table, with the names that they get. A key of one name is there already."""
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
        Field("with", NAME_OF_INPUT, "the other table: an input, or the `as` of an earlier step"),
        Field(
            "on", _ON, "the field that both have, a list of such, or {field of the input: field of the other}"
        ),
        Field("how", one_of(INNER, LEFT), "`left` keeps rows without a partner, with nulls beside", INNER),
        Field("suffix", text(20), "for fields of the other table whose names the input has, too", "_right"),
    ),
    _join,
    further=("with",),
)
