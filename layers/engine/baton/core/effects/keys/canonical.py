"""The canonical form of parameters: every spelling that means the same made the same.

Two different actions stay two: upper case is not lower case, `1` is not `"1"`, and spaces inside a text are text.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from unicodedata import normalize

_ZONE = r"(?P<zone>Z|UTC|[+-][0-9]{2}(?::?[0-9]{2})?)?"
_TIME = r"(?P<hour>[0-9]{1,2}):(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9])(?:[.,](?P<part>[0-9]+))?)?"
_CLOCK = re.compile(rf"{_TIME}\s*{_ZONE}", re.IGNORECASE)
_HALF_DAY = re.compile(
    r"(?P<hour>1[0-2]|0?[1-9])(?::(?P<minute>[0-5][0-9])(?::(?P<second>[0-5][0-9]))?)?\s*(?P<half>[ap])\.?m\.?",
    re.IGNORECASE,
)
_MOMENT = re.compile(rf"(?P<day>[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})(?:T|\s+){_TIME}\s*{_ZONE}", re.IGNORECASE)
_HOURS = 24
LISTED = "x-baton-list"
"""In the schema of a parameter: it says what may be called, and not what is done."""


def canonical(value: Any) -> Any:
    """The value with every spelling that means the same made the same. JSON in, JSON out.

    The same are: spaces around a text and none, the forms of Unicode that are drawn alike, the order of names, `1` and
    `1.0`, times of day (`14:00`, `14:00:00`, `2 pm`), and a moment in two time zones.
    """
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool) or value is None or isinstance(value, int):
        return value
    if isinstance(value, float):
        # As it is written, which beyond 2**53 is not what it is: `1e30` is the one with thirty zeros.
        return int(Decimal(repr(value))) if value.is_integer() else value
    if isinstance(value, dict):
        names = {name: _stripped(name) for name in value}
        # Names that are told apart by their spaces only are two names.
        count = Counter(names.values()) if len(set(names.values())) < len(names) else {}
        return {
            (name if count.get(short, 1) > 1 else short): canonical(value[name])
            for name, short in names.items()
        }
    return [canonical(item) for item in value]


def _stripped(text: str) -> str:
    return normalize("NFC", text).strip()


def _text(value: str) -> str:
    text = _stripped(value)
    if found := _CLOCK.fullmatch(text):
        return _clock(found) or text
    if found := _HALF_DAY.fullmatch(text):
        hour = int(found["hour"]) % 12 + 12 * (found["half"] in "pP")
        return f"{hour:02}:{found['minute'] or '00'}:{found['second'] or '00'}"
    if found := _MOMENT.fullmatch(text):
        return _moment(found) or text
    return text


def _clock(found: re.Match[str]) -> str:
    """A time of day; an empty text if a day has no such time. One with an offset is of no day, and keeps it."""
    hour, minute, second, part = _parts(found)
    if hour > _HOURS or (hour == _HOURS and (minute, second, part) != ("00", "00", "")):
        return ""
    zone = _zone(found["zone"])
    return f"{hour:02}:{minute}:{second}{_fraction(part)}{'Z' if zone == '+00:00' else zone}"


def _moment(found: re.Match[str]) -> str:
    """A moment, in UTC if it has an offset; an empty text if there is none such, or it is beyond the calendar."""
    hour, minute, second, part = _parts(found)
    midnight = hour == _HOURS and (minute, second, part) == (
        "00",
        "00",
        "",
    )  # the end of the day is the next one
    text = f"{found['day']}T{0 if midnight else hour:02}:{minute}:{second}{_zone(found['zone'])}"
    try:
        moment = datetime.fromisoformat(text) + timedelta(days=midnight)
        offset = "+00:00" if moment.tzinfo else ""
        moment = moment.astimezone(UTC) if moment.tzinfo else moment
    except (ValueError, OverflowError):
        return ""
    return moment.replace(tzinfo=None).isoformat() + _fraction(part) + offset


def _parts(found: re.Match[str]) -> tuple[int, str, str, str]:
    """Hour, minute, second, and the digits of a fraction that say something."""
    return int(found["hour"]), found["minute"], found["second"] or "00", (found["part"] or "").rstrip("0")


def _fraction(part: str) -> str:
    return f".{part:0<6}" if part else ""


def _zone(zone: str | None) -> str:
    """`+01:00` for any way to write it."""
    if not zone:
        return ""
    if not zone.startswith(("+", "-")):
        return "+00:00"
    digits = zone[1:].replace(":", "")
    sign = "+" if set(digits) == {"0"} else zone[0]
    return f"{sign}{digits[:2]}:{digits[2:] or '00'}"


def relevant(arguments: Any, schema: Mapping[str, Any]) -> Any:
    """The arguments without those that change nothing: what equals the default of the tool's schema, and a list of what may be called."""
    if not isinstance(arguments, dict):
        return arguments
    known = schema.get("properties", {})
    return {
        name: value
        for name, value in arguments.items()
        if not (of := known.get(name, {}))
        or (LISTED not in of and ("default" not in of or not _same(value, of["default"])))
    }


def _same(left: Any, right: Any) -> bool:
    return repr(canonical(left)) == repr(canonical(right))  # `True` is not `1`
