"""Idempotency keys: a hash of who, in which saga, does what, with which canonical parameters.

Two spellings of one action have one key: spaces around strings, the order of keys, `1` and `1.0`,
`14:00` and `14:00:00`, and a moment written in two time zones.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from typing import Any

import msgspec

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)(?::([0-5]\d))?")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s*(Z|[+-]\d\d:?\d\d)?", re.IGNORECASE)


def canonical(value: Any) -> Any:
    """The value with every spelling that means the same made the same. JSON in, JSON out."""
    if isinstance(value, str):
        return _canonical_text(value.strip())
    if isinstance(value, bool) or value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {str(key).strip(): canonical(item) for key, item in sorted(value.items())}
    return [canonical(item) for item in value]


def _canonical_text(text: str) -> str:
    if clock := _CLOCK.fullmatch(text):
        return f"{int(clock[1]):02}:{clock[2]}:{clock[3] or '00'}"
    if _MOMENT.fullmatch(text):
        try:
            moment = datetime.fromisoformat(text.upper())
            return (moment.astimezone(UTC) if moment.tzinfo else moment).isoformat()
        except (ValueError, OverflowError):  # no such day, or none left at the end of the calendar
            return text
    return text


def idempotency_key(
    tenant: str, user: str, scope: str, tool: str, parameters: Any, occurrence: tuple[int, ...]
) -> str:
    """32 hexadecimal digits. `scope` is the saga's id unless a tool chose a wider one."""
    parts = [tenant, user, scope, tool, canonical(parameters), list(occurrence)]
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:32]
