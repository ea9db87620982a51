"""Circuit breakers: the list, and one with its history and what an operator can do about it."""

from __future__ import annotations

from typing import Any, Final

from baton.console.acting import Input
from baton.console.deeds import Deed, Kind, asked, done, offered, paged
from baton.console.shell import commands
from baton.console.visits import Html, Visit, tag_of
from baton.errors import UserError


async def breakers(visit: Visit) -> Html:
    """Those of which something is known."""
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
    """One breaker: its state, its last failures and transitions."""
    name = visit.path["breaker"]
    found = await visit.call("showBreaker", {"breaker": name})
    data = {
        "breaker": found,
        "error": error,
        "done": done(BREAKER_DEEDS, visit),
        "offered": offered(BREAKER_DEEDS, "breakers", name, found, visit),
        "commands": commands(visit.api, f"/breakers/{name}", ["breakers", "show", name]),
        "key": "",
    }
    status = 200 if error is None else error.status
    tag = "" if error else tag_of(found)
    return Html(template="breaker.html", title=f"Breaker {name}", data=data, status=status, tag=tag)


BREAKER: Final = Kind(at="breakers", parameter="breaker", deeds=BREAKER_DEEDS, page=breaker)
