"""The tools of the evening out: tables at table-stack, deliveries at open-delivery.

The order in which things are done is in dinner.yaml and evening.yaml; what an agent may look up is in concierge.yaml; HTTP is in outside.
"""

from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel

from baton import Context, Risk, StepFailure, tool
from sagas.outside import call

TABLES = "table-stack"
DELIVERY = "open-delivery"


class Table(BaseModel):
    """A table that is free."""

    id: str
    house: str
    city: str
    seats: int
    deposit_cents: int = 0


class FreeTables(BaseModel):
    """The tables that are free at a time, the smallest that is large enough first."""

    at: str
    tables: list[Table]


class Hold(BaseModel):
    """A table kept for a quarter of an hour. `deposit_cents` is 0 where none is asked for."""

    id: str
    table: str
    deposit_cents: int
    expires_at: str


class Deposit(BaseModel):
    """A deposit that was paid."""

    receipt: str
    amount_cents: int


class FoundDeposit(BaseModel):
    """Whether a deposit was paid, and which."""

    happened: bool
    result: Deposit | None = None


class Booking(BaseModel):
    """A table that is booked."""

    code: str
    table: str


class Cancelled(BaseModel):
    """Something that was called off. Orders are paid on delivery and refund nothing."""

    id: str
    status: str
    refunded_cents: int = 0


class Quote(BaseModel):
    """What a delivery would cost and how long it would take."""

    total_cents: int
    minutes: int


class Order(BaseModel):
    """A delivery that is on its way."""

    id: str
    total_cents: int


class Itinerary(BaseModel):
    """The evening, a line for each thing that was arranged."""

    lines: list[str]
    total_cents: int


@tool("table.search", version="1", effect="pure", timeout="5s")
async def search(
    city: str,
    party: int,
    at: str,
    context: Context,
    kind: Literal["restaurant", "bar"] = "restaurant",
    hours_later: int = 0,
    cuisine: str = "",
) -> FreeTables:
    """Find the free tables of a city for a party, at an ISO 8601 time or some hours after it; `cuisine` is one word."""
    when = (datetime.fromisoformat(at) + timedelta(hours=hours_later)).isoformat()
    query = {"city": city, "party": party, "at": when, "kind": kind, "cuisine": cuisine}
    found = await call(context, TABLES, "GET", "/tables", query=query)
    if not found["tables"]:
        # Nothing is broken: a person may answer with another city, time or party.
        house = f"{cuisine} {kind}".strip()
        message = f"No {house} in {city} has a free table for {party} at {when}"
        raise StepFailure("no_tables", message, kind="user_resolvable")
    return FreeTables(at=when, tables=found["tables"])


@tool(
    "table.hold", version="1", effect="idempotent", timeout="5s", risk=Risk(action="booking", party="party")
)
async def hold(table: str, party: int, at: str, context: Context) -> Hold:
    """Keep a table for a quarter of an hour, for the user of the saga."""
    return await _kept(table, party, at, context)


@tool("bar.hold", version="1", effect="idempotent", timeout="5s")
async def hold_bar(table: str, party: int, at: str, context: Context) -> Hold:
    """Keep places at a bar. It declares no risk: a bar asks no deposit, and expects parties of any size."""
    return await _kept(table, party, at, context)


async def _kept(table: str, party: int, at: str, context: Context) -> Hold:
    body = {
        "reference": context.saga,
        "guest": context.user,
        "table": table,
        "party": party,
        "at": at,
    }
    return Hold(**await call(context, TABLES, "POST", "/holds", body=body))


@tool(
    "table.deposit",
    version="2",
    effect="once",
    verify="table.find_deposit",
    timeout="5s",
    risk=Risk(action="deposit", amount="amount_cents", currency_is="USD", minor=True),
)
async def deposit(hold: str, amount_cents: int, context: Context) -> Deposit:
    """Pay the deposit of a hold. A second call would be a second payment, so the engine looks before it."""
    body = {"amount_cents": amount_cents}
    return Deposit(**await call(context, TABLES, "POST", f"/holds/{hold}/deposit", body=body))


@tool("table.find_deposit", version="1", effect="pure", timeout="5s")
async def find_deposit(hold: str, context: Context) -> FoundDeposit:
    """Look whether the deposit of a hold was paid."""
    found = await call(context, TABLES, "GET", f"/holds/{hold}/deposit")
    return FoundDeposit(happened=found["paid"], result=Deposit(**found) if found["paid"] else None)


@tool("table.confirm", version="1", effect="idempotent", timeout="5s")
async def confirm(hold: str, context: Context) -> Booking:
    """Turn a hold into a booking."""
    return Booking(**await call(context, TABLES, "POST", f"/holds/{hold}/confirm", body={}))


@tool("table.cancel", version="1", effect="idempotent", timeout="5s")
async def cancel_table(hold: str, context: Context, reason: str = "") -> Cancelled:
    """Give a table back, held or booked; a deposit is refunded."""
    body = {"reason": reason}
    return Cancelled(**await call(context, TABLES, "POST", f"/holds/{hold}/cancel", body=body))


@tool("delivery.quote", version="1", effect="pure", timeout="5s")
async def quote(city: str, items: list[str], at: str, context: Context) -> Quote:
    """Ask what a delivery would cost."""
    body = {"city": city, "items": items, "at": at}
    return Quote(**await call(context, DELIVERY, "POST", "/quotes", body=body))


@tool("delivery.order", version="1", effect="idempotent", timeout="5s")
async def order(items: list[str], address: str, at: str, total_cents: int, context: Context) -> Order:
    """Order a delivery at the price that was quoted, for the user of the saga."""
    body = {
        "reference": context.saga,
        "guest": context.user,
        "items": items,
        "address": address,
        "at": at,
        "total_cents": total_cents,
    }
    return Order(**await call(context, DELIVERY, "POST", "/orders", body=body))


@tool("delivery.cancel", version="1", effect="idempotent", timeout="5s")
async def cancel_order(order: str, context: Context, reason: str = "") -> Cancelled:
    """Call a delivery off."""
    body = {"reason": reason}
    return Cancelled(**await call(context, DELIVERY, "POST", f"/orders/{order}/cancel", body=body))


@tool("dinner.itinerary", version="1", effect="pure", timeout="2s")
def itinerary(table: Booking, bar: Booking, deposit_cents: int, orders: list[Order]) -> Itinerary:
    """Write down what was arranged. An ordinary function: it calls no service."""
    lines = [f"Dinner at {table.table}, booked as {table.code}"]
    lines += [f"Drinks at {bar.table}, booked as {bar.code}"]
    lines += [f"Delivery {order.id}, {order.total_cents / 100:.2f}" for order in orders]
    total = deposit_cents + sum(order.total_cents for order in orders)
    return Itinerary(lines=lines, total_cents=total)
