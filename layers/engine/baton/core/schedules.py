"""Starts of a workflow by itself: the ticks of schedules, and the outcome of each tick."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice, takewhile
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import replace

from baton.core.expressions import LONGEST_MS, Path, compile_template, parse_duration
from baton.core.graph.graph import ALLOW, QUEUE, Schedule

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
    """Yield the ticks after a moment, without end. `anchor`: where rates are counted from."""
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
    """Return the first tick after a moment."""
    return next(ticks(schedule, anchor, after))


def zone(name: str) -> ZoneInfo:
    """Return a time zone. Raises `ValueError` for a name that no time zone has."""
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:  # OSError: a name that is a folder
        raise ValueError(f"there is no time zone `{name[:60]}`") from error


def zone_names() -> frozenset[str]:
    """Return the names of all time zones."""
    from zoneinfo import available_timezones

    return frozenset(available_timezones())


def read_rate(value: object) -> int:
    """Return the milliseconds of `5m`, `5 minutes` or `rate(5 minutes)`.
    Raises `ValueError` that names the right form.
    """
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
    """Return the cron expression, if it is valid and a time matches it.
    Raises `ValueError` that names the right form.
    """
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
    """Return five fields that mean the same as six of AWS; empty if none do."""
    fields = text.split()
    if len(fields) not in (5, 6) or (len(fields) == 6 and fields[5] != "*"):
        return ""
    minute, hour, day, month, weekday = (field.replace("?", "*") for field in fields[:5])
    # Of AWS's numbers, 1 is Sunday.
    weekday = re.sub(r"(?<![#/0-9])[1-7](?![0-9])", lambda found: _DAYS[int(found[0]) - 1], weekday).lower()
    return " ".join((minute, hour, day, month, weekday))


GRACE_MS = 5 * MINUTE_MS
"""Lateness up to which a tick is started, whatever `catch_up` says: no outage is as short as that."""
AGAIN_MS = MINUTE_MS
"""Milliseconds until a refused start is tried again, or the end of the saga before is looked for again."""
MOST_CATCH_UP = 100
AT_ONCE = 1_000  # overdue ticks that one look judges
_NOT_YET = MOST_CATCH_UP + GRACE_MS // MINUTE_MS  # of more than that, as many may still be started
KEPT = 20  # of what became of ticks
RUNNING = 10  # sagas that are asked whether they have ended
_LONGEST_WHY = 300

STARTED, SKIPPED, MISSED, REFUSED, FAILED, TRIGGERED = (
    "started",
    "skipped",
    "missed",
    "refused",
    "failed",
    "triggered",
)


class TickOutcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """Outcome of a tick, or of the `count` ticks up to this one.

    `saga`: the saga that was started, or was in the way.
    """

    tick: int
    what: str
    saga: str = ""
    why: str = ""
    count: int = 1


class Opening(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tick that was decided to be started, and its input. `why`: reason of its refusals so far."""

    tick: int
    given: Any = None
    why: str = ""
    labels: dict[str, str] = {}


