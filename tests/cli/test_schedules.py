"""Schedules on the command line: as lines of text, and what the commands ask of the API."""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from baton.cli.text.tables import schedule_lines, schedule_rows
from baton.core.graph.graph import Schedule
from baton.core.schedules import (
    FAILED,
    MISSED,
    REFUSED,
    SKIPPED,
    STARTED,
    TRIGGERED,
    Opening,
    ScheduleRecord,
    TickOutcome,
)
from baton.runtime.requests.schedules import schedule_view
from tests.cli.conftest import Baton, FakeApi
from tests.kit.sentences import Says
from tests.kit.views import as_json

NOW = 1_790_000_000_000
RECORD = ScheduleRecord(
    tenant="acme",
    workflow="report",
    number=9,
    version=3,
    by="mia",
    anchor=NOW,
    schedule=Schedule(cron="0 18 * * fri", timezone="Europe/Berlin"),
    next=NOW + 60_000,
    due=NOW,
    opening=Opening(NOW, None, "tenant `acme` has 5 sagas at work"),
    started=4,
    skipped=3,
    missed=1_002,
    refused=1,
    recent=(
        TickOutcome(NOW - 6, STARTED, "s-1"),
        TickOutcome(NOW - 5, SKIPPED, "s-1", count=3),
        TickOutcome(NOW - 4, MISSED, count=1_002),
        TickOutcome(NOW - 3, REFUSED, why="full"),
        TickOutcome(NOW - 2, FAILED, why="too large"),
        TickOutcome(NOW - 1, TRIGGERED, "s-2"),
    ),
)
PAUSED = replace(
    RECORD,
    workflow="a",
    schedule=Schedule(rate=300_000),
    next=0,
    paused=NOW,
    paused_by="ops",
    skipped=0,
    missed=0,
    refused=0,
)


def views() -> list[dict[str, Any]]:
    return [as_json(schedule_view(RECORD)), as_json(schedule_view(PAUSED))]


def test_a_list_has_a_line_for_each() -> None:
    assert schedule_rows(views()) == [
        "report  0 18 * * fri (Europe/Berlin)  next 2026-09-21 14:14:20  3 skipped, 1,002 missed, 1 refused",
        "a       every 5 min                   paused since 2026-09-21 14:13:20 by ops",
    ]


def test_one_is_shown_with_what_became_of_its_ticks(says: Says) -> None:
    says(schedule_lines(views()[0]))
    quiet = replace(RECORD, opening=Opening(NOW), recent=())
    assert schedule_lines(as_json(schedule_view(quiet)))[5] == "starting  2026-09-21 14:13:20"
    assert "starting" not in "".join(schedule_lines(as_json(schedule_view(replace(quiet, opening=None)))))


def test_the_commands_list_show_pause_and_resume(api: FakeApi, baton: Baton) -> None:
    one = views()[0]
    api.on("GET /schedules", (200, {"schedules": views(), "next": None}))
    api.on("GET /schedules/report", (200, one))
    for deed in ("pause", "resume"):
        api.on(f"POST /schedules/report/{deed}", (202, one))
    assert baton("schedule", "list").stdout.splitlines() == schedule_rows(views())
    assert json.loads(baton("schedule", "list", "--json").stdout) == {"schedules": views()}
    for deed in ("show", "pause", "resume"):
        assert baton("schedule", deed, "report").stdout.splitlines() == schedule_lines(one)
        assert json.loads(baton("schedule", deed, "report", "--json").stdout) == one


def test_a_saga_is_triggered(api: FakeApi, baton: Baton) -> None:
    started = {"id": "s-9", "status": "pending", "workflow": "report", "version": 1}
    api.on("POST /schedules/report/trigger", (201, started))
    assert baton("schedule", "trigger", "report").stdout == "s-9  pending\n"
    assert json.loads(baton("schedule", "trigger", "report", "--json", "--key", "k").stdout) == started


def test_none_is_said_to_be_none(api: FakeApi, baton: Baton, says: Says) -> None:
    api.on("GET /schedules", (200, {"schedules": [], "next": None}))
    says(baton("schedule", "list").stdout)
