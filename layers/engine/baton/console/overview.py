"""The first page, and the page of limits and money."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from baton.console.rendering import commands, usd
from baton.console.visits import Html, Visit, tag_of
from baton.core.read.day_costs import AWS, BY, MODELS
from baton.errors import Forbidden, UserError

MOST_COUNTED = "100"
_RECENT, _FAILED, _STARTED = "8", "5", "12"


_SHELL: Final = (
    ("/questions", "inbox"),
    ("/incidents?status=unacknowledged", "incidents --status unacknowledged"),
    ("/sagas?status=parked", "list --status parked"),
    ("/dead-letters", "dlq list"),
    ("/costs?by=workflow", "cost --by workflow"),
)


@dataclass(frozen=True)
class Figure:
    """One number. `needs`: it is about work for a person. `instead`: why it is missing."""

    name: str
    value: str
    about: str
    link: str = ""
    needs: bool = False
    instead: str = ""

    @property
    def words(self) -> str:
        """Return the meaning of the number in a sentence."""
        known = {"Waiting for you": "questions for you", "Parked": "parked sagas", "Paused": "paused sagas"}
        return known.get(self.name, self.name)


async def overview(visit: Visit) -> Html:
    """Return the page of questions, incidents, parked and paused sagas, dead letters, costs, and work."""
    figures = await asyncio.gather(
        _figure("Waiting for you", _questions(visit), "questions that you may answer", "/console/inbox"),
        _figure(
            "Incidents",
            _incidents(visit),
            "failures that no person has acknowledged",
            "/console/incidents?status=unacknowledged",
        ),
        _figure(
            "Parked",
            _sagas(visit, "parked"),
            "sagas that wait for an operator",
            "/console/sagas?status=parked",
        ),
        _figure(
            "Paused",
            _sagas(visit, "paused"),
            "sagas that an operator holds back",
            "/console/sagas?status=paused",
            needs=False,
        ),
        _figure(
            "Dead letters", _letters(visit), "messages that no worker could handle", "/console/dead-letters"
        ),
        _figure("Spent today", _money(visit), "by the sagas of today, UTC", "/console/money", needs=False),
    )
    shell = "\n".join(commands(visit.api, path, words.split()) for path, words in _SHELL)
    if "read" not in visit.call.roles:
        data = {"figures": figures, "needs": [one.words for one in figures if one.needs], "unknown": True}
        data |= {"work": "", "recent": None, "failed": (), "workflows": (), "commands": shell}
        return Html(template="overview.html", title="Overview", data=data, tag=tag_of(figures))
    work, recent, failed, workflows = await asyncio.gather(
        _sagas(visit, "open"),
        visit.call("listSagas", query={"limit": _RECENT}),
        visit.call("listSagas", query={"status": "failed", "limit": _FAILED}),
        visit.call("listWorkflows", query={"limit": _STARTED}),
    )
    data = {
        "figures": figures,
        "work": work,
        "needs": [one.words for one in figures if one.needs],
        "unknown": [one.name for one in figures if one.instead],
        "recent": recent["sagas"],
        "failed": failed["sagas"],
        "workflows": workflows["workflows"] if "run" in visit.call.roles else (),
        "commands": shell,
    }
    tag = tag_of(figures, work, recent["sagas"], failed["sagas"], workflows["workflows"])
    return Html(template="overview.html", title="Overview", data=data, tag=tag)


async def _figure(name: str, asking: Awaitable[str], about: str, link: str, *, needs: bool = True) -> Figure:
    try:
        value = await asking
    except Forbidden:
        return Figure(name, "–", about, instead="your roles do not show it")
    except UserError as error:
        return Figure(name, "–", about, instead=error.detail)
    return Figure(name, value, about, link, needs and value not in ("0", "–"))


def page_counts(page: dict[str, Any], rows: str) -> str:
    number = len(page[rows])
    return f"{number}+" if page["next"] else str(number)


async def _sagas(visit: Visit, status: str) -> str:
    return page_counts(
        await visit.call("listSagas", query={"status": status, "limit": MOST_COUNTED}), "sagas"
    )


async def _questions(visit: Visit) -> str:
    return page_counts(await visit.call("listQuestions", query={"limit": MOST_COUNTED}), "questions")


async def _incidents(visit: Visit) -> str:
    query = {"status": "unacknowledged", "limit": MOST_COUNTED}
    return page_counts(await visit.call("listIncidents", query=query), "incidents")


async def _letters(visit: Visit) -> str:
    return page_counts(await visit.call("listDeadLetters", query={"limit": MOST_COUNTED}), "dead_letters")


async def _money(visit: Visit) -> str:
    """Return the tenant's costs of models, or the visitor's own spending without permission."""
    try:
        page = await visit.call("listCosts")
    except Forbidden:
        budget = await visit.call("showBudget")
        return usd(budget["spent_usd"]) if budget["limit_usd"] is not None else "–"
    return usd(sum(row["usd"] for row in page["costs"])) + ("+" if page["next"] else "")


MOST_PAGES: Final = 5
"""Number of pages of sums that are added for one page of the console, 2,000 sagas each."""


async def money(visit: Visit) -> Html:
    """Return the page of the visitor's and the tenant's day, and the costs of models."""
    budget = await visit.call("showBudget")
    of = AWS if visit.query.get("of") == AWS else MODELS
    kinds = BY[:2] if of == AWS else BY  # AWS charges nothing by model
    by = visit.query.get("by", "") or kinds[0]
    day = visit.query.get("day", "")
    rows, next_page, left_out = list[dict[str, Any]](), None, list[str]()
    instead, shown = "", day or str(budget["day"])
    try:
        rows, next_page, shown, left_out = await _costs(visit, by, of, day)
    except Forbidden as error:
        instead = error.detail
    words = ["cost", "--by", by, "--day", shown, *(["--aws"] if of == AWS else [])]
    query = {"by": by, **({"of": of} if of == AWS else {}), "day": shown}
    data = {
        "budget": budget,
        "by": by,
        "kinds": kinds,
        "of": of,
        "left_out": left_out,
        "day": shown,
        "before": _moved(shown, -1),
        "after": _moved(shown, 1) if shown < str(budget["day"]) else "",
        "rows": rows,
        "sum": sum(row["usd"] for row in rows),
        "next": next_page or "",
        "instead": instead,
        "is_first": not visit.query.get("cursor"),
        "commands": commands(visit.api, "/budget", ["budget"])
        + "\n"
        + commands(visit.api, f"/costs?{urlencode(query)}", words),
    }
    return Html(template="money.html", title="Money", data=data)


async def _costs(
    visit: Visit, by: str, of: str, day: str
) -> tuple[list[dict[str, Any]], str | None, str, list[str]]:
    """Return sums by cost, next cursor, day, and omitted sagas: of one page only if it reads their logs."""
    sums: dict[str, dict[str, Any]] = {}
    query = {"by": by} | ({"day": day} if day else {}) | ({"of": of} if of == AWS else {})
    if visit.query.get("cursor"):
        query["cursor"] = visit.query["cursor"]
    pages, most = 0, 1 if of == AWS else MOST_PAGES
    while True:
        page = await visit.call("listCosts", query=query)
        for row in page["costs"]:
            before = sums.get(row["key"])
            sums[row["key"]] = (
                row
                if before is None
                else {name: value if name == "key" else before[name] + value for name, value in row.items()}
            )
        pages += 1
        if page["next"] is None or pages == most:
            rows = sorted(sums.values(), key=lambda row: (-row["usd"], row["key"]))
            return rows, page["next"], str(page["day"]), page.get("left_out") or []
        query |= {"day": str(page["day"]), "cursor": page["next"]}


def _moved(day: str, days: int) -> str:
    try:
        return (date.fromisoformat(day) + timedelta(days=days)).isoformat()
    except (ValueError, OverflowError) as error:
        raise UserError("a day is written as 2026-11-21") from error
