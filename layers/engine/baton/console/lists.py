"""The list of sagas: filters, pages, and what can be done about many of them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from baton.console.bulk import FILTERS, MANY
from baton.console.shell import commands
from baton.console.visits import Html, Visit, tag_of
from baton.core.log.status import LISTS

_PAGE: Final = "50"
STATUSES: Final = tuple(LISTS)
AGES: Final = (
    ("", "any time"),
    ("3600", "the last hour"),
    ("86400", "the last day"),
    ("604800", "the last week"),
)
_FILTERS: Final = ("status", "workflow", "label", "age")


async def sagas(visit: Visit) -> Html:
    """Sagas, the latest change first."""
    kept = {name: visit.query[name] for name in _FILTERS if visit.query.get(name)}
    asked = {name: kept[name] for name in ("status", "workflow", "label") if name in kept} | {"limit": _PAGE}
    since = {"since": visit.query["since"]} if visit.query.get("since") else {}
    if (age := kept.get("age")) and not since:
        seconds = int(age) if age.isascii() and age.isdigit() and len(age) < 10 else 0
        at = datetime.fromtimestamp(max(visit.now / 1_000 - seconds, 0), UTC)
        since["since"] = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    cursor = visit.query.get("cursor", "")
    page = await visit.call("listSagas", query=asked | since | ({"cursor": cursor} if cursor else {}))
    data = {
        "sagas": page["sagas"],
        "statuses": STATUSES,
        "ages": AGES,
        "kept": {name: kept.get(name, "") for name in _FILTERS},
        "is_filtered": bool(kept),
        # A cursor is good for one filter: later pages go back to the same moment.
        "more": _address(kept | since | {"cursor": page["next"]}) if page["next"] else "",
        "first": _address(kept) if cursor else "",
        "same": _address(kept),
        "bulk": _bulk(visit, {name: kept[name] for name in FILTERS if name in kept} | since),
        "commands": commands(visit.api, _of_list("/sagas", asked | since), _words(asked | since)),
    }
    return Html(template="sagas.html", title="Sagas", data=data, tag=tag_of(page["sagas"]))


def _bulk(visit: Visit, kept: Mapping[str, str]) -> list[dict[str, str]]:
    """What this person can do about those that are chosen, or about all that the filter finds."""
    found = []
    for many in MANY:
        status = kept.get("status", many.status)
        fits = status == "open" or (status != "done" and many.fits({"status": status}))
        if many.action.role in visit.call.roles and fits:
            wanted = {**kept, "status": many.status if status == "open" else status}
            found.append(
                {
                    "name": many.action.name,
                    "title": many.action.title,
                    "all": f"/console/bulk/{many.action.name}?{urlencode(wanted)}",
                }
            )
    return found


def _words(asked: Mapping[str, str]) -> list[str]:
    return ["list", *(word for name, value in asked.items() for word in (f"--{name}", value))]


def _of_list(path: str, query: Mapping[str, str]) -> str:
    return f"{path}?{urlencode(query)}"


def _address(query: Mapping[str, str]) -> str:
    return f"/console/sagas?{urlencode(query)}" if query else "/console/sagas"
