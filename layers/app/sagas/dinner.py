"""Tools of the evening out: tables at table-stack, deliveries at open-delivery.

dinner.yaml and evening.yaml define the order of the steps; concierge.yaml lists the tools of the agent. HTTP
calls are in outside.
"""

from datetime import datetime, timedelta
from typing import Literal

from pydantic import BaseModel

from baton import Context, Risk, StepFailure, tool
from sagas.outside import call, read

TABLES = "table-stack"
DELIVERY = "open-delivery"


class Table(BaseModel):
    """A free table."""

    id: str
    house: str
    city: str
    seats: int
    deposit_cents: int = 0


class FreeTables(BaseModel):
    """Free tables at a time, ordered by size from the smallest that suffices, and the first table of another
    house.
    """

    at: str
    tables: list[Table]
    elsewhere: Table | None = None


class Hold(BaseModel):
    """A table held for 15 minutes. `deposit_cents` is 0 if no deposit is required."""

    id: str
    table: str
    house: str
    deposit_cents: int
    expires_at: str


class Deposit(BaseModel):
    """A deposit that was paid."""

    receipt: str
    amount_cents: int


class FoundDeposit(BaseModel):
    """Result of the verification of a deposit. `happened` is true if it was paid, and `result`
    contains it.
    """

    happened: bool
    result: Deposit | None = None


class _Paid(BaseModel):
    paid: bool


class Booking(BaseModel):
    """A table that is booked."""

    code: str
    table: str


class Cancelled(BaseModel):
    """Something that was called off. Orders are paid on delivery and refund nothing."""

    id: str
    status: str
    refunded_cents: int = 0


class Waiting(BaseModel):
    """A place on a waitlist."""

    id: str
    position: int


class GivenBack(BaseModel):
    """Tables given back, with their refunds, and cancelled orders."""

    holds: list[str]
    refunded_cents: int
    orders: list[str] = []


class Quote(BaseModel):
    """Price and duration of a delivery."""

    total_cents: int
    minutes: int


class Order(BaseModel):
    """A delivery that is on its way."""

    id: str
    total_cents: int


class Itinerary(BaseModel):
    """The evening, one line for each arrangement. `way` names the kind of dinner."""

    way: Literal["table", "waitlist", "home"]
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
    """Find the free tables of a city for a party, at an ISO 8601 time or some hours later. `cuisine` is one
    word.
    """
    when = (datetime.fromisoformat(at) + timedelta(hours=hours_later)).isoformat()
    query = {"city": city, "party": party, "at": when, "kind": kind, "cuisine": cuisine}
    answer = await call(context, TABLES, "GET", "/tables", query=query)
    found = read(FreeTables, answer, TABLES, at=when)
    if not found.tables:
        # Nothing is broken: a person may answer with another city, time or party.
        house = f"{cuisine} {kind}".strip()
        message = f"No {house} in {city} has a free table for {party} at {when}"
        raise StepFailure("no_tables", message, kind="user_resolvable")
    others = [table for table in found.tables if table.house != found.tables[0].house]
    return found.model_copy(update={"elsewhere": others[0] if others else None})


@tool(
    "table.hold", version="1", effect="idempotent", timeout="5s", risk=Risk(action="booking", party="party")
)
async def hold(table: str, party: int, at: str, context: Context) -> Hold:
    """Hold a table for 15 minutes, for the user of the saga."""
    return await _kept(table, party, at, context)


@tool("bar.hold", version="1", effect="idempotent", timeout="5s")
async def hold_bar(table: str, party: int, at: str, context: Context) -> Hold:
    """Hold places at a bar. It declares no risk: a bar requires no deposit and accepts any number
    of people.
    """
    return await _kept(table, party, at, context)


async def _kept(table: str, party: int, at: str, context: Context) -> Hold:
    body = {
        "reference": context.saga,
        "guest": context.user,
        "table": table,
        "party": party,
        "at": at,
    }
    return read(Hold, await call(context, TABLES, "POST", "/holds", body=body), TABLES)


@tool(
    "table.deposit",
    version="2",
    effect="once",
    verify="table.find_deposit",
    undo="table.cancel",
    timeout="5s",
    risk=Risk(action="deposit", amount="amount_cents", currency_is="USD", minor=True),
)
async def deposit(hold: str, amount_cents: int, context: Context) -> Deposit:
    """Pay the deposit of a hold. A second call would pay twice, so the engine verifies it first."""
    body = {"amount_cents": amount_cents}
    return read(Deposit, await call(context, TABLES, "POST", f"/holds/{hold}/deposit", body=body), TABLES)


@tool("table.find_deposit", version="1", effect="pure", timeout="5s")
async def find_deposit(hold: str, context: Context) -> FoundDeposit:
    """Verify whether the deposit of a hold was paid."""
    found = await call(context, TABLES, "GET", f"/holds/{hold}/deposit")
    paid = read(_Paid, found, TABLES).paid
    return FoundDeposit(happened=paid, result=read(Deposit, found, TABLES) if paid else None)


