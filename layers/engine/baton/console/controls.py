"""Pages of circuit breakers, of schedules and of users."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from baton.console.acting import Deed, Input, Kind, chosen_filters, deed_done, page_links, possible_actions
from baton.console.rendering import commands, part
from baton.console.visits import Answer, Html, Redirect, Visit, tag_of
from baton.errors import UserError


async def breakers(visit: Visit) -> Html:
    """Return the page of circuit breakers with recorded state."""
    kept, query = chosen_filters(visit)
    page = await visit.call("listBreakers", query=query)
    data = {
        "breakers": page["breakers"],
        "commands": commands(visit.api, "/breakers", ["breakers"]),
        **page_links(visit, "/console/breakers", kept, page["next"]),
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
        "offered": possible_actions(BREAKER_DEEDS, "breakers", name, found, visit),
        "commands": commands(visit.api, f"/breakers/{name}", ["breakers", "show", name]),
        "key": "",
    }
    status = 200 if error is None else error.status
    tag = "" if error else tag_of(found)
    return Html(template="breaker.html", title=f"Breaker {name}", data=data, status=status, tag=tag)


BREAKER: Final = Kind(at="breakers", parameter="breaker", deeds=BREAKER_DEEDS, page=breaker)


async def schedules(visit: Visit) -> Html:
    """Return the page of schedules, ordered by workflow name."""
    kept, query = chosen_filters(visit)
    page = await visit.call("listSchedules", query=query)
    data = {
        "schedules": page["schedules"],
        "commands": commands(visit.api, "/schedules", ["schedule", "list"]),
        **page_links(visit, "/console/schedules", kept, page["next"]),
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
        "offered": possible_actions(SCHEDULE_DEEDS, "schedules", name, found, visit),
        "commands": commands(visit.api, f"/schedules/{name}", ["schedule", "show", name]),
        "key": visit.said("key") or visit.token,
    }
    status = 200 if error is None else error.status
    tag = "" if error else tag_of(found)
    return Html(template="schedule.html", title=f"Schedule of {name}", data=data, status=status, tag=tag)


SCHEDULE: Final = Kind(at="schedules", parameter="name", deeds=SCHEDULE_DEEDS, page=schedule)


def _named(visit: Visit) -> dict[str, Any]:
    body = {"user": visit.said("user") or visit.query.get("user", "")}
    return body | ({"note": visit.said("note")} if visit.said("note") else {})


def _limited(visit: Visit) -> dict[str, Any]:
    return _named(visit) | {"limit_usd": visit.said("limit_usd") or None}


def _words(deed: str, body: Mapping[str, Any], *more: str) -> list[str]:
    return ["users", deed, body["user"], *more, *(["--note", body["note"]] if "note" in body else [])]


_USER: Final = Input("user", "User, as the list names it")
_NOTE: Final = Input("note", "Note for operators (may be left empty)")
USER_DEEDS: Final = (
    Deed(
        name="block",
        title="Block a user",
        does="No saga of this user starts, and none goes on to spend: it is parked before its next call that costs. Undoing goes on.",
        done="The user is blocked.",
        role="operate",
        route="blockUser",
        inputs=(_USER, _NOTE),
        body=_named,
        baton=lambda _, body: _words("block", body),
        fits=lambda view: view.get("state") != "blocked",
        danger=True,
    ),
    Deed(
        name="unblock",
        title="Unblock a user",
        does="Sagas of this user start again. Those that were parked go on when the day turns (UTC), or when they are resumed.",
        done="The user is not blocked.",
        role="operate",
        route="unblockUser",
        inputs=(_USER, _NOTE),
        body=_named,
        baton=lambda _, body: _words("unblock", body),
        fits=lambda view: view.get("state", "blocked") == "blocked",
    ),
    Deed(
        name="limit",
        title="Limit a user",
        does="This amount is what the user may spend on a day, in the place of the limit of all users. Without one, that of all users holds again.",
        done="The limit holds.",
        role="operate",
        route="limitUser",
        inputs=(_USER, Input("limit_usd", "Dollars a day (empty: the limit of all users)"), _NOTE),
        body=_limited,
        baton=lambda _, body: (
            _words("limit", body, str(body["limit_usd"])) if body["limit_usd"] else _words("unlimit", body)
        ),
    ),
)


async def users(visit: Visit, error: UserError | None = None) -> Html:
    """Show users, their spending and rules, or the one of the query: a name may have slashes."""
    kept, query = chosen_filters(visit, "user")
    page = await visit.call("listUsers", query=query)
    view = page["users"][0] if kept and page["users"] else {}
    offers = []
    for deed in USER_DEEDS:
        if deed.role in visit.call.roles and deed.fits(view):
            body, path = deed.body(visit), f"/users/{deed.name}"
            said = {one.name: visit.said(one.name) for one in deed.inputs} | {"user": body["user"]}
            offers.append(
                {
                    "deed": deed,
                    "there": f"/console{path}",
                    "said": said,
                    "commands": commands(visit.api, path, deed.baton("", body), body),
                }
            )
    there = f"/users?{urlencode(kept)}" if kept else "/users"
    data = {
        "users": page["users"],
        "day": page["day"],
        "only": kept.get("user", ""),
        "error": error,
        "done": deed_done(USER_DEEDS, visit),
        "offered": offers,
        "commands": commands(visit.api, there, ["users", *(["show", kept["user"]] if kept else [])]),
        "key": "",
        **page_links(visit, "/console/users", kept, page["next"]),
    }
    status = 200 if error is None else error.status
    tag = "" if error else tag_of(page["users"])
    return Html(template="users.html", title="Users", data=data, status=status, tag=tag)


def user_deed(deed: Deed) -> Callable[[Visit], Awaitable[Answer]]:
    """Return the page that receives the form of a deed."""

    async def page(visit: Visit) -> Answer:
        body = deed.body(visit)
        try:
            await visit.call(deed.route, body=body)
        except UserError as error:
            return await users(visit, error)
        return Redirect(f"/console/users?{urlencode({'user': body['user'], 'done': deed.name})}")

    return page
