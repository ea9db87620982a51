"""Durations as people write them: `500ms`, `5s`, `10m`, `1h`, `2d`, or a number of seconds."""

from __future__ import annotations

import re

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
LONGEST_MS = 366 * _UNITS["d"]


def parse_duration(value: str | int | float) -> int:
    """Milliseconds. Raises `ValueError` that says what would be right."""
    if isinstance(value, bool):
        raise ValueError("write a duration such as 500ms, 5s, 10m, 1h or 2d")
    if isinstance(value, (int, float)):
        milliseconds = int(value * 1_000)
    else:
        match = _PATTERN.fullmatch(value.strip())
        if not match:
            raise ValueError(f"`{value}` is not a duration; write for example 500ms, 5s, 10m, 1h or 2d")
        milliseconds = int(float(match[1]) * _UNITS[match[2]])
    if not 1 <= milliseconds <= LONGEST_MS:
        raise ValueError(f"`{value}` must be between 1 ms and 366 days")
    return milliseconds
