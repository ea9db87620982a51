"""One saga: where it is, what went wrong, what it cost, and its log."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Final

from baton.console.visits import Download, Html, Visit
from baton.errors import NotFound, UserError

_ENTRIES: Final = "50"
MOST_DOWNLOADED: Final = 4_000_000  # characters; Lambda answers with 6 MB, and quotes the JSON


async def show(visit: Visit) -> Html:
    """The saga as it is now."""
    path = {"saga": visit.path["saga"]}
    view = await visit.call("showSaga", path)
    cost, way = await asyncio.gather(_maybe(visit, "showCost", path), _maybe(visit, "showWay", path))
    live = visit.query.get("live") != "off" and not is_over(view)
    data = {
        "saga": view,
        "cost": cost,
        "way": way,
        "is_over": is_over(view),
        "live": live,
    }
    return Html(template="saga.html", title=f"Saga {view['id']}", data=data)


async def log(visit: Visit) -> Html:
    """The log in pages: a line for each event, and behind it what the event holds."""
    saga, after = visit.path["saga"], visit.query.get("after", "0")
    page = await visit.call("listEvents", {"saga": saga}, {"after": after, "limit": _ENTRIES})
    data = {"saga": saga, "entries": page["entries"], "next": page["next"], "after": after}
    return Html(template="log.html", title=f"Log of {saga}", data=data)


async def entry(visit: Visit) -> Html:
    """One entry, whole."""
    version = visit.path["version"]
    if not (version.isascii() and version.isdigit() and 0 < len(version) < 10):
        raise NotFound("a version of a log is a number from 1")
    saga = visit.path["saga"]
    asked = {"after": str(max(int(version) - 1, 0)), "limit": "1"}
    page = await visit.call("listEvents", {"saga": saga}, asked)
    if not page["entries"] or page["entries"][0]["version"] != int(version):
        raise NotFound(f"the log has no version {version}")
    data = {"saga": saga, "entry": page["entries"][0], "has_next": page["next"] is not None}
    return Html(template="entry.html", title=f"Version {version} of {saga}", data=data)


async def download(visit: Visit) -> Download:
    """The log as JSON, with as many entries as an answer has room for; `next` names the last one of more."""
    saga, after, entries = visit.path["saga"], visit.query.get("after", "0"), list[Mapping[str, Any]]()
    room, more = MOST_DOWNLOADED, None
    while True:
        page = await visit.call("listEvents", {"saga": saga}, {"after": after, "limit": "200"})
        for one in page["entries"]:
            room -= len(json.dumps(one))
            if entries and room < 0:
                more = entries[-1]["version"]
                break
            entries.append(one)
        if more is not None or page["next"] is None:
            break
        after = str(page["next"])
    body = json.dumps({"saga": saga, "entries": entries, "next": more}, ensure_ascii=False, indent=1)
    return Download(name=f"{saga}-log.json", kind="application/json", body=body)


def is_over(view: Mapping[str, Any]) -> bool:
    return view["status"] in ("completed", "failed", "cancelled", "rolled_back", "rollback_failed")


async def _maybe(visit: Visit, route: str, path: Mapping[str, str]) -> Any:
    """What a part of the page shows; None where the log is too long for it."""
    try:
        return await visit.call(route, path)
    except UserError:
        return None
