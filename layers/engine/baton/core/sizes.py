"""Bounds of values, and the short stand-in for a large one.

Values that the engine itself builds have bounds, because expressions put together can grow without end: a
loop that wraps or doubles the output of its last round would otherwise fill the memory of every worker that
takes the saga, or leave an entry that no worker can read.

A summary is what a value is made of, and the beginning of it. Its shape is in docs/semantics.md. Which value
gets one, and how long it is, is not decided here.
"""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice
from typing import Any, NamedTuple

import msgspec

MOST_ITEMS = 1_000_000
MOST_BYTES = 52_428_800
MOST_LEVELS = 200

_encode = msgspec.json.Encoder().encode


def excess_of(value: Any, most_bytes: int) -> str:
    """Return the excess of a JSON value, in words; empty if within bounds. Stops at the first excess.

    `most_bytes` is the limit of its size as JSON.
    """
    items = size = 0
    level: list[Any] = [value]
    for _ in range(MOST_LEVELS):
        inner: list[Any] = []
        for one in level:
            items += 1
            if isinstance(one, str):
                size += len(one)
            elif isinstance(one, dict):
                size += sum(map(len, one))
                inner += one.values()
            elif isinstance(one, list):
                inner += one
            if items + len(inner) > MOST_ITEMS:
                return f"it has more than {MOST_ITEMS:,} parts"
            if size > MOST_BYTES:
                return f"its texts have more than {MOST_BYTES:,} characters"
        if not inner:
            return f"it is larger than {most_bytes} bytes" if len(_encode(value)) > most_bytes else ""
        level = inner
    return f"it is more than {MOST_LEVELS} levels deep"


def iso(milliseconds: int) -> str:
    """Return milliseconds as a time, such as `2026-11-21T10:00:00.123Z`."""
    moment = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


MARK = "$summary"
LONGEST = 4_096


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
