"""Pages of one saga: its status, failures, cost, log and graph."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from markupsafe import escape

from baton.console.acting import ENDED, action_done, pace, possible
from baton.console.drawing import became, draw_svg
from baton.console.rendering import commands, milliseconds, part, pretty, printing, short_text, span
from baton.console.visits import Answer, Download, Html, Unchanged, Visit, tag_of
from baton.core.graph.graph import graph_name, starter_of
from baton.errors import NotFound, UserError
from baton.words.event_words import EventWords

_STEPS: Final = "1000"
BESIDE: Final = 40
"""Maximum number of nodes drawn on the page of a saga. A larger graph has a page of its own."""


FIT: Final = "fit"
ZOOMS: Final = {FIT: "As wide as the page", "50": "50 %", "100": "100 %", "150": "150 %", "200": "200 %"}


async def workflow_of(visit: Visit, view: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the version whose graph the saga runs, None if it is not among the newest hundred."""
    name = str(view["workflow"]).partition("@")[0]
    try:
        newest: dict[str, Any] = await visit.call("showWorkflow", {"name": name})
        if newest["graph"] == view["graph"]:
            return newest
        for one in newest["versions"]:
            if one["graph"] == view["graph"]:
                path = {"name": name, "version": str(one["version"])}
                found: dict[str, Any] = await visit.call("showWorkflowVersion", path)
                return found
    except UserError:
        pass
    return None


async def graph(visit: Visit) -> Answer:
    """Return the page of the graph, with the state of each node."""
    saga = visit.path["saga"]
    view = await visit.call("showSaga", {"saga": saga})
    if (tag := tag_of(view["version"])) == visit.seen:
        return Unchanged()
    workflow = await workflow_of(visit, view)
    try:
        way = await visit.call("showWay", {"saga": saga}, {"limit": _STEPS})
    except UserError:
        way = None
    chosen = visit.query.get("zoom", "100")
    zoom = chosen if chosen in ZOOMS else "100"
    percent = None if zoom == FIT else int(zoom)
    drawn = draw_svg(workflow, became(view, way), f"/console/sagas/{saga}", percent) if workflow else None
    data = {
        "saga": view,
        "drawn": drawn,
        "zoom": zoom,
        "zooms": ZOOMS,
        "is_whole": way is not None and way["next"] is None,
        "commands": "\n".join(_printing(visit, view, workflow)),
    }
    return Html(template="graph.html", title=f"Graph of {saga}", data=data, tag=tag, every=pace(view))


def _printing(visit: Visit, view: Mapping[str, Any], workflow: Mapping[str, Any] | None) -> list[str]:
    """Return the commands that print the path and the workflow."""
    found = [commands(visit.api, f"/sagas/{part(view['id'])}/explain", ["explain", view["id"]])]
    if workflow is not None:
        name, version = workflow["name"], workflow["version"]
        words = ["workflows", f"{name}@{version}"]
        found.append(commands(visit.api, f"/workflows/{part(name)}/{version}", words))
    return found


async def node(visit: Visit) -> Html:
    """Return the page that explains why a node ran or did not run, in each of its rounds."""
    saga = visit.path["saga"]
    found = await visit.call("explainNode", {"saga": saga, "node": visit.path["node"]})
    path = f"/sagas/{part(saga)}/explain/{part(found['node'])}"
    data = {
        "saga": saga,
        "found": found,
        "commands": commands(visit.api, path, ["explain", saga, found["node"]]),
    }
    return Html(template="node.html", title=f"Node {found['node']}", data=data)


dumps = partial(json.dumps, ensure_ascii=False)
_ENTRIES: Final = "50"
_FULL: Final = "full"
_TAG: Final = re.compile(rf'"log-(?P<after>[0-9]{{1,9}})-(?P<last>[0-9]{{1,9}}|{_FULL})"')
"""Tag of a page of the log: its beginning, and its newest entry. A full page never changes."""
_SHORT: Final = 100  # entries that a page reads besides what it must
MOST_DOWNLOADED: Final = (
    5_000_000  # bytes, as they are quoted in the answer of Lambda, which has at most 6 MB
)
_ROOM: Final = 2_000_000  # the same of the events on a page of the log
_MOST_SAID, _MOST_DATA, _AROUND = (
    400,
    2_000,
    400,
)  # characters of an event's sentence, of its data, and of the HTML around them


async def saga_page(visit: Visit) -> Answer:
    """Return the page of the saga's present state."""
    path = {"saga": visit.path["saga"]}
    view = await visit.call("showSaga", path)
    if (tag := tag_of(view["version"], view["updated_at"])) == visit.seen:
        return Unchanged()
    way = await _maybe(visit, "showWay", path)
    # It is added up from the whole log.
    costs = await visit.call("showCost", path) if view["version"] <= _SHORT else None
    workflow = await workflow_of(visit, view)
    drawn = None
    if workflow and len(workflow["nodes"]) <= BESIDE:
        drawn = draw_svg(workflow, became(view, way), f"/console/sagas/{view['id']}")
    data = {
        "saga": view,
        "acting": [one for one in view["active"] if one["state"] != "joining"],
        "joining": [one for one in view["active"] if one["state"] == "joining"],
        "cost": costs,
        "way": way,
        "drawn": drawn,
        "is_over": view["status"] in ENDED,
        "named": str(view["workflow"]).partition("@")[0],
        "graph_of": starter_of(view["workflow"]) if graph_name(view["workflow"]) else "",
        "actions": possible(view, visit.call.roles),
        "done": action_done(visit),
        "commands": commands(visit.api, f"/sagas/{part(view['id'])}", ["show", view["id"]]),
    }
    return Html(template="saga.html", title=f"Saga {view['id']}", data=data, tag=tag, every=pace(view))


