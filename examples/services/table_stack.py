"""table-stack: restaurant tables. Search, hold, deposit, look for a deposit, confirm, cancel, waitlist, and its books.

What these do is in tables; HTTP, idempotency keys and faults are in desk. Deposits take no idempotency key, as many a card
terminal: a caller that asks twice pays twice, unless it looks first.
"""

import asyncio
import sys
from functools import partial

from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from examples.services.books import Books
from examples.services.desk import Desk, Sleep
from examples.services.faults import place_of
from examples.services.serve import Options, options, serve
from examples.services.tables import (
    Cancel,
    Confirm,
    Deposit,
    FindDeposit,
    GiveBack,
    Hold,
    Leave,
    Search,
    TableStack,
    Waitlist,
)

DELAYS = {
    "search": 0.6, "hold": 0.8, "deposit": 0.9, "find_deposit": 0.3, "confirm": 0.8, "cancel": 0.4, "give_back": 0.4,
    "waitlist": 0.5, "leave": 0.3,
}  # fmt: skip


def build(chosen: Options, sleep: Sleep = asyncio.sleep) -> Starlette:
    """The service as an ASGI application with books of its own."""
    books = Books("table-stack")
    desk = Desk(books, chosen.delays, chosen.honour_keys, sleep, chosen.busy_every)
    tables = TableStack(books, desk.faults)

    def meets(hold: str) -> tuple[str, None]:
        return tables.place(hold), None

    async def search(http: HttpRequest) -> Response:
        return await desk.look(
            http, "search", Search, tables.search, meets=lambda body: (place_of(body.city), body.at)
        )

    async def hold(http: HttpRequest) -> Response:
        return await desk.act(http, "hold", Hold, tables.hold, meets=lambda body: (body.table, body.at))

    async def deposit(http: HttpRequest) -> Response:
        name = http.path_params["hold"]
        pay = partial(tables.deposit, name)
        return await desk.act(http, "deposit", Deposit, pay, meets=lambda _: meets(name), takes_keys=False)

    async def find_deposit(http: HttpRequest) -> Response:
        name = http.path_params["hold"]
        find = partial(tables.find_deposit, name)
        return await desk.look(
            http, "find_deposit", FindDeposit, lambda _: find(), meets=lambda _: meets(name)
        )

    async def confirm(http: HttpRequest) -> Response:
        name = http.path_params["hold"]
        return await desk.act(
            http, "confirm", Confirm, partial(tables.confirm, name), meets=lambda _: meets(name)
        )

    async def cancel(http: HttpRequest) -> Response:
        name = http.path_params["hold"]
        return await desk.act(
            http, "cancel", Cancel, partial(tables.cancel, name), meets=lambda _: meets(name)
        )

    async def give_back(http: HttpRequest) -> Response:
        return await desk.act(
            http, "give_back", GiveBack, partial(tables.give_back, http.path_params["reference"])
        )

    async def join(http: HttpRequest) -> Response:
        return await desk.act(
            http, "waitlist", Waitlist, tables.join, meets=lambda body: (place_of(body.city), body.at)
        )

    async def leave(http: HttpRequest) -> Response:
        return await desk.act(http, "leave", Leave, partial(tables.leave, http.path_params["name"]))

    return Starlette(
        routes=[
            Route("/health", desk.health),
            Route("/books", desk.show_books),
            Route("/books/unanswered", desk.show_unanswered),
            Route("/faults/{place:path}", desk.faults.put, methods=["PUT"]),
            Route("/tables", search),
            Route("/holds", hold, methods=["POST"]),
            Route("/holds/{hold}/deposit", deposit, methods=["POST"]),
            Route("/holds/{hold}/deposit", find_deposit),
            Route("/holds/{hold}/confirm", confirm, methods=["POST"]),
            Route("/holds/{hold}/cancel", cancel, methods=["POST"]),
            Route("/references/{reference}/give-back", give_back, methods=["POST"]),
            Route("/waitlist", join, methods=["POST"]),
            Route("/waitlist/{name}/leave", leave, methods=["POST"]),
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the service; see `--help`."""
    return serve("table-stack", options("table-stack", DELAYS, arguments), build)


if __name__ == "__main__":
    sys.exit(main())
