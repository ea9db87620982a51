"""Tools of the concierge: check plans, track arrangements, and cancel them.

concierge.yaml and evening.yaml define the order of the steps. The tools that act are in dinner.
"""

import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from baton import Context, StepFailure, tool
from sagas.dinner import DELIVERY, TABLES, Booking, Deposit, Hold, Order
from sagas.outside import call

WISHES = 20
"""Number of the guest's last wishes that are kept."""


class BookTable(BaseModel):
    """A step of a plan: hold a table, pay its deposit, book it."""

    do: Literal["book_table"]
    table: str
    house: str
    party: int
    deposit_cents: int


class OrderDelivery(BaseModel):
    """A step of a plan: order a delivery to a house."""

    do: Literal["order_delivery"]
    items: list[str]
    house: str
    total_cents: int


class Cancel(BaseModel):
    """A step of a plan: cancel an earlier arrangement."""

    do: Literal["cancel"]
    id: str


Step = Annotated[BookTable | OrderDelivery | Cancel, Field(discriminator="do")]


class Plan(BaseModel):
    """A plan as the model understood it, with its steps."""

    understood: str
    steps: list[Step]


class Table(BaseModel):
    """A table. Without `hold`, it is to be held; with `code`, it is booked."""

    table: str
    house: str
    party: int
    deposit_cents: int
    hold: str = ""
    paid: bool = False
    code: str = ""


class Delivery(BaseModel):
    """A delivery: ordered once it has an `id`."""

    items: list[str]
    house: str
    total_cents: int
    id: str = ""


class Todo(BaseModel):
    """The work to carry out, as the input of evening.yaml."""

    table: Table | None = None
    order: Delivery | None = None
    cancel_tables: list[str] = []
    cancel_orders: list[str] = []


class Checked(BaseModel):
    """A plan that can be carried out. `lines` and `text` describe it to the guest."""

    todo: Todo
    lines: list[str]
    text: str


class Stock(BaseModel):
    """Current arrangements. `again` is true if the last of the `wishes` requires another plan. `why` is the
    reason why the plan was not carried out.
    """

    understood: str = ""
    booked: list[Table] = []
    held: list[Table] = []
    orders: list[Delivery] = []
    wishes: list[str] = []
    again: bool = False
    arranged: bool = False
    why: str = ""
    unbooked: list[str] = []


class Due(BaseModel):
    """A hold, and the amount still to be paid for it."""

    hold: str
    due_cents: int


class CalledOff(BaseModel):
    """Tables and orders that were cancelled."""

    tables: list[str]
    orders: list[str]


@tool("concierge.check", version="1", effect="pure", timeout="2s")
def check(plan: Plan, so_far: Stock | None) -> Checked:
    """Convert a plan to work that can be carried out. An inconsistent plan fails with `plan_unfit`."""
    known = so_far or Stock()
    tables = {one.hold: one for one in (*known.booked, *known.held)}
    orders = {one.id: one for one in known.orders}
    books = [step for step in plan.steps if isinstance(step, BookTable)]
    buys = [step for step in plan.steps if isinstance(step, OrderDelivery)]
    gone = list(dict.fromkeys(step.id for step in plan.steps if isinstance(step, Cancel)))
    if unknown := [one for one in gone if one not in tables and one not in orders]:
        raise _unfit(f"`{unknown[0]}` is not arranged, so it cannot be cancelled")
    kept = [one for hold, one in tables.items() if hold not in gone]
    if len(books) + len(kept) > 1:
        raise _unfit("there would be more than one table: cancel those that are not needed")
    if len(buys) > 1:
        raise _unfit("order everything in one delivery")
    wanted = [Table.model_validate(step.model_dump()) for step in books] + [
        one for one in kept if not one.code
    ]
    if not (wanted or buys or gone):
        raise _unfit("there is nothing to do: plan at least one step, or say in it what is to be cancelled")
    todo = Todo(
        table=wanted[0] if wanted else None,
        order=Delivery.model_validate(buys[0].model_dump()) if buys else None,
        cancel_tables=[one for one in gone if one in tables],
        cancel_orders=[one for one in gone if one in orders],
    )
    lines = [*_new(todo)]
    lines += [f"Cancel {_told(tables[one])}" for one in todo.cancel_tables]
    lines += [f"Cancel the delivery of {', '.join(orders[one].items)}" for one in todo.cancel_orders]
    lines += [f"Keep {_told(one)}" for one in kept if one.code]
    lines += [f"Keep the delivery of {', '.join(one.items)}" for one in known.orders if one.id not in gone]
    return Checked(todo=todo, lines=lines, text=". ".join(lines) + ".")


