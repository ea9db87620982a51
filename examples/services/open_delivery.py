"""open-delivery: things brought to a door. Quote, order, cancel, and its books.

HTTP, idempotency keys and faults are in desk. An address ends with its city: `Lantern, Graz`.
"""

import asyncio
import hashlib
import sys
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any

import pydantic
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from examples.services.books import Books, Effect, Request
from examples.services.desk import Answer, Desk, Refusal, Sleep
from examples.services.faults import Faults, place_of
from examples.services.serve import Options, options, serve

DELAYS = {"quote": 0.5, "order": 0.8, "cancel": 0.4}
DELIVERY_CENTS = 450

Text = Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class Quote(pydantic.BaseModel):
    """`POST /quotes`: looks up a price, promises nothing, changes nothing."""

    city: Text
    items: Annotated[list[Text], pydantic.Field(min_length=1, max_length=50)]
    at: datetime


class Order(pydantic.BaseModel):
    """`POST /orders`. `reference` is the caller's own name for what it orders."""

    reference: Text
    guest: Text
    items: Annotated[list[Text], pydantic.Field(min_length=1, max_length=50)]
    address: Text
    at: datetime
    total_cents: Annotated[int, pydantic.Field(gt=0)]


class Cancel(pydantic.BaseModel):
    """`POST /orders/{id}/cancel`."""

    reason: str = ""


@dataclass(slots=True)
class _Placed:
    id: str
    wanted: Order
    effect: Effect
    cancelled: bool = False


class OpenDelivery:
    """What was ordered, by whom, for when."""

    def __init__(self, books: Books, faults: Faults) -> None:
        self._books = books
        self._faults = faults
        self._orders: dict[str, _Placed] = {}

    def quote(self, query: Quote) -> Answer:
        """The price of some things at a door, the same whenever it is asked for."""
        return Answer(200, {"total_cents": _price(query.items), "minutes": 20 + len(query.items) * 5})

    def order(self, request: Request, wanted: Order) -> Answer:
        """Place an order at the quoted price."""
        if self._faults.find("order", _place(wanted), wanted.at, ["full"]):
            raise Refusal(410, "Sold out", f"There is no more of this: {', '.join(wanted.items)}.")
        if wanted.total_cents != _price(wanted.items):
            raise Refusal(409, "Price changed", f"These things cost {_price(wanted.items)} cents now.")
        effect = self._books.carried_out(request, "order", _identity(wanted))
        placed = _Placed(f"order-{len(self._orders) + 1}", wanted, effect)
        self._orders[placed.id] = placed
        return Answer(201, {"id": placed.id, "total_cents": wanted.total_cents})

    def cancel(self, order: str, request: Request, body: Cancel) -> Answer:
        """Call an order off. Once it is called off, asking again changes nothing."""
        if order not in self._orders:
            raise Refusal(404, "No such order", f"There is no order {order!r}.")
        placed = self._orders[order]
        if not placed.cancelled:
            cancel = self._books.carried_out(request, "cancel", _identity(placed.wanted))
            placed.cancelled = True
            self._books.undone(placed.effect, cancel)
        return Answer(200, {"id": placed.id, "status": "cancelled"})


def _place(wanted: Order) -> str:
    """`Lantern, Graz`, a cherry cake: `graz/cherry-cake`."""
    return place_of(wanted.address.rpartition(",")[2], wanted.items[0])


def _identity(wanted: Order) -> dict[str, Any]:
    return {
        "reference": wanted.reference,
        "guest": wanted.guest,
        "items": ", ".join(sorted(wanted.items)),
        "at": wanted.at.isoformat(),
    }


def _price(items: list[str]) -> int:
    digests = (hashlib.sha256(item.strip().lower().encode()).digest() for item in items)
    return DELIVERY_CENTS + sum(500 + digest[0] * 10 for digest in digests)


def build(chosen: Options, sleep: Sleep = asyncio.sleep) -> Starlette:
    """The service as an ASGI application with books of its own."""
    books = Books("open-delivery")
    desk = Desk(books, chosen.delays, chosen.honour_keys, sleep, chosen.busy_every)
    delivery = OpenDelivery(books, desk.faults)

    async def quote(http: HttpRequest) -> Response:
        return await desk.look(
            http, "quote", Quote, delivery.quote, meets=lambda body: (place_of(body.city), body.at)
        )

    async def order(http: HttpRequest) -> Response:
        return await desk.act(
            http, "order", Order, delivery.order, meets=lambda body: (_place(body), body.at)
        )

    async def cancel(http: HttpRequest) -> Response:
        name = http.path_params["order"]
        return await desk.act(http, "cancel", Cancel, lambda r, b: delivery.cancel(name, r, b))

    return Starlette(
        routes=[
            Route("/health", desk.health),
            Route("/books", desk.show_books),
            Route("/books/unanswered", desk.show_unanswered),
            Route("/faults/{place:path}", desk.faults.put, methods=["PUT"]),
            Route("/quotes", quote, methods=["POST"]),
            Route("/orders", order, methods=["POST"]),
            Route("/orders/{order}/cancel", cancel, methods=["POST"]),
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the service; see `--help`."""
    return serve("open-delivery", options("open-delivery", DELAYS, arguments), build)


if __name__ == "__main__":
    sys.exit(main())
