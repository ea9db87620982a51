"""The tools of an order: what each takes, what undoes it, and which of its errors are final."""

from dataclasses import dataclass

from baton import Context, tool
from examples.orders import shop
from examples.orders.shop import PRICES, CardDeclined, OutOfStock


@dataclass
class Item:
    """Part of an order."""

    article: str
    pieces: int


@dataclass
class Reservation:
    """Pieces that are put aside, with what they cost together."""

    reservation: str
    cents: int


@dataclass
class Payment:
    """Money that was taken."""

    payment: str


@dataclass
class FoundPayment:
    """Answer of the bank about a payment that may have been made. None: it cannot tell."""

    happened: bool | None
    result: Payment | None = None


@dataclass
class Parcel:
    """A parcel that is under way."""

    parcel: str


@tool("orders.reserve", undo="orders.release", raises={OutOfStock: ("out_of_stock", "permanent")})
async def reserve(item: Item, context: Context) -> Reservation:
    """Put pieces aside."""
    reservation = await shop.SHOP.reserve(context.idempotency_key, item.article, item.pieces)
    return Reservation(reservation, PRICES[item.article] * item.pieces)


@tool("orders.release")
async def release(step_key: str, context: Context) -> None:
    """Put them back. The key of the reservation is enough, so nothing is left if its answer never came."""
    await shop.SHOP.release(context.idempotency_key, step_key)


@tool(
    "orders.charge",
    effect="once",
    verify="orders.find_payment",
    undo="orders.refund",
    raises={CardDeclined: ("card_declined", "permanent")},
)
async def charge(order: str, card: str, cents: int) -> Payment:
    """Take the money. The bank would take it again, so it is asked before a second call."""
    return Payment(await shop.SHOP.charge(order, card, cents))


@tool("orders.find_payment", effect="pure")
async def find_payment(order: str) -> FoundPayment:
    """Ask the bank whether it has taken the money."""
    payment = await shop.SHOP.payment_of(order)
    return FoundPayment(bool(payment), Payment(payment) if payment else None)


@tool("orders.refund")
async def refund(payment: str, context: Context) -> None:
    """Give the money back."""
    await shop.SHOP.refund(context.idempotency_key, payment)


@tool("orders.ship", undo="orders.recall", timeout="20s")
async def ship(address: str, context: Context) -> Parcel:
    """Hand a parcel to the courier."""
    return Parcel(await shop.SHOP.ship(context.idempotency_key, address))


@tool("orders.recall")
async def recall(step_key: str, context: Context) -> None:
    """Have a parcel brought back, also one whose number never came."""
    await shop.SHOP.recall(context.idempotency_key, step_key)


@tool("orders.write")
async def write(to: str, text: str, context: Context) -> None:
    """Send a message."""
    await shop.SHOP.send(context.idempotency_key, to, text)
