"""What becomes of the ticks of a schedule, as values: registrations, pauses, overlaps, outages, refusals."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.graph.graph import ALLOW, QUEUE, SKIP, Schedule
from baton.core.schedules import (
    AGAIN_MS,
    AT_ONCE,
    FAILED,
    GRACE_MS,
    KEPT,
    MISSED,
    REFUSED,
    RUNNING,
    SKIPPED,
    STARTED,
    TRIGGERED,
    Opening,
    ScheduleRecord,
    TickOutcome,
    count_manual_start,
    decide_tick,
    given_up,
    input_at_tick,
    pause_schedule,
    put_off,
    register_version,
    resume_schedule,
    tick_started,
)

HOUR = 3_600_000
NOW = 1_790_000_000_000
HOURLY = Schedule(rate=HOUR, input={"at": "${schedule.time}", "of": "${schedule.name}"})


def new(schedule: Schedule | None = HOURLY, version: int = 1) -> ScheduleRecord:
    record = register_version(None, "acme", "report", version, "mia", schedule, NOW)
    assert record is not None
    return record


def due(record: ScheduleRecord, now: int, *at_work: str) -> ScheduleRecord:
    """Decided, and started where that was decided, until nothing is due."""
    while 0 < record.due <= now:
        if record.opening is None:
            record = decide_tick(record, at_work, now)
        else:
            record = tick_started(record, f"saga-{record.opening.tick}")
    return record


def told(record: ScheduleRecord) -> list[tuple[int, str, int]]:
    """Hours after the registration, what, and how many."""
    return [((one.tick - NOW) // HOUR, one.what, one.count) for one in record.recent]


def rule(**changes: Any) -> Schedule:
    return replace(HOURLY, **changes)


# ---- registrations


def test_a_schedule_that_is_registered_is_due_at_its_first_tick() -> None:
    record = new()
    assert (record.number, record.next, record.due) == (1, NOW + HOUR, NOW + HOUR)
    assert register_version(None, "acme", "report", 1, "mia", None, NOW) is None, "nothing to write"


def test_the_same_or_an_older_version_changes_nothing() -> None:
    record = new(version=3)
    assert register_version(record, "acme", "report", 3, "mia", None, NOW) is None
    assert register_version(record, "acme", "report", 2, "mia", None, NOW) is None


def test_a_version_with_the_same_times_keeps_them_and_brings_what_else_is_new() -> None:
    record = new()
    after = register_version(record, "acme", "report", 2, "tom", rule(overlap=ALLOW), NOW + 5)
    assert after == replace(record, number=2, version=2, by="tom", schedule=rule(overlap=ALLOW))


def test_a_version_with_other_times_is_counted_from_then_and_one_without_is_in_no_index() -> None:
    record = new()
    other = register_version(record, "acme", "report", 2, "mia", rule(rate=2 * HOUR), NOW + 5)
    assert other is not None
    assert other.due == NOW + 5 + 2 * HOUR
    gone = register_version(other, "acme", "report", 3, "mia", None, NOW + 9)
    assert gone is not None
    assert (gone.due, gone.next, gone.schedule, gone.overlap) == (0, 0, None, ALLOW)
    again = register_version(gone, "acme", "report", 4, "mia", HOURLY, NOW + 10)
    assert again is not None
    assert again.due == NOW + 10 + HOUR


def test_a_tick_that_was_decided_is_started_whatever_is_registered_meanwhile() -> None:
    record = decide_tick(new(), (), NOW + HOUR)
    gone = register_version(record, "acme", "report", 2, "mia", None, NOW + HOUR)
    assert gone is not None
    assert (gone.opening, gone.due) == (record.opening, record.due)
    assert tick_started(gone, "s").due == 0


# ---- pauses


def test_a_pause_makes_up_for_nothing() -> None:
    record = pause_schedule(new(), "ops", NOW + 1)
    assert record is not None
    assert (record.due, record.paused, record.paused_by) == (0, NOW + 1, "ops")
    assert pause_schedule(record, "ops", NOW + 2) is None, "it is paused"
    after = resume_schedule(record, NOW + 3 * HOUR + 1)
    assert after is not None
    assert (after.due, after.missed, after.paused) == (NOW + 4 * HOUR, 0, 0)
    assert resume_schedule(after, NOW) is None, "it is not paused"


def test_a_schedule_stays_paused_when_another_version_is_registered() -> None:
    record = pause_schedule(new(), "ops", NOW)
    changed = register_version(record, "acme", "report", 2, "mia", rule(rate=2 * HOUR), NOW)
    assert changed is not None
    assert (changed.due, changed.paused) == (0, NOW)


def test_a_paused_schedule_starts_what_was_decided_and_tries_nothing_again() -> None:
    record = pause_schedule(decide_tick(new(), (), NOW + HOUR), "ops", NOW + HOUR)
    assert record is not None
    assert record.due == NOW + HOUR
    assert tick_started(record, "s").due == 0
    refused = put_off(record, "full", NOW + HOUR)
    assert (refused.opening, refused.due, refused.refused) == (None, 0, 1)


# ---- ticks


def test_a_tick_is_decided_with_its_input_and_then_started() -> None:
    record = decide_tick(new(), (), NOW + HOUR + 7)
    assert record.opening == Opening(NOW + HOUR, {"at": "2026-09-21T15:13:20+00:00", "of": "report"})
    assert (record.due, record.next) == (NOW + HOUR, NOW + 2 * HOUR), "still due: it is to be started"
    after = tick_started(record, "s-1")
    assert (after.due, after.opening, after.started) == (NOW + 2 * HOUR, None, 1)
    assert after.recent == (TickOutcome(NOW + HOUR, STARTED, "s-1"),)


def test_a_look_that_comes_when_nothing_is_due_any_more_moves_on() -> None:
    record = replace(new(), due=NOW)
    assert decide_tick(record, (), NOW).due == NOW + HOUR
    gone = replace(record, schedule=None, next=0)
    assert decide_tick(gone, (), NOW).due == 0


def test_skip_passes_over_ticks_while_a_saga_is_at_work() -> None:
    record = due(new(), NOW + HOUR)
    assert record.running == (f"saga-{NOW + HOUR}",)
    record = due(record, NOW + 2 * HOUR, *record.running)
    assert (record.skipped, record.due) == (1, NOW + 3 * HOUR)
    assert record.recent[-1] == TickOutcome(NOW + 2 * HOUR, SKIPPED, f"saga-{NOW + HOUR}")
    record = due(record, NOW + 3 * HOUR)
    assert told(record) == [(1, STARTED, 1), (2, SKIPPED, 1), (3, STARTED, 1)]
    assert record.running == (f"saga-{NOW + 3 * HOUR}",), "what has ended is forgotten"


def test_queue_waits_for_the_end_and_starts_one_after_the_other() -> None:
    record = due(new(rule(overlap=QUEUE, catch_up=10)), NOW + HOUR)
    now = NOW + 3 * HOUR
    waiting = due(record, now, *record.running)
    assert (waiting.due, waiting.next, waiting.missed) == (now + AGAIN_MS, NOW + 2 * HOUR, 0)
    first = due(decide_tick(waiting, (), now + AGAIN_MS), now + AGAIN_MS, "saga-at-work")
    assert told(first) == [(1, STARTED, 1), (2, STARTED, 1)]
    assert (first.next, first.due) == (NOW + 3 * HOUR, now + 2 * AGAIN_MS), "the third waits for the second"


def test_a_queue_keeps_the_newest_ticks() -> None:
    record = due(new(rule(overlap=QUEUE, catch_up=2)), NOW + HOUR)
    waiting = due(record, NOW + 6 * HOUR, *record.running)
    assert (waiting.next, waiting.missed) == (NOW + 5 * HOUR, 3)
    assert told(waiting)[-1] == (4, MISSED, 3)


def test_allow_starts_beside_what_is_at_work_and_remembers_none() -> None:
    record = due(new(rule(overlap=ALLOW, catch_up=3)), NOW + 4 * HOUR)
    assert told(record) == [(1, MISSED, 1), (2, STARTED, 1), (3, STARTED, 1), (4, STARTED, 1)]
    assert record.running == ()


def test_after_an_outage_the_newest_tick_is_started_and_the_others_are_counted() -> None:
    record = due(new(), NOW + 9 * HOUR + HOUR // 2)
    assert told(record) == [(8, MISSED, 8), (9, STARTED, 1)]
    assert (record.missed, record.started) == (8, 1)


def test_with_no_catch_up_a_tick_is_started_only_within_five_minutes() -> None:
    schedule = rule(catch_up=0)
    late = due(new(schedule), NOW + HOUR + GRACE_MS)
    assert (told(late), late.due) == ([(1, MISSED, 1)], NOW + 2 * HOUR)
    assert told(due(new(schedule), NOW + HOUR + GRACE_MS - 1)) == [(1, STARTED, 1)]


def test_what_is_a_few_minutes_late_is_no_outage() -> None:
    record = due(new(rule(rate=60_000, overlap=ALLOW)), NOW + 4 * 60_000)
    assert (record.started, record.missed) == (4, 0)


def test_a_long_outage_is_counted_to_the_last_tick_and_is_one_line() -> None:
    minutes = 3 * AT_ONCE + 17
    record = due(new(rule(rate=60_000, overlap=ALLOW, catch_up=100)), NOW + minutes * 60_000)
    assert (record.started, record.missed) == (100, minutes - 100)
    assert record.due == NOW + (minutes + 1) * 60_000
    record = due(new(rule(rate=60_000)), NOW + minutes * 60_000, "busy")
    assert (record.missed, record.skipped) == (minutes - 5, 5)
    assert [(one.what, one.count) for one in record.recent] == [(MISSED, minutes - 5), (SKIPPED, 5)]


# ---- refusals


def test_a_refused_start_is_tried_again_until_the_next_tick_has_come() -> None:
    record = decide_tick(new(), (), NOW + HOUR)
    later = put_off(record, "full" * 200, NOW + HOUR)
    assert later.opening == replace(record.opening, why=("full" * 200)[:300])  # type: ignore[type-var]
    assert later.due == NOW + HOUR + AGAIN_MS
    assert put_off(record, "full", NOW + 2 * HOUR - 1).due == NOW + 2 * HOUR
    gone = put_off(later, "full", NOW + 2 * HOUR)
    assert gone.recent == (TickOutcome(NOW + HOUR, REFUSED, why="full"),)
    assert (gone.refused, gone.due, gone.opening) == (1, NOW + 2 * HOUR, None)


def test_a_refused_last_tick_is_tried_again_for_ever() -> None:
    record = replace(decide_tick(new(), (), NOW + HOUR), next=0)
    assert put_off(record, "full", NOW + 9 * HOUR).due == NOW + 9 * HOUR + AGAIN_MS


def test_a_start_that_can_never_be_is_said_and_the_schedule_goes_on() -> None:
    record = given_up(decide_tick(new(), (), NOW + HOUR), FAILED, "no such input")
    assert (record.recent[-1].what, record.recent[-1].why) == (FAILED, "no such input")
    assert (record.refused, record.due) == (1, NOW + 2 * HOUR)


# ---- by hand, and what is kept


def test_a_saga_that_was_started_by_hand_is_in_the_way_of_the_next_tick() -> None:
    record = count_manual_start(new(), "mine", NOW)
    assert (record.running, record.due) == (("mine",), NOW + HOUR)
    assert record.recent == (TickOutcome(NOW, TRIGGERED, "mine"),)
    assert count_manual_start(new(rule(overlap=ALLOW)), "mine", NOW).running == ()


def test_what_is_kept_is_bounded() -> None:
    record = new()
    for number in range(KEPT + 5):
        record = count_manual_start(record, f"s-{number}", NOW)
    assert len(record.recent) == KEPT
    assert record.running == tuple(f"s-{KEPT + 5 - RUNNING + number}" for number in range(RUNNING))


@pytest.mark.parametrize("overlap", [SKIP, QUEUE, ALLOW])
@pytest.mark.parametrize("rest", range(4))
def test_every_tick_is_started_skipped_missed_or_refused_exactly_once(overlap: str, rest: int) -> None:
    record = new(rule(rate=60_000, overlap=overlap, catch_up=1 if overlap == SKIP else 4))
    now = NOW
    for step in range(60):
        now += (step * 37 + rest * 11) % 9 * 60_000
        if record.opening is None and 0 < record.due <= now:
            record = decide_tick(record, record.running[step % 3 :], now)
        elif record.opening is not None and record.due <= now:
            record = tick_started(record, f"s-{step}") if step % 4 else put_off(record, "full", now)
    begun = 0 if record.opening is None else 1
    ended = record.started + record.skipped + record.missed + record.refused
    assert ended + begun == (record.next - NOW) // 60_000 - 1


def test_the_input_is_of_the_time_zone() -> None:
    record = new(Schedule(cron="0 0 * * *", timezone="Europe/Berlin", input="${schedule.time}"))
    assert input_at_tick(record, NOW) == "2026-09-21T16:13:20+02:00"
