"""Pages of incidents, and of dead letters with their redrive in bulk."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

from baton.console.acting import Deed, Input, Kind, asked, deed_done, offered, paged, possible
from baton.console.rendering import commands
from baton.console.visits import Html, Visit, tag_of
from baton.errors import NotFound, UserError

_FILTERS: Final = ("status", "saga", "node", "reason")


async def incidents(visit: Visit) -> Html:
    """Return the page of open incidents, or of those in another status."""
    kept, query = asked(visit, "status")
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
        **paged(visit, "/console/incidents", kept, page["next"]),
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
        "error": error,
        "done": deed_done(INCIDENT_DEEDS, visit),
        "offered": offered(INCIDENT_DEEDS, "incidents", name, found, visit),
        "commands": commands(visit.api, f"/incidents/{name}", ["incidents", name]),
        "key": "",
    }
    status = 200 if error is None else error.status
    tag = "" if error else tag_of(found, saga and [saga["version"], saga["status"]])
    return Html(template="incident.html", title=f"Incident {name}", data=data, status=status, tag=tag)


INCIDENT: Final = Kind(at="incidents", parameter="incident", deeds=INCIDENT_DEEDS, page=incident)


async def letters(visit: Visit) -> Html:
    """Return the page of dead letters in a status, oldest first."""
    kept, query = asked(visit, *_FILTERS)
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
        **paged(visit, "/console/dead-letters", kept, page["next"]),
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
    data = {
        "letter": found,
        "error": error,
        "done": deed_done(LETTER_DEEDS, visit),
        "offered": offered(LETTER_DEEDS, "dead-letters", name, found, visit),
        "commands": commands(visit.api, f"/dead-letters/{name}", ["dlq", "show", name]),
        "key": "",
    }
    status = 200 if error is None else error.status
    tag = "" if error else _tag(found)
    return Html(template="letter.html", title=f"Dead letter {name}", data=data, status=status, tag=tag)


def _tag(*shown: Any) -> str:
    """Return the tag of letters without their age, which changes constantly and is not shown."""
    return tag_of([{name: value for name, value in one.items() if name != "age_ms"} for one in shown])


LETTER: Final = Kind(at="dead-letters", parameter="letter", deeds=LETTER_DEEDS, page=letter)


async def counted(visit: Visit) -> Html:
    """Return the page with the number of matching pending letters, before they are redriven."""
    wanted = {name: visit.query[name] for name in _FILTERS[1:] if visit.query.get(name)}
    found = await visit.call("redriveDeadLetters", body={**wanted, "dry_run": True})
    return _redrive(visit, wanted, counted=found)


async def redrive(visit: Visit) -> Html:
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