@tool("concierge.table", version="1", effect="pure", timeout="2s")
def table(wanted: Table, held: Hold | None) -> Due:
    """Return the hold to continue with: the new one, or that of an earlier round."""
    due = (
        0 if wanted.paid else wanted.deposit_cents
    )  # what the guest has confirmed; the house refuses another amount
    return Due(hold=held.id if held else wanted.hold, due_cents=due)


class Done(BaseModel):
    """Output of evening.yaml: its results, whatever its end."""

    wanted: Table | None = None
    hold: Hold | None = None
    deposit: Deposit | None = None
    booking: Booking | None = None
    order: Order | None = None
    buys: Delivery | None = None
    called_off: CalledOff | None = None
    failed: str | None = None


@tool("concierge.stock", version="1", effect="pure", timeout="2s")
def stock(
    so_far: Stock | None,
    plan: Plan,
    unfit: str | None,
    said: dict[str, Any] | None,
    carried: dict[str, Any] | None,
    broken: str | None,
    later: Any,
) -> Stock:
    """Return the arrangements after a round, and the guest's further wishes."""
    known = so_far or Stock()
    is_off = carried is not None and "cancelled" in carried
    done = Done.model_validate((carried["result"] if is_off else carried) or {}) if carried else Done()
    now = _after(known, done)
    now.understood = plan.understood
    wish = why = ""
    answer = (said or {}).get("ask") or {}
    if unfit:
        wish = f"That plan does not work: {unfit}"
    elif said and "heard" in said:
        wish = _text(said["heard"])
    elif answer.get("answer") == "change":
        wish = _text(answer.get("comment") or "Something else.")
    elif answer.get("answer") == "stop":
        why = (
            "the guest did not want it"
            if answer.get("source") == "person"
            else "the guest did not answer in time"
        )
    elif is_off and carried is not None:
        wish = _text(carried["cancelled"])
    elif broken:
        why = broken
    elif done.failed:
        wish = f"A step of that plan has failed: {done.failed}"
    elif later is not None and later != {"timed_out": True}:
        wish = _text(later)
    now.wishes = [*known.wishes, *([wish] if wish else [])][-WISHES:]
    now.again, now.why = bool(wish), why
    now.arranged = not (wish or why)
    now.unbooked = [one.hold for one in now.held]
    return now


def _after(known: Stock, done: Done) -> Stock:
    gone = done.called_off or CalledOff(tables=[], orders=[])
    tables = [one for one in (*known.booked, *known.held) if one.hold not in gone.tables]
    orders = [one for one in known.orders if one.id not in gone.orders]
    if done.wanted is not None and (hold := done.hold.id if done.hold else done.wanted.hold):
        now = done.wanted.model_copy(update={"hold": hold})
        now.paid = now.paid or done.deposit is not None
        now.code = done.booking.code if done.booking else now.code
        tables = [one for one in tables if one.hold != hold] + [now]
    if done.order is not None and done.buys is not None:
        orders.append(done.buys.model_copy(update={"id": done.order.id}))
    return Stock(
        booked=[one for one in tables if one.code],
        held=[one for one in tables if not one.code],
        orders=orders,
    )


@tool("concierge.call_off", version="1", effect="idempotent", timeout="20s")
async def call_off(tables: list[str], orders: list[str], context: Context) -> CalledOff:
    """Cancel tables and deliveries. A deposit is refunded. Repeating the call changes nothing."""
    for hold in tables:
        await call(context, TABLES, "POST", f"/holds/{hold}/cancel", body={}, part=hold)
    for order in orders:
        await call(context, DELIVERY, "POST", f"/orders/{order}/cancel", body={}, part=order)
    return CalledOff(tables=tables, orders=orders)


def _new(todo: Todo) -> list[str]:
    lines = []
    if todo.table is not None:
        verb = "Go on with" if todo.table.hold else "Book"
        lines.append(f"{verb} {_told(todo.table)}, deposit {_money(todo.table.deposit_cents)}")
    if todo.order is not None:
        lines.append(f"Have {', '.join(todo.order.items)} brought there, {_money(todo.order.total_cents)}")
    return lines


def _told(one: Table) -> str:
    return f"the table at {one.house} for {one.party}"


def _money(cents: int) -> str:
    return f"${cents / 100:.2f}"


def _text(said: Any) -> str:
    return (said if isinstance(said, str) else json.dumps(said))[:1000]


def _unfit(message: str) -> StepFailure:
    return StepFailure("plan_unfit", message, kind="permanent")
