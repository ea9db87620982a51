"""Durations as people write them: `500ms`, `5s`, `10m`, `1h`, `2d`, or a number of seconds."""

from __future__ import annotations

import re
from typing import Any

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_PATTERN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)")
LONGEST_MS = 366 * _UNITS["d"]


def parse_duration(value: Any) -> int:
    """Milliseconds, rounded. Raises `ValueError` that says what would be right, whatever the value is."""
    milliseconds: float
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        milliseconds = value * 1_000
    else:
        match = _PATTERN.fullmatch(value.strip()) if isinstance(value, str) else None
        if not match:
            raise ValueError(
                f"`{str(value)[:40]}` is not a duration; write for example 500ms, 5s, 10m, 1h or 2d"
            )
        milliseconds = float(match[1]) * _UNITS[match[2]]
    # Compared before rounding: infinity and NaN cannot be rounded.
    if not 1 <= milliseconds <= LONGEST_MS:
        raise ValueError(f"`{str(value)[:40]}` must be between 1 ms and 366 days")
    return round(milliseconds)
