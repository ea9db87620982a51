"""The order of a shop as a workflow: from the warehouse to the customer, or back to where it began."""

import asyncio
from dataclasses import dataclass

from baton import StepFailure, WorkflowContext, workflow
from examples.orders.tools import Item, charge, reserve, ship, write

LARGE_CENTS = 50_000


@dataclass
class Order:
    """Wish of a customer."""

    id: str
    customer: str
    address: str
    card: str
    items: list[Item]


@dataclass
class Packed:
    """Word of the warehouse that an order is packed."""

    by: str


@dataclass
class Fulfilled:
    """An order that is paid and under way."""

    payment: str
    parcel: str
    cents: int
    is_customer_told: bool


@workflow("fulfil-order", timeout="30d", on_failure="rollback")
async def fulfil(order: Order, context: WorkflowContext) -> Fulfilled:
    """Put the items aside, take the money, and send the parcel. What fails in between undoes what was done."""

    async def tell(whom: str, text: str) -> bool:
        """Send a message. That it cannot be sent is no reason to undo an order."""
        try:
            await context.step(write, whom, text)
        except StepFailure:
            return False
        return True

    reserved = await asyncio.gather(*(context.step(reserve, item) for item in order.items))
    cents = sum(one.cents for one in reserved)
    context.publish("cents", cents)
    if cents >= LARGE_CENTS:
        title = f"Sell to {order.customer} for {cents / 100:,.2f}?"
        await context.ask(title, details=order.items, to={"group": "sales"}, expires="2d", risk="high")

    paid = await context.step(charge, order.id, order.card, cents)
    await tell("the warehouse", f"Please pack {order.id}.")
    try:
        packed = await context.signal("packed", timeout="3d", schema=Packed)
    except TimeoutError:
        context.fail("not_packed", f"{order.id} was not packed in three days", kind="permanent")

    sent = await context.step(ship, order.address, retry=5)
    told, _ = await asyncio.gather(
        tell(order.customer, f"Your order {order.id} is on its way, packed by {packed.by}."),
        tell("accounting", f"{order.id}: {cents} cents, {paid.payment}."),
    )
    return Fulfilled(paid.payment, sent.parcel, cents, told)
