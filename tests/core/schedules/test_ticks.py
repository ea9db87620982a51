"""When a schedule has its ticks: rates, cron expressions, time zones and the days on which clocks change."""

from __future__ import annotations

from datetime import UTC, datetime
from itertools import islice

import pytest

from baton.core.graph.graph import Schedule
from baton.core.schedules import next_tick, read_cron, read_rate, ticks, zone, zone_names
from tests.kit.sentences import Says

BERLIN = "Europe/Berlin"


def at(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1_000)


def first(cron: str, after: str, count: int = 3, timezone: str = BERLIN) -> list[str]:
    found = islice(ticks(Schedule(cron=cron, timezone=timezone), 0, at(after)), count)
    return [datetime.fromtimestamp(tick / 1_000, UTC).strftime("%m-%dT%H:%M") for tick in found]


def test_a_tick_is_at_the_time_of_its_zone_in_summer_and_in_winter() -> None:
    assert first("0 18 * * fri", "2026-10-20T00:00Z") == ["10-23T16:00", "10-30T17:00", "11-06T17:00"]
    assert first("0 18 * * fri", "2026-10-20T00:00Z", 1, "UTC") == ["10-23T18:00"]


def test_a_tick_is_after_the_moment_and_never_at_it() -> None:
    assert first("0 18 * * *", "2026-11-23T17:00Z", 1) == ["11-24T17:00"]
    assert first("0 18 * * *", "2026-11-23T16:59:59.999Z", 1) == ["11-23T17:00"]


def test_a_daily_tick_in_the_hour_that_is_skipped_comes_right_after_it_and_once() -> None:
    assert first("30 2 * * *", "2026-03-28T12:00Z") == ["03-29T01:00", "03-30T00:30", "03-31T00:30"]


def test_two_ticks_that_fall_together_because_an_hour_is_skipped_are_one() -> None:
    assert first("0,30 2,3 * * *", "2026-03-29T00:00Z") == ["03-29T01:00", "03-29T01:30", "03-30T00:00"]


def test_a_daily_tick_in_the_hour_that_comes_twice_comes_once() -> None:
    assert first("30 2 * * *", "2026-10-24T12:00Z", 2) == ["10-25T00:30", "10-26T01:30"]
    # Asked in the second of the two hours, before its half.
    assert first("30 2 * * *", "2026-10-25T01:10Z", 1) == ["10-26T01:30"]


def test_what_follows_elapsed_time_has_a_tick_in_each_of_the_two_hours() -> None:
    assert first("0 * * * *", "2026-10-24T23:30Z", 4) == [
        "10-25T00:00",
        "10-25T01:00",
        "10-25T02:00",
        "10-25T03:00",
    ]


def test_a_rate_is_counted_from_its_anchor_through_every_change_of_clocks() -> None:
    schedule = Schedule(rate=7_200_000)
    anchor = at("2026-10-24T23:30Z")
    found = list(islice(ticks(schedule, anchor, anchor), 2))
    assert found == [anchor + 7_200_000, anchor + 14_400_000]
    assert next_tick(schedule, anchor, anchor + 7_200_000) == anchor + 14_400_000
    assert next_tick(schedule, anchor, anchor - 1) == anchor


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("0  18 * * FRI", "0 18 * * fri"),
        ("@Daily", "@daily"),
        ("*/15 8-17 * jan-mar 1#2", "*/15 8-17 * jan-mar 1#2"),
    ],
)
def test_a_cron_expression_is_read_in_one_spelling(written: str, read: str) -> None:
    assert read_cron(written) == read
    assert first(read, "2026-01-01T00:00Z", 1)


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("cron(0 18 ? * 6 *)", "`0 18 * * fri`"),
        ("0 10 ? * MON-FRI", "`0 10 * * mon-fri`"),
        ("0 10 ? * 2#1 *", "`0 10 * * mon#1`"),
        ("0 10 1 1 ? 2027", "not a cron expression of five fields"),
        ("rate(5 minutes)", "write `rate: rate"),
        ("* * * *", "4 fields"),
        ("61 * * * *", "field minute"),
        ("0 0 31 feb *", "have no such day"),
        ("0 0 * feb mon#9", "day-of-week"),
        ("@noon", "@hourly"),
        (5, "five fields"),
    ],
)
def test_what_is_no_cron_expression_is_refused_with_what_would_be_right(written: object, said: str) -> None:
    with pytest.raises(ValueError, match=r"field|five|rate|hourly|such") as refused:
        read_cron(written)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("written", "ms"),
    [
        ("5m", 300_000),
        ("5 minutes", 300_000),
        ("rate(1 hour)", 3_600_000),
        ("1.5 hours", 5_400_000),
        (90, 90_000),
    ],
)
def test_a_rate_is_read_as_people_write_it(written: object, ms: int) -> None:
    assert read_rate(written) == ms


@pytest.mark.parametrize("written", ["10s", "30 seconds", "400d", "x", None])
def test_a_rate_is_between_a_minute_and_a_year(written: object, says: Says) -> None:
    with says.raised(ValueError):
        read_rate(written)


@pytest.mark.parametrize("name", ["Europe/Berln", "Europe", "../etc/passwd", ""])
def test_what_is_no_time_zone_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no time zone"):
        zone(name)
    assert BERLIN in zone_names()
