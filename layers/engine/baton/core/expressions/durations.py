"""Durations and times as people write them: `500ms`, `5s`, `10m`, `1h`, `2d`, or a number of seconds; ISO 8601."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
# Read by Python's `re` and, in the JSON Schema of documents, by others: nothing in it that they see differently.
PATTERN = r"^ *([0-9]+(?:\.[0-9]+)?) *(ms|s|m|h|d) *$"
_PATTERN = re.compile(PATTERN)
LONGEST_MS = 366 * _UNITS["d"]
SHORTEST_S, LONGEST_S = 0.001, LONGEST_MS // 1_000


def parse_duration(value: Any) -> int:
    """Milliseconds, rounded. Raises `ValueError` that says what would be right, whatever the value is."""
    milliseconds: float
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        # What is out of bounds in seconds must not get into them by being multiplied.
        milliseconds = value * 1_000 if SHORTEST_S <= value <= LONGEST_S else 0
    else:
        match = _PATTERN.fullmatch(value) if isinstance(value, str) else None
        if not match:
            raise ValueError(
                f"`{str(value)[:40]}` is not a duration; write for example 500ms, 5s, 10m, 1h or 2d"
            )
        milliseconds = float(match[1]) * _UNITS[match[2]]
    # Compared before rounding: infinity and NaN cannot be rounded.
    if not 1 <= milliseconds <= LONGEST_MS:
        raise ValueError(f"`{str(value)[:40]}` must be between 1 ms and 366 days")
    return round(milliseconds)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_time(value: Any) -> int:
    """UTC epoch milliseconds of an ISO 8601 time with its offset. Raises `ValueError` that says what would be right."""
    example = "write for example 2026-12-01T09:00:00Z"
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is not None:
            moment = moment.astimezone(UTC)
    except (TypeError, ValueError, OverflowError) as error:  # the last: it is in no year from 1 to 9999
        raise ValueError(f"`{str(value)[:40]}` is not a time; {example}") from error
    if moment.tzinfo is None:
        raise ValueError(f"`{value}` does not say in which time zone; {example}")
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def lasting(ms: int) -> str:
    """`340 ms`, `2.5 s`, `3 min 5 s`, `2 h 10 min`, `1 d 3 h`."""
    if ms < 1_000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1_000:.1f}".removesuffix(".0") + " s"
    units = (("d", 86_400), ("h", 3_600), ("min", 60), ("s", 1))
    seconds = round(ms / 1_000)
    at = next(at for at, (_, unit) in enumerate(units) if seconds >= unit)
    (name, unit), (less, part) = units[at], units[at + 1]
    rest = seconds % unit // part
    return f"{seconds // unit} {name}" + (f" {rest} {less}" if rest else "")
