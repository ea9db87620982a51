"""The moments at which a schedule has a tick: cron expressions in a time zone, and rates.

Where clocks change, Debian's cron decides: a tick in the hour that is skipped comes right after it, a tick in the hour that
comes twice comes once. An expression whose minute or hour begins with `*`, and a rate, follow elapsed time. cronsim and the
time zones are read with the first expression that needs them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from baton.core.expressions.durations import LONGEST_MS, parse_duration
from baton.core.graph.schedule import Schedule

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

MINUTE_MS = 60_000
MACROS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_OF_AWS = re.compile(r"\s*cron\((.*)\)\s*", re.IGNORECASE)
_RATE = re.compile(
    r"\s*(?:rate\(\s*)?([0-9]+(?:\.[0-9]+)?)\s*(seconds?|minutes?|hours?|days?|weeks?)\s*\)?\s*",
    re.IGNORECASE,
)
_UNITS = {"second": 1_000, "minute": MINUTE_MS, "hour": 3_600_000, "day": 86_400_000, "week": 7 * 86_400_000}
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_WELL = "minute hour day-of-month month day-of-week, for example `0 18 * * fri`"


def ticks(schedule: Schedule, anchor: int, after: int) -> Iterator[int]:
    """The ticks after a moment, without end. `anchor`: where rates are counted from."""
    if schedule.rate:
        tick = anchor + ((after - anchor) // schedule.rate + 1) * schedule.rate
        while True:
            yield tick
            tick += schedule.rate
    from cronsim import CronSim

    begin = datetime.fromtimestamp(after // 1_000, UTC).astimezone(zone(schedule.timezone))
    last, moments = after, CronSim(MACROS.get(schedule.cron, schedule.cron), begin)
    while (
        True
    ):  # every expression that was accepted comes within fifty years, for as long as which it is sought
        tick = round(next(moments).timestamp()) * 1_000
        if tick > last:  # in the hour that comes twice it counts from the first one
            yield tick
            last = tick


def next_tick(schedule: Schedule, anchor: int, after: int) -> int:
    """The first tick after a moment."""
    return next(ticks(schedule, anchor, after))


def zone(name: str) -> ZoneInfo:
    """Raises `ValueError` for a name that no time zone has."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # OSError: a name that is a folder
        raise ValueError(f"there is no time zone `{name[:60]}`") from error


def zone_names() -> frozenset[str]:
    """All time zones."""
    from zoneinfo import available_timezones

    return frozenset(available_timezones())


def read_rate(value: object) -> int:
    """Milliseconds of `5m`, `5 minutes` or `rate(5 minutes)`. Raises `ValueError` that says what would be right."""
    found = _RATE.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        try:
            rate = parse_duration(value)
        except ValueError as error:
            raise ValueError(f"{error}; or `5 minutes`") from None
    else:
        rate = round(float(found[1]) * _UNITS[found[2].lower().removesuffix("s")])
    if not MINUTE_MS <= rate <= LONGEST_MS:
        raise ValueError(f"`{str(value)[:40]}`: a rate is between one minute and 366 days")
    return rate


def read_cron(value: object) -> str:
    """The expression, if it is one and ever comes. Raises `ValueError` that says what would be right."""
    if not isinstance(value, str):
        raise ValueError(f"write a cron expression of five fields: {_WELL}")
    if _RATE.fullmatch(value):
        raise ValueError(
            f"`{value[:40]}` is a rate and no cron expression; write `rate: {value.strip()[:40]}`"
        )
    if (of_aws := _OF_AWS.fullmatch(value)) is not None or "?" in value or len(value.split()) == 6:
        meant = _meant(of_aws[1] if of_aws else value)
        raise ValueError(
            f"`{value[:60]}` is not a cron expression of five fields ({_WELL})"
            + (f"; what is an expression of AWS is written `{meant}` here" if meant else "")
        )
    text = " ".join(value.split()).lower()
    if text.startswith("@"):
        if text not in MACROS:
            raise ValueError(f"`{text[:40]}` is none of {', '.join(MACROS)}")
        return text
    if len(text.split()) != 5:
        raise ValueError(f"`{value[:60]}` has {len(text.split())} fields; five are wanted: {_WELL}")
    from cronsim import CronSim, CronSimError

    try:
        next(CronSim(text, datetime(2026, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration) as error:
        wrong = str(error).removeprefix("Bad ")
        never = ", or its months have no such day" if wrong == "day-of-month" else ""
        raise ValueError(f"`{value[:60]}`: the field {wrong} cannot be read{never}; write {_WELL}") from None
    return text


def _meant(text: str) -> str:
    """Five fields that mean the same as six of AWS; empty if none do."""
    fields = text.split()
    if len(fields) not in (5, 6) or (len(fields) == 6 and fields[5] != "*"):
        return ""
    minute, hour, day, month, weekday = (field.replace("?", "*") for field in fields[:5])
    # Of AWS's numbers, 1 is Sunday.
    weekday = re.sub(r"(?<![#/0-9])[1-7](?![0-9])", lambda found: _DAYS[int(found[0]) - 1], weekday).lower()
    return " ".join((minute, hour, day, month, weekday))
