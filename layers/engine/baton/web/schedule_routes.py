"""The routes of schedules: rows of the table in routes.py."""

from __future__ import annotations

from typing import Any

from baton.web import commands, reads
from baton.web.route import CURSOR, LIMIT, WORKFLOW, Route

SCHEDULES: tuple[Route[Any], ...] = (
    Route(
        method="GET", path="/schedules", id="listSchedules", handler=reads.list_schedules, roles=("read",),
        summary="Schedules by the names of their workflows.",
        query=(LIMIT, CURSOR), answers={200: "SchedulePage"},
    ),
    Route(
        method="GET", path="/schedules/{name}", id="showSchedule", handler=reads.show_schedule, roles=("read",),
        summary="The schedule of a workflow, and what became of its last ticks.",
        parameters=(WORKFLOW,), answers={200: "ScheduleView"},
    ),
    Route(
        method="POST", path="/schedules/{name}/pause", id="pauseSchedule", handler=commands.pause_schedule,
        roles=("operate",), summary="Start nothing more by a schedule until it is resumed. Repeated, it changes nothing.",
        parameters=(WORKFLOW,), answers={202: "ScheduleView"},
    ),
    Route(
        method="POST", path="/schedules/{name}/resume", id="resumeSchedule", handler=commands.resume_schedule,
        roles=("operate",), summary="Go on with the next tick of a schedule. Repeated, it changes nothing.",
        parameters=(WORKFLOW,), answers={202: "ScheduleView"},
    ),
    Route(
        method="POST", path="/schedules/{name}/trigger", id="triggerSchedule", handler=commands.trigger_schedule,
        roles=("run",), summary="Start a saga as the schedule would, now; a known key gives the same saga.",
        parameters=(WORKFLOW,), has_key=True, answers={201: "Started", 200: "Started"}, refusals=(422,),
    ),
)  # fmt: skip
