"""The list of sagas: filters and pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

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
_FILTERS: Final = ("status", "workflow", "age")


async def sagas(visit: Visit) -> Html:
    """Sagas, the latest change first."""
    kept = {name: visit.query[name] for name in _FILTERS if visit.query.get(name)}
    asked = {name: kept[name] for name in ("status", "workflow") if name in kept} | {"limit": _PAGE}
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
    }
    return Html(template="sagas.html", title="Sagas", data=data, tag=tag_of(page["sagas"]))


def _address(query: Mapping[str, str]) -> str:
    return f"/console/sagas?{urlencode(query)}" if query else "/console/sagas"
