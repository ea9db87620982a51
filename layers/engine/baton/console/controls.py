"""Pages of circuit breakers, schedules, users, incidents, and dead letters with their redrive in bulk."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlencode

from baton.console.acting import (
    Deed,
    Input,
    Kind,
    chosen_filters,
    deed_done,
    page_links,
    possible,
    possible_actions,
)
from baton.console.rendering import commands, part
from baton.console.visits import Answer, Html, Redirect, Visit, tag_of
from baton.errors import NotFound, UserError


def _page(
    kind: Kind, found: Any, visit: Visit, error: UserError | None, template: str, title: str,
    data: Mapping[str, Any], words: Sequence[str], tag: str,
) -> Html:  # fmt: skip
    """Return the page of one thing with the actions on it. error: of one that was refused."""
    name = visit.path[kind.parameter]
    common = {
        "error": error,
        "done": deed_done(kind.deeds, visit),
        "offered": possible_actions(kind.deeds, kind.at, name, found, visit),
        "commands": commands(visit.api, f"/{kind.at}/{name}", words),
        "key": "",
    }
    status = 200 if error is None else error.status
    return Html(
        template=template, title=title, data=common | dict(data), status=status, tag="" if error else tag
    )


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
    data, words = {"breaker": found}, ["breakers", "show", name]
    return _page(BREAKER, found, visit, error, "breaker.html", f"Breaker {name}", data, words, tag_of(found))


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
    data = {"schedule": found, "key": visit.said("key") or visit.token}
    title, words = f"Schedule of {name}", ["schedule", "show", name]
    return _page(SCHEDULE, found, visit, error, "schedule.html", title, data, words, tag_of(found))


SCHEDULE: Final = Kind(at="schedules", parameter="name", deeds=SCHEDULE_DEEDS, page=schedule)


def _named(visit: Visit) -> dict[str, Any]:
    body = {"user": visit.said("user") or visit.query.get("user", "")}
    return body | ({"note": visit.said("note")} if visit.said("note") else {})


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
        body=lambda visit: _named(visit) | {"limit_usd": visit.said("limit_usd") or None},
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


_FILTERS: Final = ("status", "saga", "node", "reason")


async def incidents(visit: Visit) -> Html:
    """Return the page of open incidents, or of those in another status."""
    kept, query = chosen_filters(visit, "status")
    status = kept.get("status", "open")
    query = {name: value for name, value in query.items() if value != "all"} | (
        {"status": "open"} if "status" not in kept else {}
    )
    page = await visit.call("listIncidents", query=query)
    listing = ["incidents", *(["--status", status] if status != "open" else [])]
    data = {
        "incidents": page["incidents"],
        "status": status,
        "commands": commands(visit.api, _with("/incidents", {"status": query.get("status", "")}), listing),
        **page_links(visit, "/console/incidents", kept, page["next"]),
    }
    tag = tag_of(page["incidents"], visit.query)
    return Html(template="incidents.html", title="Incidents", data=data, tag=tag)


INCIDENT_DEEDS: Final = (
    Deed(
        name="acknowledge",
        title="Acknowledge it",
        does="Others see that you have it, and the start page no longer counts it. It stays open until you, or a decision about its saga, "
        "resolve it. Who acknowledges it after you has it in your place.",
        done="You have it.",
        role="operate",
        route="acknowledgeIncident",
        inputs=(Input("note", "Note for the others (may be left empty)"),),
        body=lambda visit: {"note": visit.said("note")} if visit.said("note") else {},
        baton=lambda name, body: ["acknowledge", name, *(["--note", body["note"]] if body else [])],
        fits=lambda view: view["status"] == "open",
    ),
    Deed(
        name="resolve",
        title="Resolve it",
        does="It is dealt with: its saga has gone on, or ended, by itself. This changes nothing about the saga. An answer, a resume, a cancel or a "
        "fork of the saga resolves it as well.",
        done="It is resolved.",
        role="operate",
        route="resolveIncident",
        baton=lambda name, _: ["resolve", name],
        fits=lambda view: view["status"] == "open",
    ),
)


async def incident(visit: Visit, error: UserError | None = None) -> Html:
    """Return the page of one incident: its cause, the state of its saga, and remedies."""
    name = visit.path["incident"]
    found = await visit.call("showIncident", {"incident": name})
    try:
        saga = await visit.call("showSaga", {"saga": found["saga"]})
    except NotFound:
        saga = None
    data = {
        "incident": found,
        "saga": saga,
        "questions": [
            one for one in saga["questions"] if not found["node"] or one["node"] in (None, found["node"])
        ]
        if saga
        else [],
        "actions": possible(saga, visit.call.roles) if saga else [],
    }
    title, tag = f"Incident {name}", tag_of(found, saga and [saga["version"], saga["status"]])
    return _page(INCIDENT, found, visit, error, "incident.html", title, data, ["incidents", name], tag)


INCIDENT: Final = Kind(at="incidents", parameter="incident", deeds=INCIDENT_DEEDS, page=incident)


async def letters(visit: Visit) -> Html:
    """Return the page of dead letters in a status, oldest first."""
    kept, query = chosen_filters(visit, *_FILTERS)
    page = await visit.call("listDeadLetters", query=query)
    words = ["dlq", "list"]
    for name, value in kept.items():
        words += [f"--{name}", value]
    data = {
        "letters": page["dead_letters"],
        "kept": {name: kept.get(name, "") for name in _FILTERS},
        "is_filtered": bool(kept),
        "matching": {name: value for name, value in kept.items() if name != "status"},
        "commands": commands(visit.api, _with("/dead-letters", kept), words),
        **page_links(visit, "/console/dead-letters", kept, page["next"]),
    }
    return Html(template="letters.html", title="Dead letters", data=data, tag=_tag(*page["dead_letters"]))


def _with(path: str, query: dict[str, str]) -> str:
    query = {name: value for name, value in query.items() if value}
    return f"{path}?{urlencode(query)}" if query else path


def _force(visit: Visit) -> dict[str, Any]:
    return {"force": True} if visit.said("force") else {}


LETTER_DEEDS: Final = (
    Deed(
        name="redrive",
        title="Redrive it",
        does="A worker looks at its saga again. Mend the cause first: a saga that dies again is back on the list, and may be redriven "
        "three times without force.",
        done="A worker will look at its saga again.",
        role="operate",
        route="redriveDeadLetter",
        inputs=(
            Input("force", "Though it was redriven as often as it may, or is redriven already", "check"),
        ),
        body=_force,
        baton=lambda name, body: ["dlq", "redrive", name, *(["--force"] if body else [])],
        fits=lambda view: view["saga"] is not None,
    ),
    Deed(
        name="discard",
        title="Discard it",
        does="It is taken off the list. Its record stays until it expires, and nothing is done about its saga.",
        done="It is off the list.",
        role="operate",
        route="discardDeadLetter",
        inputs=(Input("reason", "Why, for the record"),),
        body=lambda visit: {"reason": visit.said("reason")},
        baton=lambda name, body: ["dlq", "discard", name, "--reason", body["reason"] or "REASON"],
        fits=lambda view: view["status"] != "discarded",
        danger=True,
    ),
)


async def letter(visit: Visit, error: UserError | None = None) -> Html:
    """Return the page of one dead letter."""
    name = visit.path["letter"]
    found = await visit.call("showDeadLetter", {"letter": name})
    data, words = {"letter": found}, ["dlq", "show", name]
    return _page(LETTER, found, visit, error, "letter.html", f"Dead letter {name}", data, words, _tag(found))


def _tag(*shown: Any) -> str:
    """Return the tag of letters without their age, which changes constantly and is not shown."""
    return tag_of([{name: value for name, value in one.items() if name != "age_ms"} for one in shown])


LETTER: Final = Kind(at="dead-letters", parameter="letter", deeds=LETTER_DEEDS, page=letter)


async def matching_letters(visit: Visit) -> Html:
    """Return the page with the number of matching pending letters, before they are redriven."""
    wanted = {name: visit.query[name] for name in _FILTERS[1:] if visit.query.get(name)}
    found = await visit.call("redriveDeadLetters", body={**wanted, "dry_run": True})
    return _redrive(visit, wanted, counted=found)


async def submit_redrive(visit: Visit) -> Html:
    """Redrive the matching letters, at most a hundred, and show the result of each."""
    wanted = {name: visit.said(name) for name in _FILTERS[1:] if visit.said(name)}
    cursor = {"cursor": visit.said("cursor")} if visit.said("cursor") else {}
    found = await visit.call("redriveDeadLetters", body={**wanted, **_force(visit), **cursor})
    return _redrive(visit, wanted, made=found)


def _redrive(
    visit: Visit, wanted: dict[str, str], *, counted: Any | None = None, made: Any | None = None
) -> Html:
    words = ["dlq", "redrive"]
    for name, value in wanted.items():
        words += [f"--{name}", value]
    data = {
        "wanted": wanted,
        "counted": counted,
        "made": made,
        "forced": bool(visit.said("force")),
        "commands": commands(
            visit.api, "/dead-letters/redrive", words if wanted else [*words, "--all"], wanted
        ),
    }
    return Html(template="letters-redrive.html", title="Redrive dead letters", data=data)