async def cost(visit: Visit) -> Html:
    """Return the page of the saga's cost, line by line."""
    found = await visit.call("showCost", {"saga": visit.path["saga"]})
    saga = found["saga"]
    data = {"cost": found, "commands": commands(visit.api, f"/sagas/{part(saga)}/cost", ["cost", saga])}
    return Html(template="cost.html", title=f"Cost of {found['saga']}", data=data)


async def log(visit: Visit) -> Answer:
    """Return a page of the log, a line for each event. An open page receives what it lacks."""
    saga, after = visit.path["saga"], visit.query.get("after", "0")
    has = _TAG.fullmatch(visit.seen)
    last = has["last"] if has and has["after"] == after else ""
    if last == _FULL:
        return Unchanged()
    if (
        last
        and not (await visit.call("listEvents", {"saga": saga}, {"after": last, "limit": "1"}))["entries"]
    ):
        return Unchanged()
    page = await visit.call("listEvents", {"saga": saga}, {"after": after, "limit": _ENTRIES})
    entries = _fitting(page["entries"])
    if len(entries) < len(page["entries"]):
        kept = page["entries"][: len(entries)]
        page = {"entries": kept, "next": kept[-1]["version"]}
    # The last entry of a page brings the link to the next one: that page is made anew, once.
    is_more = bool(last) and page["next"] is None and int(last) > int(after)
    newest = page["entries"][-1]["version"] if page["entries"] else after
    data = {
        "saga": saga,
        "entries": [one for one in entries if one[0]["version"] > int(last)] if is_more else entries,
        "most": _MOST_SAID,
        "is_more": is_more,
        "next": page["next"],
        "after": after,
        "commands": printing(visit.api, saga, after, _ENTRIES),
    }
    tag = f'"log-{after}-{newest if page["next"] is None else _FULL}"'
    adds = "entries" if is_more else ""
    return Html(template="log.html", title=f"Log of {saga}", data=data, tag=tag, adds=adds)


def _fitting(
    entries: Sequence[Mapping[str, Any]],
) -> list[tuple[Mapping[str, Any], list[tuple[Any, str, str]], int]]:
    """Return the entries that fit a page, at least one, and the number of omitted ones."""
    said, room, found = EventWords(), _ROOM, list[tuple[Mapping[str, Any], list[tuple[Any, str, str]], int]]()
    for one in entries:
        events = list[tuple[Any, str, str]]()
        for event in one["events"]:
            # What an event says may depend on those before it.
            shown = sentence(said, event), short_text(pretty(event), _MOST_DATA)
            room -= _AROUND + sum(len(dumps(str(escape(text)))) for text in (shown[0][:_MOST_SAID], shown[1]))
            if room < 0:
                break
            events.append((event, *shown))
        if room < 0 and found:
            break
        found.append((one, events, len(one["events"]) - len(events)))
    return found


def sentence(said: EventWords, event: Mapping[str, Any]) -> str:
    """Return the sentence and duration of an event, empty if its kind says all."""
    told = said.of(event)
    if told is None and (failure := event.get("failure")):
        told = f"{failure.get('code')}: {failure.get('message')}", frozenset()
    begin, end = milliseconds(event.get("started_at")), milliseconds(event.get("ended_at"))
    took = [span(end - begin)] if begin and end and end >= begin else []
    return ", ".join([*([told[0]] if told else []), *took])


async def entry(visit: Visit) -> Html:
    """Return the page of one complete entry."""
    version = visit.path["version"]
    if not (version.isascii() and version.isdigit() and 0 < len(version) < 10):
        raise NotFound("a version of a log is a number from 1")
    saga = visit.path["saga"]
    asked = {"after": str(max(int(version) - 1, 0)), "limit": "1"}
    page = await visit.call("listEvents", {"saga": saga}, asked)
    if not page["entries"] or page["entries"][0]["version"] != int(version):
        raise NotFound(f"the log has no version {version}")
    data = {
        "saga": saga,
        "entry": page["entries"][0],
        "has_next": page["next"] is not None,
        "commands": printing(visit.api, saga, asked["after"], asked["limit"]),
    }
    return Html(template="entry.html", title=f"Version {version} of {saga}", data=data)


async def download(visit: Visit) -> Download:
    """Return the log as JSON, up to the size of an answer. `next` names the last of further entries."""
    saga, after, entries = visit.path["saga"], visit.query.get("after", "0"), list[Mapping[str, Any]]()
    room, more = MOST_DOWNLOADED, None
    while True:
        page = await visit.call("listEvents", {"saga": saga}, {"after": after, "limit": "200"})
        for one in page["entries"]:
            text = json.dumps(one, ensure_ascii=False, indent=1)
            room -= len(dumps(text).encode()) + 2 * text.count("\n")  # it stands two levels deeper
            if entries and room < 0:
                more = entries[-1]["version"]
                break
            entries.append(one)
        if more is not None or page["next"] is None:
            break
        after = str(page["next"])
    body = json.dumps({"saga": saga, "entries": entries, "next": more}, ensure_ascii=False, indent=1)
    return Download(name=f"{saga}-log.json", kind="application/json", body=body)


async def _maybe(visit: Visit, route: str, path: Mapping[str, str]) -> Any:
    """Return the data of a part of the page, or None if the log is too long for it."""
    try:
        return await visit.call(route, path)
    except UserError:
        return None
