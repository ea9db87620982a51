"""The list of sagas, and actions on many of them."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import urlencode

from baton.console.acting import ACTIONS, Action
from baton.console.rendering import commands, part
from baton.console.visits import ENDED, Answer, Html, Redirect, Visit, tag_of
from baton.core.log.state import LISTS
from baton.errors import EngineFault, Forbidden, UserError

MOST: Final = 50
FILTERS: Final = ("status", "workflow", "label", "since")
_COUNT_PAGES, _COUNT_PAGE = 5, "100"
_SIDE_BY_SIDE: Final = 8


@dataclass(frozen=True, slots=True)
class Many:
    """An action on many sagas. fits: true for a row that accepts it. unfit: why another does not."""

    action: Action
    status: str
    fits: Callable[[Mapping[str, Any]], bool]
    unfit: str


@dataclass(frozen=True, slots=True)
class BulkOutcome:
    """Result for one saga. is_done: the API has executed it, now or before."""

    saga: str
    said: str
    is_done: bool


def _may_resume(row: Mapping[str, Any]) -> bool:
    return row["status"] in ("parked", "paused", "reflecting")


def _may_pause(row: Mapping[str, Any]) -> bool:
    return row["status"] not in (*ENDED, "paused")


_BY_NAME: Final = {one.name: one for one in ACTIONS}
MANY: Final = (
    Many(_BY_NAME["cancel"], "open", lambda row: row["status"] not in ENDED, "it has ended"),
    Many(_BY_NAME["resume"], "parked", _may_resume, "it is neither parked nor paused"),
    Many(_BY_NAME["pause"], "open", _may_pause, "it has ended, or is paused"),
)


def bulk_confirmation_page(many: Many) -> Callable[[Visit], Awaitable[Answer]]:
    """Return the page that counts the sagas and explains the action."""

    async def page(visit: Visit) -> Answer:
        return await _page(many, visit)

    return page


def does(many: Many) -> Callable[[Visit], Awaitable[Answer]]:
    """Return the page that executes the action and shows the result of each."""

    async def page(visit: Visit) -> Answer:
        _need(many, visit)
        sagas = list(dict.fromkeys(visit.form.get("saga", ())))
        if not 0 < len(sagas) <= MOST:
            raise UserError(
                f"1 to {MOST} sagas can be named in one request; {len(sagas)} are. Nothing was done."
            )
        body, slots = many.action.body(visit), asyncio.Semaphore(_SIDE_BY_SIDE)
        outcomes = await asyncio.gather(*(_one(many.action, visit, saga, body, slots) for saga in sagas))
        data = {
            "many": many,
            "outcomes": outcomes,
            "done": sum(one.is_done for one in outcomes),
            "next": visit.said("next") if visit.said("next").startswith("/console/bulk/") else "",
        }
        return Html(template="bulk-done.html", title=f"{many.action.title} many sagas", data=data)

    return page


async def _one(
    action: Action, visit: Visit, saga: str, body: Mapping[str, Any], slots: asyncio.Semaphore
) -> BulkOutcome:
    async with slots:
        try:
            found = await visit.call(action.route, {"saga": saga}, body=body)
        except UserError as error:
            return BulkOutcome(saga, f"Not done: {error.detail}", is_done=False)
        except EngineFault:
            return BulkOutcome(
                saga, "Not known: the store did not answer in time. Look at it.", is_done=False
            )
    said = action.done if found.get("changed", True) else "It was so before. Nothing was changed."
    return BulkOutcome(saga, said, is_done=True)


async def _page(many: Many, visit: Visit) -> Html:
    _need(many, visit)
    selected = [one for one in visit.query.get("saga", "").split(",") if one]
    if selected:
        rows, total, is_more, next_page = await _selected(visit, selected), len(selected), False, ""
    else:
        rows, total, is_more, next_page = await _matching(many, visit)
    fitting = [row for row in rows if many.fits(row)]
    data = {
        "many": many,
        "rows": rows,
        "fitting": {row["id"] for row in fitting},
        "total": f"{total:,}+" if is_more else f"{total:,}",
        "wanted": {} if selected else _wanted(many, visit),
        "next": next_page,
        "most": MOST,
        "is_first": not visit.query.get("cursor"),
        "said": {one.name: one.initial for one in many.action.inputs},
        "commands": _commands(many.action, visit.api, [str(row["id"]) for row in fitting]),
    }
    return Html(template="bulk.html", title=f"{many.action.title} many sagas", data=data)


def _need(many: Many, visit: Visit) -> None:
    if many.action.role not in visit.call.roles:
        raise Forbidden(f"this needs the role `{many.action.role}`")


def _wanted(many: Many, visit: Visit) -> dict[str, str]:
    kept = {name: visit.query[name] for name in FILTERS if visit.query.get(name)}
    return {"status": many.status} | kept


async def _selected(visit: Visit, sagas: Sequence[str]) -> list[Any]:
    """Return the sagas that a person has chosen, in their present state. Missing ones are omitted."""
    if len(sagas) > MOST:
        raise UserError(f"at most {MOST} sagas can be chosen at once; {len(sagas)} are")
    slots = asyncio.Semaphore(_SIDE_BY_SIDE)

    async def one(saga: str) -> Any:
        async with slots:
            view = await visit.call("showSaga", {"saga": saga})
        return {name: view[name] for name in ("id", "status", "workflow", "user")}

    return list(await asyncio.gather(*(one(saga) for saga in dict.fromkeys(sagas))))


async def _matching(many: Many, visit: Visit) -> tuple[list[Any], int, bool, str]:
    """Return the first matching sagas, their number if counted, true if there are more, the cursor."""
    wanted = _wanted(many, visit)
    cursor = {"cursor": visit.query["cursor"]} if visit.query.get("cursor") else {}
    rows, after = list[Any](), None
    for _ in range(_COUNT_PAGES):  # a page may be short, and not the last
        page = await visit.call("listSagas", query=wanted | cursor | {"limit": str(MOST - len(rows))})
        rows, after = rows + page["sagas"], page["next"]
        if after is None or len(rows) == MOST:
            break
        cursor = {"cursor": after}
    next_page = f"/console/bulk/{many.action.name}?{urlencode(wanted | {'cursor': after})}" if after else ""
    total = len(rows)
    for _ in range(_COUNT_PAGES):
        if after is None:
            break
        page = await visit.call("listSagas", query=wanted | {"cursor": after, "limit": _COUNT_PAGE})
        total, after = total + len(page["sagas"]), page["next"]
    return rows, total, after is not None, next_page


def _commands(action: Action, api: str, sagas: Sequence[str]) -> str:
    """Return an equivalent shell command for each saga."""
    named = " ".join(sagas) or "SAGA"
    words = ["baton", *action.baton("SAGA", {})]
    baton = " ".join('"$saga"' if word == "SAGA" else shlex.quote(word) for word in words)
    curl = (
        f'curl -X POST "{api}/sagas/$saga{action.path}" -H "Authorization: Bearer $BATON_TOKEN" -d \'{{}}\''
    )
    return f"for saga in {named}; do {baton}; done\nfor saga in {named}; do {curl}; done"


_PAGE: Final = "50"
STATUSES: Final = tuple(LISTS)
AGES: Final = (
    ("", "any time"),
    ("3600", "the last hour"),
    ("86400", "the last day"),
    ("604800", "the last week"),
)
_FILTERS: Final = ("status", "workflow", "label", "age")


async def sagas(visit: Visit) -> Answer:
    """Return the page of sagas, ordered by latest change first, or the target of a search."""
    if wanted := visit.query.get("find", "").strip():
        return Redirect(await _found(visit, wanted))
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
        "commands": commands(visit.api, f"/sagas?{urlencode(asked | since)}", _words(asked | since)),
    }
    return Html(template="sagas.html", title="Sagas", data=data, tag=tag_of(page["sagas"]))


async def _found(visit: Visit, wanted: str) -> str:
    """Return the address of the saga with this id, or of the list of those that the words describe."""
    if "=" in wanted:
        return _address({"label": wanted})
    try:
        found = await visit.call("showSaga", {"saga": wanted})
    except UserError:  # no id, or of none
        return _address({"workflow": wanted})
    return f"/console/sagas/{part(found['id'])}"


def _bulk(visit: Visit, kept: Mapping[str, str]) -> list[dict[str, str]]:
    """Return the actions that this person can take on the chosen sagas, or on all that the filter matches."""
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


def _address(query: Mapping[str, str]) -> str:
    return f"/console/sagas?{urlencode(query)}" if query else "/console/sagas"
