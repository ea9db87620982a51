"""A short stand-in for a large value: what it is made of, and the beginning of it.

Its shape is in docs/semantics.md. Which value gets one, and how long it is, is not decided here.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, NamedTuple

import msgspec

MARK = "$summary"
LONGEST = 4_096

_encode = msgspec.json.Encoder().encode


class _Detail(NamedTuple):
    """Detail of a summary: characters of a text, items of a list, keys of an object, and depth."""

    text: int
    items: int
    keys: int
    depth: int


_DETAILS = (
    _Detail(1_000, 50, 100, 6),
    _Detail(300, 20, 50, 5),
    _Detail(100, 8, 30, 4),
    _Detail(40, 3, 15, 3),
    _Detail(16, 1, 6, 2),
    _Detail(0, 0, 0, 0),
)


def summary_of(value: Any, room: int, size: int, ref: str) -> Any:
    """Return a summary of at most `room` bytes, or the shortest there is.
    `size` and `ref` name the whole of it.

    Equal values have equal summaries.
    """
    short: Any = None
    for detail in _DETAILS:
        short = _whole(value, detail, size, ref)
        if len(_encode(short)) <= room:
            break
    return short


def _whole(value: Any, detail: _Detail, size: int, ref: str) -> Any:
    mark: dict[str, Any] = {"bytes": size, "ref": ref}
    if isinstance(value, str):
        return f"{value[: detail.text]}… ({len(value)} characters, {ref})"
    if isinstance(value, list):
        head = [_short(item, detail, 1) for item in value[: detail.items]]
        return [*head, {MARK: {**mark, "items": len(value)}}]
    if isinstance(value, dict):
        if len(value) > detail.keys:
            mark["keys"] = len(value)
        return {MARK: mark, **_head(value, detail, 0)}
    return value


def _short(value: Any, detail: _Detail, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= detail.text else f"{value[: detail.text]}… ({len(value)} characters)"
    is_deep = depth >= detail.depth
    if isinstance(value, list):
        items = 0 if is_deep else detail.items
        head = [_short(item, detail, depth + 1) for item in value[:items]]
        return head if len(value) <= items else [*head, {MARK: {"items": len(value)}}]
    if isinstance(value, dict):
        if is_deep:
            return {MARK: {"keys": len(value)}} if value else {}
        mark = {MARK: {"keys": len(value)}} if len(value) > detail.keys else {}
        return {**mark, **_head(value, detail, depth)}
    return value


def _head(value: dict[str, Any], detail: _Detail, depth: int) -> dict[str, Any]:
    """Return the first keys of an object. A key of its own that looks like the mark gives way to it."""
    first = islice((pair for pair in value.items() if pair[0] != MARK), detail.keys)
    return {key: _short(part, detail, depth + 1) for key, part in first}
