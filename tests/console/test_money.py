"""Costs of a day come in pages, whose sums are added up; what is left over is said."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from baton.console.overview import MOST_PAGES, money
from baton.console.rendering import render
from baton.console.visits import Html, Session, Visit
from tests.kit.sentences import Says

BUDGET = {
    "user": "ada",
    "day": "2026-11-21",
    "spent_usd": 1,
    "reserved_usd": 0,
    "limit_usd": None,
    "left_usd": None,
    "blocked_until": None,
    "tenant": {
        "spent_usd": 9,
        "reserved_usd": 1,
        "limit_usd": 10,
        "left_usd": 0,
        "blocked_until": "2026-11-22T00:00:00.000Z",
    },
    "saga_limit_usd": None,
}


class Costs:
    """So many pages, each with the same row; the API's other routes are not asked."""

    roles = frozenset({"operate", "read"})
    tenant = "acme"

    def __init__(self, pages: int) -> None:
        self.pages, self.asked = pages, list[Mapping[str, str]]()

    async def __call__(self, route: str, *_: Any, query: Mapping[str, str] | None = None, **__: Any) -> Any:
        if route == "showBudget":
            return BUDGET
        assert route == "listCosts"
        self.asked.append(dict(query or {}))
        number = int((query or {}).get("cursor", "0")) + 1
        row = {"key": "<b>dinner</b>", "sagas": 2, "input": 1_000, "output": 10, "usd": 0.25}
        return {
            "day": "2026-11-21",
            "by": "workflow",
            "costs": [row],
            "looked_at": 2,
            "next": str(number) if number < self.pages else None,
        }


def shown(costs: Costs, **query: str) -> Html:
    session = Session({"sub": "ada"}, "t")
    visit = Visit(
        session=session, call=costs, path={}, query=query, form={}, now=0, token="t", api="https://a"
    )
    return asyncio.run(money(visit))


@pytest.mark.parametrize(("pages", "added"), [(1, 1), (3, 3), (MOST_PAGES + 2, MOST_PAGES)])
def test_pages_are_added_up_as_far_as_one_request_goes(pages: int, added: int) -> None:
    costs = Costs(pages)
    page = shown(costs)
    (row,) = page.data["rows"]
    assert (row["sagas"], row["usd"], page.data["sum"]) == (2 * added, 0.25 * added, 0.25 * added)
    assert (page.data["next"] != "") == (pages > added)
    assert all(asked["day"] == "2026-11-21" for asked in costs.asked[1:])


def test_the_page_says_what_is_blocked_and_shows_names_as_text(says: Says) -> None:
    page = shown(Costs(MOST_PAGES + 1))
    common: dict[str, Any] = {
        "title": "Money",
        "session": None,
        "csrf": "",
        "now": 0,
        "api": "",
        "tenant": "",
        "roles": [],
        "nav": (),
        "live": None,
    }
    html = render(page.template, common | dict(page.data))
    assert "&lt;b&gt;dinner&lt;/b&gt;" in html
    says.within(html, 2)