@tool("table.confirm", version="1", effect="idempotent", timeout="5s", undo="table.cancel")
async def confirm(hold: str, context: Context) -> Booking:
    """Turn a hold into a booking."""
    return read(Booking, await call(context, TABLES, "POST", f"/holds/{hold}/confirm", body={}), TABLES)


@tool("table.cancel", version="1", effect="idempotent", timeout="5s")
async def cancel_table(hold: str, context: Context, reason: str = "") -> Cancelled:
    """Give back a table, held or booked. A deposit is refunded."""
    body = {"reason": reason}
    return read(Cancelled, await call(context, TABLES, "POST", f"/holds/{hold}/cancel", body=body), TABLES)


@tool("table.waitlist", version="1", effect="idempotent", timeout="5s", undo="table.leave_waitlist")
async def waitlist(city: str, party: int, at: str, context: Context) -> Waiting:
    """Wait for any table of a city, for the user of the saga."""
    body = {"reference": context.saga, "guest": context.user, "city": city, "party": party, "at": at}
    return read(Waiting, await call(context, TABLES, "POST", "/waitlist", body=body), TABLES)


@tool("table.leave_waitlist", version="1", effect="idempotent", timeout="5s")
async def leave_waitlist(id: str, context: Context) -> Cancelled:
    """Leave the waitlist."""
    return read(Cancelled, await call(context, TABLES, "POST", f"/waitlist/{id}/leave", body={}), TABLES)


@tool("delivery.quote", version="1", effect="pure", timeout="5s")
async def quote(city: str, items: list[str], at: str, context: Context) -> Quote:
    """Request the price and duration of a delivery."""
    body = {"city": city, "items": items, "at": at}
    return read(Quote, await call(context, DELIVERY, "POST", "/quotes", body=body), DELIVERY)


@tool("delivery.order", version="1", effect="idempotent", timeout="5s", undo="delivery.cancel")
async def order(items: list[str], address: str, at: str, total_cents: int, context: Context) -> Order:
    """Order a delivery at the quoted price, for the user of the saga."""
    body = {
        "reference": context.saga,
        "guest": context.user,
        "items": items,
        "address": address,
        "at": at,
        "total_cents": total_cents,
    }
    return read(Order, await call(context, DELIVERY, "POST", "/orders", body=body), DELIVERY)


@tool("delivery.cancel", version="2", effect="idempotent", timeout="5s")
async def cancel_order(id: str, context: Context, reason: str = "") -> Cancelled:
    """Cancel a delivery."""
    body = {"reason": reason}
    return read(Cancelled, await call(context, DELIVERY, "POST", f"/orders/{id}/cancel", body=body), DELIVERY)


@tool("dinner.give_back", version="1", effect="idempotent", timeout="20s")
async def give_back(orders: list[Order | None], context: Context) -> GivenBack:
    """Give back any table of the saga, with its deposit, and cancel these orders.

    The call does not need the id of the table, because the answer with it may not have arrived.
    """
    path = f"/references/{context.saga}/give-back"
    given = await call(context, TABLES, "POST", path, body={"guest": context.user}, part="tables")
    gone = [order.id for order in orders if order is not None]
    for order in gone:
        await call(context, DELIVERY, "POST", f"/orders/{order}/cancel", body={}, part=order)
    return read(GivenBack, given, TABLES, orders=gone)


@tool("dinner.itinerary", version="2", effect="pure", timeout="2s")
def itinerary(
    table: Booking | None,
    bar: Booking | None,
    waiting: Waiting | None,
    deposit_cents: int | None,
    orders: list[Order | None],
    given_back: GivenBack | None,
) -> Itinerary:
    """Write the itinerary of the arrangements, or of their replacements. This ordinary function calls no
    service.
    """
    lines: list[str] = []
    if given_back is not None:
        tables, refunded = len(given_back.holds), given_back.refunded_cents / 100
        lines.append(f"Given back: {tables} table(s), {refunded:.2f} refunded")
        table, deposit_cents = None, 0
    if table is not None:
        lines.append(f"Dinner at {table.table}, booked as {table.code}")
    if bar is not None:
        lines.append(f"Drinks at {bar.table}, booked as {bar.code}")
    if waiting is not None:
        lines.append(f"On the waitlist, as number {waiting.position}")
    gone = given_back.orders if given_back else []
    coming = [order for order in orders if order is not None and order.id not in gone]
    lines += [f"Delivery {order.id}, {order.total_cents / 100:.2f}" for order in coming]
    way: Literal["table", "waitlist", "home"] = "table" if table else "waitlist" if waiting else "home"
    return Itinerary(
        way=way, lines=lines, total_cents=(deposit_cents or 0) + sum(order.total_cents for order in coming)
    )
