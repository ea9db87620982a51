"""The dinner of layers/app/sagas/dinner.yaml once more, built in Python."""

from __future__ import annotations

from typing import Any

from baton import Workflow
from baton.builder import Node, Reference
from sagas import dinner as tools

dinner = Workflow(
    "dinner",
    input={
        "type": "object",
        "required": ["city", "party", "at"],
        "additionalProperties": False,
        "properties": {
            "city": {"type": "string", "minLength": 1, "maxLength": 100},
            "party": {"type": "integer", "minimum": 1, "maximum": 12},
            "at": {"type": "string", "format": "date-time"},
        },
        "examples": [{"city": "Lisbon", "party": 4, "at": "2026-12-24T19:30:00Z"}],
    },
)


def deliver(what: str, items: list[str], found: Reference, after: Node) -> Node:
    """A quote and an order: two nodes, as often as something is to be brought."""
    quote = dinner.task(
        f"quote_{what}",
        tools.quote,
        after=after,
        with_={"city": dinner.input.city, "items": items, "at": found.at},
    )
    return dinner.task(
        f"order_{what}",
        tools.order,
        after=quote,
        with_={
            "items": items,
            "address": found.tables[0].house,
            "at": found.at,
            "total_cents": quote.output.total_cents,
        },
    )


def which(found: Reference) -> dict[str, Any]:
    """What to hold of what was found."""
    return {"table": found.tables[0].id, "party": dinner.input.party, "at": found.at}


asked = {"city": dinner.input.city, "party": dinner.input.party, "at": dinner.input.at}
search = dinner.task("search", tools.search, with_=asked)
hold = dinner.task(
    "hold",
    tools.hold,
    after=search,
    with_=which(search.output),
    requires_approval={
        "always": False,
        "to": {"role": "answer"},
        "title": f"Hold a table for {dinner.input.party} in {dinner.input.city}?",
    },
)
deposit = dinner.task(
    "deposit",
    tools.deposit,
    after=hold,
    with_={"hold": hold.output.id, "amount_cents": hold.output.deposit_cents},
)
wine = deliver("wine", ["Riesling", "Blauburgunder"], search.output, hold)
cake = deliver("cake", ["Cherry cake"], search.output, hold)
confirm = dinner.task("confirm", tools.confirm, after=[deposit, wine, cake], with_={"hold": hold.output.id})

search_bar = dinner.task(
    "search_bar", tools.search, after=confirm, with_={**asked, "kind": "bar", "hours_later": 3}
)
hold_bar = dinner.task("hold_bar", tools.hold_bar, after=search_bar, with_=which(search_bar.output))
confirm_bar = dinner.task("confirm_bar", tools.confirm, after=hold_bar, with_={"hold": hold_bar.output.id})
snack = deliver("snack", ["Dumplings"], search_bar.output, confirm_bar)

itinerary = dinner.task(
    "itinerary",
    "dinner.itinerary",
    after=snack,
    with_={
        "table": confirm.output,
        "bar": confirm_bar.output,
        "deposit_cents": deposit.output.amount_cents,
        "orders": [wine.output, cake.output, snack.output],
    },
)
dinner.output(
    {
        "confirmation": confirm.output.code,
        "evening": itinerary.output.lines,
        "total_cents": itinerary.output.total_cents,
    }
)
