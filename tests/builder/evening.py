"""The dinner of layers/app/sagas/dinner.yaml once more, built in Python."""

from __future__ import annotations

from typing import Any

from baton import Workflow
from baton.builder import Node, Reference, caught
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


TWICE: Any = {"max_attempts": 2, "base": "1s"}
CANCEL: Any = {"tool": tools.cancel_table, "with": {"hold": "${step.output.id}"}}
DISHES = ["Soup", "Gnocchi"]


def quote(what: str, items: list[str], at: Reference, after: Node | None = None) -> Node:
    """What it costs to have something brought."""
    return dinner.task(
        f"quote_{what}",
        tools.quote,
        after=after,
        with_={"city": dinner.input.city, "items": items, "at": at},
    )


def order(what: str, items: list[str], at: Reference, address: str, quoted: Node) -> Node:
    """It is brought."""
    return dinner.task(
        f"order_{what}",
        tools.order,
        after=quoted,
        with_={"items": items, "address": address, "at": at, "total_cents": quoted.output.total_cents},
    )


def deliver(what: str, items: list[str], at: Reference, held: Node, after: Node) -> Node:
    """A quote and an order: two nodes, as often as something is to be brought to a table."""
    address = f"{held.output.house}, {dinner.input.city}"
    return order(what, items, at, address, quote(what, items, at, after))


def which(found: Reference) -> dict[str, Any]:
    """What to hold of what was found."""
    return {"table": found.tables[0].id, "party": dinner.input.party, "at": found.at}


asked = {"city": dinner.input.city, "party": dinner.input.party, "at": dinner.input.at}
search = dinner.task(
    "search",
    tools.search,
    with_=asked,
    retry=TWICE,
    failover=[
        {"name": "later", "when": {"code": "no_tables"}, "then": {"with": {"hours_later": 1}}},
        {"name": "earlier", "when": {"code": "no_tables"}, "then": {"with": {"hours_later": -1}}},
    ],
    catch=[caught("waitlist", code="no_tables"), caught("quote_dinner")],
)
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
    retry=TWICE,
    failover=[
        {
            "name": "another_restaurant",
            "when": {"code": "conflict"},
            "then": {"with": {"table": search.output.elsewhere.id}},
        }
    ],
    catch=[caught("waitlist", code="conflict"), caught(["give_back", "quote_dinner"])],
    compensate=CANCEL,
)
deposit = dinner.task(
    "deposit",
    tools.deposit,
    after=hold,
    with_={"hold": hold.output.id, "amount_cents": hold.output.deposit_cents},
    retry=TWICE,
    catch=["give_back", "quote_dinner"],
)
wine = deliver("wine", ["Riesling", "Blauburgunder"], search.output.at, hold, hold)
cake = deliver("cake", ["Cherry cake"], search.output.at, hold, hold)
confirm = dinner.task(
    "confirm",
    tools.confirm,
    after=[deposit, wine, cake],
    with_={"hold": hold.output.id},
    retry=TWICE,
    catch=["give_back", "quote_dinner"],
)

waitlist = dinner.task("waitlist", tools.waitlist, with_=asked, retry=TWICE, catch="quote_dinner")
home = order(
    "dinner",
    DISHES,
    dinner.input.at,
    f"Home of {dinner.saga.user}, {dinner.input.city}",
    quote("dinner", DISHES, dinner.input.at),
)
give_back = dinner.task(
    "give_back",
    tools.give_back,
    after=[wine, cake],
    when="last_error != null",
    with_={"orders": [wine.maybe, cake.maybe]},
    retry="critical",
    on_failure=["retry", "escalate"],
    compensate="none",
)

search_bar = dinner.task(
    "search_bar",
    tools.search,
    after=confirm,
    with_={**asked, "at": search.output.at, "kind": "bar", "hours_later": 3},
)
hold_bar = dinner.task(
    "hold_bar", tools.hold_bar, after=search_bar, with_=which(search_bar.output), compensate=CANCEL
)
confirm_bar = dinner.task("confirm_bar", tools.confirm, after=hold_bar, with_={"hold": hold_bar.output.id})
snack = deliver("snack", ["Dumplings"], search_bar.output.at, hold_bar, confirm_bar)

itinerary = dinner.task(
    "itinerary",
    tools.itinerary,
    after=[snack, waitlist, home, give_back],
    with_={
        "table": confirm.maybe,
        "bar": confirm_bar.maybe,
        "waiting": waitlist.maybe,
        "deposit_cents": deposit.maybe.amount_cents,
        "orders": [made.maybe for made in (wine, cake, snack, home)],
        "given_back": give_back.maybe,
    },
)
dinner.output(
    {
        "way": itinerary.output.way,
        "confirmation": confirm.maybe.code,
        "evening": itinerary.output.lines,
        "total_cents": itinerary.output.total_cents,
    }
)
