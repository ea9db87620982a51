"""Schedules: the list, and one with its next tick, its last ones, and what can be done about it."""

from __future__ import annotations

from typing import Final

from baton.console.deeds import Deed, Kind, asked, done, offered, paged
from baton.console.rendering import part
from baton.console.shell import commands
from baton.console.visits import Html, Visit, tag_of
from baton.errors import UserError


async def schedules(visit: Visit) -> Html:
    """By the names of their workflows."""
    kept, query = asked(visit)
    page = await visit.call("listSchedules", query=query)
    data = {
        "schedules": page["schedules"],
        "commands": commands(visit.api, "/schedules", ["schedule", "list"]),
        **paged(visit, "/console/schedules", kept, page["next"]),
    }
    return Html(template="schedules.html", title="Schedules", data=data, tag=tag_of(page["schedules"]))


SCHEDULE_DEEDS: Final = (
    Deed(
        name="pause",
        title="Pause it",
        does="It starts nothing more until it is resumed. Sagas that it has started go on.",
        done="It is paused.",
        role="operate",
        route="pauseSchedule",
        baton=lambda name, _: ["schedule", "pause", name],
        fits=lambda view: view["state"] == "active",
    ),
    Deed(
        name="resume",
        title="Resume it",
        does="It goes on with its next tick. Ticks of the time in which it was paused are not made up for.",
        done="It goes on with its next tick.",
        role="operate",
        route="resumeSchedule",
        baton=lambda name, _: ["schedule", "resume", name],
        fits=lambda view: view["state"] == "paused",
    ),
    Deed(
        name="trigger",
        title="Start a saga now",
        does="A saga is started as the schedule would start it, now, also while the schedule is paused or another saga of it is at work. "
        "The next tick stays as it is. The same form sent twice starts one saga.",
        done="",
        role="run",
        route="triggerSchedule",
        baton=lambda name, _: ["schedule", "trigger", name],
        then=lambda found: f"/console/sagas/{part(found['id'])}",
        has_key=True,
    ),
)


async def schedule(visit: Visit, error: UserError | None = None) -> Html:
    """One schedule."""
    name = visit.path["name"]
    found = await visit.call("showSchedule", {"name": name})
    data = {
        "schedule": found,
        "error": error,
        "done": done(SCHEDULE_DEEDS, visit),
        "offered": offered(SCHEDULE_DEEDS, "schedules", name, found, visit),
        "commands": commands(visit.api, f"/schedules/{name}", ["schedule", "show", name]),
        "key": visit.said("key") or visit.token,
    }
    status = 200 if error is None else error.status
    tag = "" if error else tag_of(found)
    return Html(template="schedule.html", title=f"Schedule of {name}", data=data, status=status, tag=tag)


SCHEDULE: Final = Kind(at="schedules", parameter="name", deeds=SCHEDULE_DEEDS, page=schedule)
