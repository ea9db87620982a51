"""Limits and money: what may be spent today, and what models have cost on a day by workflow, model or user."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, Final

from baton.console.shell import commands
from baton.console.visits import Html, Visit
from baton.core.read.day_costs import BY
from baton.errors import Forbidden, UserError

MOST_PAGES: Final = 5
"""Pages of sums that are added up for one page of the console, 2,000 sagas each."""


async def money(visit: Visit) -> Html:
    """The visitor's day and the tenant's, and what models have cost."""
    budget = await visit.call("showBudget")
    by = visit.query.get("by", "") or BY[0]
    day = visit.query.get("day", "")
    rows, next_page, instead, shown = list[dict[str, Any]](), None, "", day or str(budget["day"])
    try:
        rows, next_page, shown = await _costs(visit, by, day)
    except Forbidden as error:
        instead = error.detail
    words = ["cost", "--by", by, "--day", shown]
    data = {
        "budget": budget,
        "by": by,
        "kinds": BY,
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
        + commands(visit.api, f"/costs?by={by}&day={shown}", words),
    }
    return Html(template="money.html", title="Money", data=data)


async def _costs(visit: Visit, by: str, day: str) -> tuple[list[dict[str, Any]], str | None, str]:
    """The sums of a few pages, the most expensive in front, where they go on, and of which day they are."""
    sums: dict[str, dict[str, Any]] = {}
    query = {"by": by} | ({"day": day} if day else {})
    if visit.query.get("cursor"):
        query["cursor"] = visit.query["cursor"]
    pages = 0
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
        if page["next"] is None or pages == MOST_PAGES:
            rows = sorted(sums.values(), key=lambda row: (-row["usd"], row["key"]))
            return rows, page["next"], str(page["day"])
        query |= {"day": str(page["day"]), "cursor": page["next"]}


def _moved(day: str, days: int) -> str:
    try:
        return (date.fromisoformat(day) + timedelta(days=days)).isoformat()
    except (ValueError, OverflowError) as error:
        raise UserError("a day is written as 2026-11-21") from error
