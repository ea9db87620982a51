"""Pages of circuit breakers and of schedules."""

from __future__ import annotations

from typing import Any, Final

from baton.console.acting import Deed, Input, Kind, asked, deed_done, offered, paged
from baton.console.rendering import commands, part
from baton.console.visits import Html, Visit, tag_of
from baton.errors import UserError


async def breakers(visit: Visit) -> Html:
    """Return the page of circuit breakers with recorded state."""
    kept, query = asked(visit)
    page = await visit.call("listBreakers", query=query)
    data = {
        "breakers": page["breakers"],
        "commands": commands(visit.api, "/breakers", ["breakers"]),
        **paged(visit, "/console/breakers", kept, page["next"]),
    }
    return Html(template="breakers.html", title="Breakers", data=data, tag=tag_of(page["breakers"]))


def _for(visit: Visit) -> dict[str, Any]:
    said = visit.said("for_s")
    return (
        {"for_s": int(said) if said.isascii() and said.isdigit() and len(said) < 10 else said} if said else {}
    )


BREAKER_DEEDS: Final = (
    Deed(
        name="open",
        title="Open it",
        does="No call to this target is made, within a minute on every worker. Steps that need it wait. Without a time it stays open until "
        "it is reset.",
        done="It is open. Within a minute no worker makes a call.",
        role="operate",
        route="openBreaker",
        inputs=(Input("for_s", "For how long, such as 10m (may be left empty)"),),
        body=_for,
        baton=lambda name, body: ["breakers", "open", name, *(["--for", str(body["for_s"])] if body else [])],
        danger=True,
    ),
    Deed(
        name="reset",
        title="Reset it",
        does="Calls go through within five seconds. Steps that wait come at the time they were told.",
        done="It is closed. Calls go through.",
        role="operate",
        route="resetBreaker",
        baton=lambda name, _: ["breakers", "reset", name],
        fits=lambda view: view["state"] != "closed",
    ),
)


async def breaker(visit: Visit, error: UserError | None = None) -> Html:
    """Return the page of one breaker: its state, its last failures and transitions."""
    name = visit.path["breaker"]
    found = await visit.call("showBreaker", {"breaker": name})
    data = {
        "breaker": found,
        "error": error,
        "done": deed_done(BREAKER_DEEDS, visit),
        "offered": offered(BREAKER_DEEDS, "breakers", name, found, visit),
        "commands": commands(visit.api, f"/breakers/{name}", ["breakers", "show", name]),
        "key": "",
    }
    status = 200 if error is None else error.status
    tag = "" if error else tag_of(found)
    return Html(template="breaker.html", title=f"Breaker {name}", data=data, status=status, tag=tag)


BREAKER: Final = Kind(at="breakers", parameter="breaker", deeds=BREAKER_DEEDS, page=breaker)


async def schedules(visit: Visit) -> Html:
    """Return the page of schedules, ordered by workflow name."""
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
    """Return the page of one schedule."""
    name = visit.path["name"]
    found = await visit.call("showSchedule", {"name": name})
    data = {
        "schedule": found,
        "error": error,
        "done": deed_done(SCHEDULE_DEEDS, visit),
        "offered": offered(SCHEDULE_DEEDS, "schedules", name, found, visit),
        "commands": commands(visit.api, f"/schedules/{name}", ["schedule", "show", name]),
        "key": visit.said("key") or visit.token,
    }
    status = 200 if error is None else error.status
    tag = "" if error else tag_of(found)
    return Html(template="schedule.html", title=f"Schedule of {name}", data=data, status=status, tag=tag)


SCHEDULE: Final = Kind(at="schedules", parameter="name", deeds=SCHEDULE_DEEDS, page=schedule)