class ScheduleRecord(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """Schedule of one workflow. `number` counts its writes.

    `schedule` None: the version has no schedule any more.
    `by`: the user who registered the version, and starts its sagas.
    `anchor`: origin from which rates are counted.
    `next`: the oldest undecided tick. `due`: time of the next look (0: none by itself).
    `running`: sagas of the schedule that may be at work, where that matters.
    The counts are of ticks.
    """

    tenant: str
    workflow: str
    number: int
    version: int
    by: str
    anchor: int
    schedule: Schedule | None = None
    next: int = 0
    due: int = 0
    opening: Opening | None = None
    paused: int = 0
    paused_by: str = ""
    running: tuple[str, ...] = ()
    started: int = 0
    skipped: int = 0
    missed: int = 0
    refused: int = 0
    recent: tuple[TickOutcome, ...] = ()

    @property
    def overlap(self) -> str:
        """Treatment of a tick while a saga of the schedule is at work."""
        return ALLOW if self.schedule is None else self.schedule.overlap


# ---- registrations -----------------------------------------------------------------------------------------------


def register_version(
    there: ScheduleRecord | None,
    tenant: str,
    workflow: str,
    version: int,
    by: str,
    schedule: Schedule | None,
    now: int,
) -> ScheduleRecord | None:
    """Return the record with the schedule of this version; None: nothing has to be written."""
    if there is None:
        if schedule is None:
            return None
        empty = ScheduleRecord(tenant=tenant, workflow=workflow, number=0, version=version, by=by, anchor=now)
        return _next(empty, schedule, now)
    if there.version >= version:
        return None
    if there.schedule is not None and schedule is not None and _when(there.schedule) == _when(schedule):
        return _put(there, version=version, by=by, schedule=schedule)
    return _next(replace(there, version=version, by=by, anchor=now), schedule, now)


def _when(schedule: Schedule) -> tuple[str, int, str]:
    return schedule.cron, schedule.rate, schedule.timezone


def _next(there: ScheduleRecord, schedule: Schedule | None, now: int) -> ScheduleRecord:
    """Return the record, due at the first tick from now on, unless it is paused."""
    tick = 0
    if schedule is not None and not there.paused:
        tick = next_tick(schedule, there.anchor, now)
    return _put(there, schedule=schedule, next=tick, due=_due(there, tick))


def _due(there: ScheduleRecord, tick: int) -> int:
    return there.due if there.opening is not None else tick


def pause_schedule(there: ScheduleRecord, by: str, now: int) -> ScheduleRecord | None:
    """Return the paused schedule: no tick is started any more; a tick that was decided already is.
    None: it is paused already.
    """
    if there.paused:
        return None
    return _put(there, paused=now, paused_by=by, next=0, due=_due(there, 0))


def resume_schedule(there: ScheduleRecord, now: int) -> ScheduleRecord | None:
    """Return the resumed schedule, which goes on with the next tick; ticks of the pause are not made up for.
    None: it is not paused.
    """
    if not there.paused:
        return None
    return _next(replace(there, paused=0, paused_by=""), there.schedule, now)


# ---- ticks -------------------------------------------------------------------------------------------------------


def decide_tick(there: ScheduleRecord, at_work: tuple[str, ...], now: int) -> ScheduleRecord:
    """Decide the overdue ticks at `now` while nothing is being started.

    `at_work`: sagas of `running` that have not ended.
    """
    there, schedule = replace(there, running=at_work), there.schedule
    if schedule is None or not 0 < there.next <= now:
        return _put(there, due=there.next)
    further = takewhile(lambda tick: tick <= now, ticks(schedule, there.anchor, there.next))
    overdue = [there.next, *islice(further, AT_ONCE - 1)]
    in_time = sum(tick > now - GRACE_MS for tick in overdue)
    is_part = len(overdue) == AT_ONCE
    too_old = max(len(overdue) - (_NOT_YET if is_part else max(schedule.catch_up, in_time)), 0)
    kept = overdue[too_old:]
    if too_old:
        there = _missed(there, overdue[:too_old])
    if is_part:
        return _put(there, next=kept[0], due=kept[0])
    if kept and at_work and schedule.overlap == QUEUE:
        return _put(there, next=kept[0], due=now + AGAIN_MS)
    if kept and not at_work:
        following = next_tick(schedule, there.anchor, kept[0])
        return _put(
            there,
            next=following,
            opening=Opening(kept[0], input_at_tick(there, kept[0]), labels=schedule.labels),
        )
    following = next_tick(schedule, there.anchor, overdue[-1])
    there = replace(there, next=following, due=following)
    if not kept:
        return _put(there)
    said = TickOutcome(kept[-1], SKIPPED, at_work[0], count=len(kept))
    return _said(there, said, skipped=there.skipped + len(kept))


def _missed(there: ScheduleRecord, ticks: list[int]) -> ScheduleRecord:
    last = there.recent[-1] if there.recent else None
    if last is not None and last.what == MISSED:  # one long outage is one line
        kept = (*there.recent[:-1], TickOutcome(ticks[-1], MISSED, count=last.count + len(ticks)))
    else:
        kept = (*there.recent, TickOutcome(ticks[-1], MISSED, count=len(ticks)))[-KEPT:]
    return replace(there, missed=there.missed + len(ticks), recent=kept)


def tick_started(there: ScheduleRecord, saga: str) -> ScheduleRecord:
    """Return the record after the start of the tick that was decided."""
    return _closed(there, STARTED, saga, started=there.started + 1, running=_running(there, saga))


def put_off(there: ScheduleRecord, why: str, now: int) -> ScheduleRecord:
    """Return the record after a start that was refused for now.
    It is tried again until the next tick has come, and then given up.
    """
    assert there.opening is not None
    if there.paused or there.schedule is None or 0 < there.next <= now:
        return given_up(there, REFUSED, why)
    again = min(now + AGAIN_MS, there.next or now + AGAIN_MS)
    return _put(there, opening=replace(there.opening, why=why[:_LONGEST_WHY]), due=again)


def given_up(there: ScheduleRecord, what: str, why: str) -> ScheduleRecord:
    """Return the record after a tick that is not started: REFUSED until the next one had come,
    or (FAILED) it can never be.
    """
    return _closed(there, what, why=why[:_LONGEST_WHY], refused=there.refused + 1)


def count_manual_start(there: ScheduleRecord, saga: str, now: int) -> ScheduleRecord:
    """Return the record after a start by hand."""
    return _said(there, TickOutcome(now, TRIGGERED, saga), running=_running(there, saga))


def _running(there: ScheduleRecord, saga: str) -> tuple[str, ...]:
    if there.overlap == ALLOW:
        return ()
    return (*(one for one in there.running if one != saga), saga)[-RUNNING:]


def _closed(
    there: ScheduleRecord, what: str, saga: str = "", why: str = "", **changes: Any
) -> ScheduleRecord:
    assert there.opening is not None
    said = TickOutcome(there.opening.tick, what, saga, why)
    return _said(there, said, opening=None, due=there.next, **changes)


def _said(there: ScheduleRecord, outcome: TickOutcome, **changes: Any) -> ScheduleRecord:
    return _put(there, recent=(*there.recent, outcome)[-KEPT:], **changes)


def _put(there: ScheduleRecord, **changes: Any) -> ScheduleRecord:
    return replace(there, number=there.number + 1, **changes)


# ---- what a saga is started with ---------------------------------------------------------------------------------


def input_at_tick(there: ScheduleRecord, tick: int) -> Any:
    """Return the input of a tick: the schedule's own, with `${schedule.…}` filled in."""
    assert there.schedule is not None
    known = {"time": local_time(there.schedule.timezone, tick), "name": there.workflow}

    def lookup(path: Path) -> Any:
        return known

    return compile_template(there.schedule.input).render(lookup)


def local_time(timezone: str, tick: int) -> str:
    """Return a tick as local time, such as `2026-12-04T18:00:00+01:00`."""
    from datetime import UTC, datetime

    return datetime.fromtimestamp(tick // 1_000, UTC).astimezone(zone(timezone)).isoformat()
