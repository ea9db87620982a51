"""parse_retry_after(text, now): the pause that a service asks for, in both forms of the header `Retry-After`.

The forms are those of RFC 9110, 10.2.3 and 5.6.7: seconds, or a date written in one of three ways.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

LONGEST_MS = 366 * 86_400_000
_SECONDS = re.compile("[0-9]+")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTH, _TIME = f"({'|'.join(_MONTHS)})", "([0-9]{2}):([0-9]{2}):([0-9]{2})"
_DAY, _DAYNAME = "(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)", "(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day"
_FIXED = re.compile(f"{_DAY}, ([0-9]{{2}}) {_MONTH} ([0-9]{{4}}) {_TIME} GMT")
_RFC850 = re.compile(f"{_DAYNAME}, ([0-9]{{2}})-{_MONTH}-([0-9]{{2}}) {_TIME} GMT")
_ASCTIME = re.compile(f"{_DAY} {_MONTH} ([ 0-9][0-9]) {_TIME} ([0-9]{{4}})")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_retry_after(text: str, now_ms: int) -> int | None:
    """Milliseconds from now, 0 for a date that is over, at most 366 days; None for what is neither form."""
    text = text.strip(" \t")
    if _SECONDS.fullmatch(text):
        # A number of a thousand digits need not be read to know that it is long.
        digits = text.lstrip("0")
        return LONGEST_MS if len(digits) > 9 else min(int(digits or "0") * 1_000, LONGEST_MS)
    moment = _moment(text, now_ms)
    return None if moment is None else max(0, min(moment - now_ms, LONGEST_MS))


def _moment(text: str, now_ms: int) -> int | None:
    if match := _FIXED.fullmatch(text):
        day, month, year, *clock = match.groups()
    elif match := _RFC850.fullmatch(text):
        day, month, short, *clock = match.groups()
        year = str(_century(int(short), now_ms))
    elif match := _ASCTIME.fullmatch(text):
        month, day, *clock, year = match.groups()
    else:
        return None
    hour, minute, second = map(int, clock)
    try:
        # A leap second is a second that no clock here knows; the one after it is the next minute's first.
        moment = datetime(
            int(year), _MONTHS.index(month) + 1, int(day), hour, minute, min(second, 59), tzinfo=UTC
        )
    except ValueError:
        return None
    if second > 60:
        return None
    return (moment - _EPOCH) // timedelta(milliseconds=1) + (1_000 if second == 60 else 0)


def _century(short: int, now_ms: int) -> int:
    """The year that two digits mean: one that seems more than 50 years away is in the past."""
    this = (_EPOCH + timedelta(milliseconds=now_ms)).year
    year = this - this % 100 + short
    if year > this + 50:
        return year - 100
    return year + 100 if year <= this - 50 else year
