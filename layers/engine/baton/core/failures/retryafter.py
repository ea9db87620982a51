"""parse_retry_after(text, now): the pause that a service asks for, in both forms of the header `Retry-After`.

The forms are those of RFC 9110, 10.2.3 and 5.6.7: seconds, or a date written in one of three ways.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_tz

LONGEST_MS = 366 * 86_400_000
_SECONDS = re.compile("[0-9]+")
_CLOCK = "[0-9]{2}:[0-9]{2}:[0-9]{2}"
# The standard library reads many dates of mail besides, and zones that it does not know as GMT.
_DATE = re.compile(
    f"[A-Z][a-z]+day, [0-9]{{2}}-[A-Z][a-z]{{2}}-[0-9]{{2}} {_CLOCK} GMT"
    f"|[A-Z][a-z]{{2}}, [0-9]{{2}} [A-Z][a-z]{{2}} [1-9][0-9]{{3}} {_CLOCK} GMT"
    f"|[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [ 0-9][0-9] {_CLOCK} [1-9][0-9]{{3}}"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_retry_after(text: str, now_ms: int) -> int | None:
    """Milliseconds from now, 0 for a date that is over, at most 366 days; None for what is neither form."""
    text = text.strip(" \t")
    if _SECONDS.fullmatch(text):
        # A number of a thousand digits need not be read to know that it is long.
        digits = text.lstrip("0")
        return LONGEST_MS if len(digits) > 9 else min(int(digits or "0") * 1_000, LONGEST_MS)
    fields = parsedate_tz(text) if _DATE.fullmatch(text) else None
    if fields is None or fields[5] > 60:
        return None
    year, month, day, hour, minute, second = fields[:6]
    if "-" in text:  # Two digits mean the year that is at most 50 years away.
        oldest = (_EPOCH + timedelta(milliseconds=now_ms)).year - 49
        year = oldest + (year - oldest) % 100
    try:
        moment = (datetime(year, month, day, hour, minute, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
    except ValueError:
        return None
    # A leap second, 60, is the next minute's first.
    return max(0, min(moment + second * 1_000 - now_ms, LONGEST_MS))
