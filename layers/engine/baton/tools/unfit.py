"""Values that JSON would change without a word: numbers that it does not have, and keys that become one key.

Each error names the place.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import is_dataclass
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from baton.core.expressions import escape

_TEXT = {str}
_SIMPLE = frozenset({str, int, float, bool, type(None)})
_LISTS = (list, tuple, set, frozenset)


def check_numbers(value: Any) -> None:
    """Raises `ValueError` for a number that is NaN or infinite."""
    for pointer, part in _inside(value, ""):
        if isinstance(part, float) and not math.isfinite(part):
            raise ValueError(
                f"{float(part)!r} at {pointer or '/'} is no number in JSON; write null, or a text"
            )


def check_keys(value: Any) -> None:
    """Raises `ValueError` for two keys of one object that are the same text, such as `1` and `"1"`."""
    if all(key is None for key in map(_double, _objects(value))):
        return
    pointer, key = next(
        (where, key) for where, one in _inside(value, "") if (key := _double(one)) is not None
    )
    raise ValueError(f"the key {key!r} is there twice at {pointer or '/'}: every key of an object is a text")


def _double(value: Any) -> str | None:
    """A key of a `dict` that another key of it becomes, too."""
    if not isinstance(value, dict) or set(map(type, value)) <= _TEXT:
        return None
    known = set[str]()
    for key in value:
        (text,) = to_jsonable_python({key: None})
        if text in known:
            return str(text)
        known.add(text)
    return None


def _objects(value: Any) -> Iterator[dict[Any, Any]]:
    """The dictionaries in a value, without their places: a result may have very many."""
    todo = [value]
    while todo:
        part = todo.pop()
        if isinstance(part, dict):
            yield part
            todo += [item for item in part.values() if type(item) not in _SIMPLE]
        elif isinstance(part, _LISTS):
            todo += [item for item in part if type(item) not in _SIMPLE]
        else:
            todo += _fields(part).values()


def _inside(value: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    """(JSON Pointer, value) of a value and of all in it."""
    yield pointer, value
    named: Iterable[tuple[Any, Any]] = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, _LISTS)
        else _fields(value).items()
    )
    for key, item in named:
        yield from _inside(item, f"{pointer}/{escape(str(key))}")


def _fields(value: Any) -> dict[str, Any]:
    is_made_of_fields = isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type))
    return dict(getattr(value, "__dict__", {})) if is_made_of_fields else {}
