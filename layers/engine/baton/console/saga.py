"""Pages of one saga: its status, failures, cost, log and graph."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType
from typing import Any, Final
from urllib.parse import urlencode

from markupsafe import escape

from baton.console.acting import action_done, pace, possible
from baton.console.drawing import Became, became, draw_rows, draw_svg, drawings
from baton.console.rendering import (
    commands,
    fitting_length,
    milliseconds,
    part,
    pretty,
    printing,
    short_text,
    span,
)
from baton.console.timeline import time_data
from baton.console.visits import (
    ENDED,
    SLOWEST_POLL_MS,
    Answer,
    Download,
    Html,
    Unchanged,
    Visit,
    tag_of,
)
from baton.core.graph.graph import graph_name, starter_of
from baton.errors import NotFound, UserError
from baton.words.event_words import EventWords

_STEPS: Final = "1000"
_CHARTED: Final = "1000"  # entries of which the chart of time is made
_NEWEST, _OF_NODE = 30, 15  # events on the page of a saga, and of its chosen node
BESIDE: Final = 100
"""Maximum number of nodes drawn on the page of a saga. A larger graph has a page of its own."""


FIT: Final = "fit"
ZOOMS: Final = {FIT: "As wide as the page", "50": "50 %", "100": "100 %", "150": "150 %", "200": "200 %"}


async def graph(visit: Visit) -> Answer:
    """Return the page of the graph, with the state of each node."""
    saga, at = visit.path["saga"], visit.query.get("at", "")
    past = {"at": at} if at else {}
    view = await visit.call("showSaga", {"saga": saga}, past)
    tag = "" if past else tag_of(view["version"])
    if tag and tag == visit.seen:
        return Unchanged()
    workflow, way = await _graph_and_way(visit, view, past)
    chosen = visit.query.get("zoom", "")
    zoom, known, there = chosen if chosen in ZOOMS else "", became(view, way), _address(view, past)
    drawn = list[tuple[str, Any]]()
    if workflow and zoom:
        drawn = [("any", draw_svg(workflow, known, there, None if zoom == FIT else int(zoom)))]
    elif workflow:
        drawn = drawings(workflow, known, there)
    data = {
        "saga": view,
        "drawings": drawn,
        "zoom": zoom,
        "zooms": ZOOMS,
        "at": view["version"] if past else 0,
        "is_whole": way is not None and way["next"] is None,
        "commands": "\n".join(_printing(visit, view, workflow)),
    }
    return Html(template="graph.html", title=f"Graph of {saga}", data=data, tag=tag, every=pace(view))


async def _graph_and_way(
    visit: Visit, view: Mapping[str, Any], past: Mapping[str, str]
) -> tuple[dict[str, Any] | None, Any]:
    """Return the graph that a saga runs, and the steps that it took; None for what is not known."""
    way = _maybe(visit, "showWay", {"saga": view["id"]}, {"limit": _STEPS, **past})
    graph = _maybe(visit, "showSagaWorkflow", {"saga": view["id"]}, past)
    workflow, steps = await asyncio.gather(graph, way)
    return workflow, steps


def _address(view: Mapping[str, Any], past: Mapping[str, str]) -> str:
    """Return the address of the page of a saga, as it is or as it was."""
    return f"/console/sagas/{part(view['id'])}" + (f"?at={view['version']}" if past else "")


def _printing(visit: Visit, view: Mapping[str, Any], workflow: Mapping[str, Any] | None) -> list[str]:
    """Return the commands that print the path and the workflow."""
    found = [commands(visit.api, f"/sagas/{part(view['id'])}/explain", ["explain", view["id"]])]
    if workflow is not None and workflow["version"] is not None:
        name, version = workflow["name"], workflow["version"]
        words = ["workflows", f"{name}@{version}"]
        found.append(commands(visit.api, f"/workflows/{part(name)}/{version}", words))
    return found


_NO_QUERY: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class EventRow:
    """An event of the log with its sentence. version, at: those of its entry."""

    version: int
    at: Any
    event: Mapping[str, Any]
    said: str


def event_rows(entries: Iterable[Mapping[str, Any]]) -> Iterator[EventRow]:
    """Yield the events of entries, in the order of the log."""
    said = EventWords()  # what an event says may depend on those before it
    for one in entries:
        for event in one["events"]:
            yield EventRow(one["version"], one["at"], event, sentence(said, event)[:_MOST_SAID])


FAILURES: Final = "failures"
"""The filter for events of any kind that name a failure."""


def _wanted(visit: Visit) -> dict[str, str]:
    """Return the filters of events: `kind` and `of`, a node; empty for all."""
    return {name: visit.query.get(name, "") for name in ("kind", "of")}


def _is_wanted(event: Mapping[str, Any], wanted: Mapping[str, str]) -> bool:
    kind = event["kind"] if wanted["kind"] != FAILURES else FAILURES if event.get("failure") else ""
    return wanted["kind"] in ("", kind) and wanted["of"] in ("", event.get("node") or "")


def _kinds(events: Iterable[Mapping[str, Any]], wanted: Mapping[str, str]) -> list[str]:
    """Return the choices of the filter by kind."""
    return sorted(({str(one["kind"]) for one in events} | {wanted["kind"]}) - {"", FAILURES})


dumps = partial(json.dumps, ensure_ascii=False)
_ENTRIES: Final = "50"
_PAGES, _FILTERED = 5, "200"  # pages of the API that are looked at for a page of those that a filter leaves
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
    """Return the page of a saga: its state, graph, one of its nodes, its time and its newest events; with
    `at`, as it was at that version, without the actions of today.
    """
    path, at = {"saga": visit.path["saga"]}, visit.query.get("at", "")
    newest = view = await visit.call("showSaga", path)
    past = {"at": at} if at not in ("", "0", str(newest["version"])) else {}
    if past:
        view = await visit.call("showSaga", path, past)
    # The chart of a saga that goes on grows.
    grown = 0 if view["status"] in ENDED else visit.now // SLOWEST_POLL_MS
    tag = "" if past else tag_of(view["version"], view["updated_at"], visit.query, grown)
    if tag and tag == visit.seen:
        return Unchanged()
    is_costed = view["version"] <= _SHORT and not past  # it is added up from the whole log
    (workflow, way), costs, page = await asyncio.gather(
        _graph_and_way(visit, view, past),
        _maybe(visit, "showCost", path) if is_costed else _nothing(),
        visit.call("listEvents", path, {"limit": _CHARTED}),
    )
    chosen = visit.query.get("node", "") or _first_node(view, way)
    panel = None
    if chosen:
        # An address with a node that is none is wrong, unless the graph was another one then; the log of a
        # saga may be too long for any.
        asked = visit.call("explainNode", path | {"node": chosen}, past)
        is_sure = visit.query.get("node") and not past
        panel = await asked if is_sure else await _otherwise_none(asked)
    drawn, known = list[tuple[str, Any]](), became(view, way)
    if workflow and len(workflow["nodes"]) <= BESIDE:
        node = panel["node"] if panel else ""
        drawn = drawings(workflow, known, _address(view, past), chosen=node, is_beside=True)
    last = page if page["next"] is None else await _newest(visit, view)
    rows = list(event_rows(one for one in last["entries"] if one["version"] <= view["version"]))
    wanted = _wanted(visit)
    data = {
        "saga": view,
        "acting": [one for one in view["active"] if one["state"] != "joining"],
        "joining": [one for one in view["active"] if one["state"] == "joining"],
        "cost": costs,
        "way": way,
        "drawings": drawn,
        "panel": _panel(visit, panel, known, rows) if panel else None,
        "is_chosen": bool(visit.query.get("node")),
        "time": time_data(visit, newest, page, (milliseconds(view["updated_at"]) or 0) if past else 0),
        "newest": newest["version"],
        "at": view["version"] if past else 0,
        "kinds": _kinds((one.event for one in rows), wanted),
        "wanted": wanted,
        "events": [one for one in rows if _is_wanted(one.event, wanted)][-_NEWEST:],
        "is_over": view["status"] in ENDED,
        "named": str(view["workflow"]).partition("@")[0],
        "graph_of": starter_of(view["workflow"]) if graph_name(view["workflow"]) else "",
        "actions": () if past else possible(view, visit.call.roles),
        "done": action_done(visit),
        "commands": _commands(visit, view, panel, past),
    }
    return Html(template="saga.html", title=f"Saga {view['id']}", data=data, tag=tag, every=pace(view))


def _first_node(view: Mapping[str, Any], way: Mapping[str, Any] | None) -> str:
    """Return the node that a person looks for first: it failed, it is at work, or it was the last one."""
    if view["error"] and view["error"]["node"]:
        return str(view["error"]["node"])
    for one in view["active"]:
        if one["state"] != "joining":
            return str(one["node"])
    return str(way["steps"][-1]["node"]) if way and way["steps"] else ""


def _panel(
    visit: Visit, found: Mapping[str, Any], known: Mapping[str, Became], rows: Sequence[EventRow]
) -> dict[str, Any]:
    """Return the data of a node: one of its rounds, the last by default, and its events."""
    rounds = found["iterations"]
    names = [".".join(map(str, one["iteration"])) for one in rounds]
    wanted = visit.query.get("round", "")
    at = names.index(wanted) if wanted in names else len(names) - 1
    shown = rounds[at]
    values = [one for run in shown["runs"] for one in (run["input"], run["output"]) if one is not None]
    its = [
        one
        for one in rows
        if one.event.get("node") == found["node"]
        and list(one.event.get("iteration") or ()) == shown["iteration"]
    ]
    return {
        "node": found["node"],
        "kind": found["kind"],
        "left_out": found["left_out"],
        "rounds": names if len(names) > 1 else (),
        "name": names[at],
        # What undoing has made of it is said of the node as a whole.
        "word": known[found["node"]].word
        if found["node"] in known and at == len(names) - 1
        else shown["state"],
        "round": shown,
        "most": fitting_length([pretty(one) for one in values], 40_000),
        "labels": {
            one["item"]: one["label"]
            for row in its
            for one in row.event.get("operations") or ()
            if one.get("label")
        },
        "events": its[-_OF_NODE:],
        "before": max(len(its) - _OF_NODE, 0),
    }


async def _newest(visit: Visit, view: Mapping[str, Any]) -> dict[str, Any]:
    """Return the newest entries of a log that is longer than its chart."""
    after, entries = str(max(view["version"] - _SHORT, 0)), list[Mapping[str, Any]]()
    while True:
        page = await visit.call("listEvents", {"saga": view["id"]}, {"after": after, "limit": str(_SHORT)})
        entries = [*entries, *page["entries"]][-_SHORT:]
        if page["next"] is None or page["next"] >= view["version"]:
            return {"entries": entries, "next": None}
        after = str(page["next"])


def _commands(
    visit: Visit, view: Mapping[str, Any], panel: Mapping[str, Any] | None, past: Mapping[str, str]
) -> str:
    saga, at = view["id"], f"/sagas/{part(view['id'])}"
    if past:
        version = str(view["version"])
        return commands(visit.api, f"{at}/state?at={version}", ["state", saga, "--at", version])
    found = [commands(visit.api, at, ["show", saga])]
    if panel is not None:
        found.append(
            commands(visit.api, f"{at}/explain/{part(panel['node'])}", ["explain", saga, panel["node"]])
        )
    return "\n".join([*found, printing(visit.api, saga), f"baton logs {shlex.quote(saga)}"])


async def comparison(visit: Visit) -> Html:
    """Return the page of two sagas side by side, or of two versions of one: `at` of the first, `to` of the
    second. Without anything to compare it has only the form that asks for it.
    """
    saga, second = visit.path["saga"], visit.query.get("with", "").strip() or visit.path["saga"]
    versions = {name: said for name in ("at", "to") if (said := visit.query.get(name, "").strip())}
    data: dict[str, Any] = {"saga": saga, "second": second, "versions": versions, "found": None}
    at = f"/sagas/{part(saga)}"
    if second == saga and not versions:
        await visit.call("showSaga", {"saga": saga})
        data |= {"newest": 0, "commands": commands(visit.api, at, ["show", saga])}
        return Html(template="comparison.html", title=f"Compare {saga}", data=data)
    found = await visit.call("compareSagas", {"saga": saga, "second": second}, versions)
    differing = {one["node"] for one in found["differences"] if one["node"]}
    sides = [await _side(visit, found[name], name, differing) for name in ("first", "second")]
    texts = [[_lines(one[side]) for side in ("first", "second")] for one in found["differences"]]
    most = fitting_length(["\n".join(side) for texts_ in texts for side in texts_ if side], _ROOM_OF_VALUES)
    data |= {
        "found": found,
        "sides": sides,
        "rows": [
            (one, _marked(first, second, most), _marked(second, first, most))
            for one, (first, second) in zip(found["differences"], texts, strict=True)
        ],
        "commands": _comparing(visit, saga, second, versions),
    }
    return Html(template="comparison.html", title=f"{saga} and {second}", data=data)


_ROOM_OF_VALUES: Final = 80_000  # bytes of all values of a comparison


async def _side(visit: Visit, found: Mapping[str, Any], name: str, differing: set[str]) -> dict[str, Any]:
    """Return a side of a comparison: the saga at its version, and its graph with the nodes that differ."""
    past = {"at": str(found["version"])}
    view = await visit.call("showSaga", {"saga": found["saga"]}, past)
    workflow, way = await _graph_and_way(visit, view, past)
    known, drawn = became(view, way), None
    if workflow and len(workflow["nodes"]) <= BESIDE:
        other = {one: replace(known.get(one, Became("unreached")), differs=True) for one in differing}
        drawn = draw_rows(workflow, known | other, _address(view, past), page=name)
    return {"saga": view, "there": _address(view, past), "drawn": drawn}


def _lines(value: Any) -> list[str] | None:
    """Return the lines of a value of a comparison; of a node, its output or its failure."""
    if value is None:
        return None
    if isinstance(value, dict) and value.keys() == _OF_AN_END:
        value = value["error"] or value["large_output"] or value["output"]
    return pretty(value).split("\n")


_OF_AN_END: Final = {"version", "output", "large_output", "error"}


def _marked(
    lines: Sequence[str] | None, other: Sequence[str] | None, most: int
) -> list[tuple[str, bool]] | None:
    """Return the lines, each with true if the other side has no such line."""
    if lines is None:
        return None
    there = {one.rstrip(",") for one in other or ()}
    shown = short_text("\n".join(lines), most).split("\n")
    return [(one, other is not None and one.rstrip(",") not in there) for one in shown]


def _comparing(visit: Visit, saga: str, second: str, versions: Mapping[str, str]) -> str:
    path = f"/sagas/{part(saga)}/diff/{part(second)}" + (f"?{urlencode(versions)}" if versions else "")
    words = [word for name, value in versions.items() for word in (f"--{name}", value)]
    return commands(visit.api, path, ["diff", saga, *([second] if second != saga else []), *words])


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
    wanted = _wanted(visit)
    page = await _page_of_log(visit, after, wanted)
    entries = _fitting(page["entries"])
    if len(entries) < len(page["entries"]):
        kept = page["entries"][: len(entries)]
        page = {"entries": kept, "next": kept[-1]["version"]}
    # The last entry of a page brings the link to the next one: that page is made anew, once.
    is_more = bool(last) and page["next"] is None and int(last) > int(after)
    newest = page["entries"][-1]["version"] if page["entries"] else after
    data = {
        "saga": saga,
        "unreadable": page.get("unreadable", ()),
        "entries": [one for one in entries if one[0]["version"] > int(last)] if is_more else entries,
        "most": _MOST_SAID,
        "is_more": is_more,
        "next": page["next"],
        "after": after,
        "kinds": _kinds((event for one in page["entries"] for event in one["events"]), wanted),
        "wanted": wanted,
        "kept": {name: value for name, value in wanted.items() if value},
        "commands": printing(visit.api, saga, after, _ENTRIES),
    }
    # What a filter leaves is not added to.
    tag = "" if data["kept"] else f'"log-{after}-{newest if page["next"] is None else _FULL}"'
    adds = "entries" if is_more else ""
    return Html(template="log.html", title=f"Log of {saga}", data=data, tag=tag, adds=adds)


async def _page_of_log(visit: Visit, after: str, wanted: Mapping[str, str]) -> dict[str, Any]:
    """Return the next entries, those with an event that is wanted, and the version that others are behind."""
    path, next_after, entries = {"saga": visit.path["saga"]}, after, list[dict[str, Any]]()
    is_filtered = any(wanted.values())
    for _ in range(_PAGES if is_filtered else 1):
        limit = _FILTERED if is_filtered else _ENTRIES
        page: dict[str, Any] = await visit.call("listEvents", path, {"after": next_after, "limit": limit})
        if not is_filtered:
            return page
        for one in page["entries"]:
            if events := [event for event in one["events"] if _is_wanted(event, wanted)]:
                entries.append({**one, "events": events})
                if len(entries) == int(_ENTRIES):
                    return {"entries": entries, "next": one["version"]}
        if page["next"] is None:
            return {"entries": entries, "next": None}
        next_after = str(page["next"])
    return {"entries": entries, "next": int(next_after)}


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


async def _maybe(
    visit: Visit, route: str, path: Mapping[str, str], query: Mapping[str, str] = _NO_QUERY
) -> Any:
    """Return the data of a part of the page, or None if the log is too long for it."""
    return await _otherwise_none(visit.call(route, path, query))


async def _otherwise_none(asked: Awaitable[Any]) -> Any:
    try:
        return await asked
    except UserError:
        return None


async def _nothing() -> None:
    """Return at once: for a part of the page that is left out."""
