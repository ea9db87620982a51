"""table-stack: restaurant tables. Search, hold, deposit, look for a deposit, confirm, cancel, and its books.

HTTP and idempotency keys are in desk. A hold that is not confirmed ends by itself after 15 minutes. Deposits take no
idempotency key, as many a card terminal: a caller that asks twice pays twice, unless it looks first.
"""

import asyncio
import hashlib
import sys
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Annotated, Any

import pydantic
from starlette.applications import Starlette
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from examples.services.books import Books, Effect, Request
from examples.services.desk import Answer, Desk, Refusal, Sleep
from examples.services.serve import Options, options, serve

DELAYS = {"search": 0.6, "hold": 0.8, "deposit": 0.9, "find_deposit": 0.3, "confirm": 0.8, "cancel": 0.4}
HOLD_TIME = timedelta(minutes=15)
DEPOSIT_CENTS_PER_GUEST = 800

_HOUSES = {"restaurant": ["Lantern", "Quayside", "Olive Yard"], "bar": ["Night Heron", "Cellar 9"]}
_CUISINES = {"Lantern": "Austrian", "Quayside": "Fish", "Olive Yard": "Greek"}
_SEATS = (2, 4, 4, 6, 8, 12)

Text = Annotated[str, pydantic.StringConstraints(strip_whitespace=True, min_length=1, max_length=200)]


class Search(pydantic.BaseModel):
    """`GET /tables`."""

    city: Text
    party: Annotated[int, pydantic.Field(ge=1, le=12)]
    at: datetime
    kind: str = "restaurant"
    cuisine: str = ""


class Hold(pydantic.BaseModel):
    """`POST /holds`. `reference` is the caller's own name for what it orders."""

    reference: Text
    guest: Text
    table: Text
    party: Annotated[int, pydantic.Field(ge=1, le=12)]
    at: datetime


class Deposit(pydantic.BaseModel):
    """`POST /holds/{id}/deposit`."""

    amount_cents: Annotated[int, pydantic.Field(gt=0)]


class FindDeposit(pydantic.BaseModel):
    """`GET /holds/{id}/deposit`: nothing to say."""


class Confirm(pydantic.BaseModel):
    """`POST /holds/{id}/confirm`: nothing to say."""


class Cancel(pydantic.BaseModel):
    """`POST /holds/{id}/cancel`."""

    reason: str = ""


@dataclass(slots=True)
class _Held:
    id: str
    wanted: Hold
    effect: Effect
    expires_at: datetime
    deposit_cents: int
    paid: Effect | None = None
    confirmed: Effect | None = None
    cancelled: bool = False

    def receipt(self) -> dict[str, Any]:
        assert self.paid is not None
        return {"receipt": _code("R", self.id, self.paid.n), "amount_cents": self.deposit_cents}

    def stands(self) -> bool:
        if self.cancelled:
            return False
        return self.confirmed is not None or datetime.now(UTC) < self.expires_at


