"""Limits and money: what may be spent today, and what models and AWS have cost on a day by workflow, model or user."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from baton.console.shell import commands
from baton.console.visits import Html, Visit
from baton.core.read.day_costs import AWS, BY, MODELS
from baton.errors import Forbidden, UserError

MOST_PAGES: Final = 5
"""Pages of sums that are added up for one page of the console, 2,000 sagas each."""


async def money(visit: Visit) -> Html:
    """The visitor's day and the tenant's, and what models have cost."""
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
    """The sums of a few pages, the most expensive in front; where they go on, of which day they are, and who is missing.

    One page where the logs of its sagas are read: a request has no time for more.
    """
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
