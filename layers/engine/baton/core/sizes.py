"""Bounds of values that the engine itself builds: expressions put together can grow without end.

A loop that wraps or doubles the output of its last round would otherwise fill the memory
of every worker that takes the saga, or leave an entry that no worker can read.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

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