class TableStack:
    """The tables of every city, and who has them."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self._holds: dict[str, _Held] = {}

    def search(self, query: Search) -> Answer:
        """The free tables that are large enough, the smallest first."""
        if query.kind not in _HOUSES:
            raise Refusal(422, "No such kind of house", f"kind is one of {', '.join(_HOUSES)}.")
        taken = {
            held.wanted.table for held in self._holds.values() if held.stands() and held.wanted.at == query.at
        }
        city = "-".join(query.city.lower().split())
        tables = [
            {
                "id": table,
                "house": house,
                "city": query.city,
                "seats": seats,
                "deposit_cents": 0 if query.kind == "bar" else query.party * DEPOSIT_CENTS_PER_GUEST,
            }
            for house in _HOUSES[query.kind]
            if query.cuisine.lower() in ("", _CUISINES.get(house, "").lower())
            for n, seats in enumerate(_SEATS, start=1)
            if seats >= query.party
            and (table := f"{city}/{'-'.join(house.lower().split())}/{n}") not in taken
        ]
        tables.sort(key=lambda table: (table["seats"], table["id"]))
        return Answer(200, {"tables": tables})

    def hold(self, request: Request, wanted: Hold) -> Answer:
        """Keep a table for 15 minutes. Refused when another guest has it.

        The same guest with the same reference is not refused: that this is not asked for twice is
        the caller's business, and the books show whether it was.
        """
        for other in self._holds.values():
            theirs = other.wanted
            same_place = (theirs.table, theirs.at) == (wanted.table, wanted.at)
            same_caller = (theirs.reference, theirs.guest) == (wanted.reference, wanted.guest)
            if other.stands() and same_place and not same_caller:
                raise Refusal(409, "Table taken", f"{wanted.table} is taken at {wanted.at}.")
        deposit = 0 if self._is_bar(wanted.table) else wanted.party * DEPOSIT_CENTS_PER_GUEST
        held = _Held(
            id=f"hold-{len(self._holds) + 1}",
            wanted=wanted,
            effect=self._books.carried_out(request, "hold", _identity(wanted)),
            expires_at=datetime.now(UTC) + HOLD_TIME,
            deposit_cents=deposit,
        )
        self._holds[held.id] = held
        return Answer(
            201,
            {
                "id": held.id,
                "table": wanted.table,
                "deposit_cents": deposit,
                "expires_at": held.expires_at.isoformat(timespec="seconds"),
            },
        )

    def deposit(self, hold: str, request: Request, body: Deposit) -> Answer:
        """Take the deposit for a hold."""
        held = self._standing(hold)
        if body.amount_cents != held.deposit_cents:
            raise Refusal(
                422,
                "Wrong deposit",
                f"The deposit is {held.deposit_cents} cents, not {body.amount_cents}.",
            )
        held.paid = self._books.carried_out(request, "deposit", _identity(held.wanted))
        return Answer(201, held.receipt())

    def find_deposit(self, hold: str) -> Answer:
        """The deposit of a hold, if it has been paid."""
        held = self._known(hold)
        return Answer(200, {"paid": held.paid is not None, **(held.receipt() if held.paid else {})})

    def confirm(self, hold: str, request: Request, body: Confirm) -> Answer:
        """Turn a hold into a booking."""
        held = self._standing(hold)
        if held.deposit_cents and held.paid is None:
            raise Refusal(409, "Deposit missing", f"{held.deposit_cents} cents are to be paid first.")
        held.confirmed = self._books.carried_out(request, "confirm", _identity(held.wanted))
        return Answer(201, {"code": _code("T", held.id, held.confirmed.n), "table": held.wanted.table})

    def cancel(self, hold: str, request: Request, body: Cancel) -> Answer:
        """Give a table back, with its deposit. Once it is given back, asking again changes nothing."""
        held = self._known(hold)
        refunded = held.deposit_cents if held.paid else 0
        if not held.cancelled:
            cancel = self._books.carried_out(request, "cancel", _identity(held.wanted))
            held.cancelled = True
            for effect in (held.effect, held.paid, held.confirmed):
                if effect is not None:
                    self._books.undone(effect, cancel)
        return Answer(200, {"id": held.id, "status": "cancelled", "refunded_cents": refunded})

    def _known(self, hold: str) -> _Held:
        if hold not in self._holds:
            raise Refusal(404, "No such hold", f"There is no hold {hold!r}.")
        return self._holds[hold]

    def _standing(self, hold: str) -> _Held:
        held = self._known(hold)
        if not held.stands():
            raise Refusal(409, "Hold ended", f"{hold} was cancelled or has expired.")
        return held

    @staticmethod
    def _is_bar(table: str) -> bool:
        houses = {"-".join(house.lower().split()) for house in _HOUSES["bar"]}
        return table.split("/")[1:2] != [] and table.split("/")[1] in houses


def _identity(wanted: Hold) -> dict[str, Any]:
    return {
        "reference": wanted.reference,
        "guest": wanted.guest,
        "table": wanted.table,
        "at": wanted.at.isoformat(),
    }


def _code(letter: str, *parts: object) -> str:
    return f"{letter}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:6].upper()}"


def build(chosen: Options, sleep: Sleep = asyncio.sleep) -> Starlette:
    """The service as an ASGI application with books of its own."""
    books = Books("table-stack")
    desk = Desk(books, chosen.delays, chosen.honour_keys, sleep, chosen.busy_every)
    tables = TableStack(books)

    async def search(http: HttpRequest) -> Response:
        return await desk.look(http, "search", Search, tables.search)

    async def hold(http: HttpRequest) -> Response:
        return await desk.act(http, "hold", Hold, tables.hold)

    async def deposit(http: HttpRequest) -> Response:
        name = http.path_params["hold"]
        pay = partial(tables.deposit, name)
        return await desk.act(http, "deposit", Deposit, pay, takes_keys=False)

    async def find_deposit(http: HttpRequest) -> Response:
        name = http.path_params["hold"]
        return await desk.look(http, "find_deposit", FindDeposit, lambda _: tables.find_deposit(name))

    async def confirm(http: HttpRequest) -> Response:
        name = http.path_params["hold"]
        return await desk.act(http, "confirm", Confirm, lambda r, b: tables.confirm(name, r, b))

    async def cancel(http: HttpRequest) -> Response:
        name = http.path_params["hold"]
        return await desk.act(http, "cancel", Cancel, lambda r, b: tables.cancel(name, r, b))

    return Starlette(
        routes=[
            Route("/health", desk.health),
            Route("/books", desk.show_books),
            Route("/books/unanswered", desk.show_unanswered),
            Route("/tables", search),
            Route("/holds", hold, methods=["POST"]),
            Route("/holds/{hold}/deposit", deposit, methods=["POST"]),
            Route("/holds/{hold}/deposit", find_deposit),
            Route("/holds/{hold}/confirm", confirm, methods=["POST"]),
            Route("/holds/{hold}/cancel", cancel, methods=["POST"]),
        ]
    )


def main(arguments: list[str] | None = None) -> int:
    """Run the service; see `--help`."""
    return serve("table-stack", options("table-stack", DELAYS, arguments), build)


if __name__ == "__main__":
    sys.exit(main())
