"""The tables of every city, and who has them: what table-stack does. Over HTTP it is in table_stack.

A hold that is not confirmed ends by itself after 15 minutes.
"""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any

import pydantic

from examples.services.books import Books, Effect, Request
from examples.services.desk import Answer, Refusal
from examples.services.faults import Faults, place_of

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


class GiveBack(pydantic.BaseModel):
    """`POST /references/{reference}/give-back`: all that the guest has under a reference, whatever its id."""

    guest: Text
    reason: str = ""


class Waitlist(pydantic.BaseModel):
    """`POST /waitlist`: for any table of a city at a time."""

    reference: Text
    guest: Text
    city: Text
    party: Annotated[int, pydantic.Field(ge=1, le=12)]
    at: datetime


class Leave(pydantic.BaseModel):
    """`POST /waitlist/{id}/leave`: nothing to say."""


@dataclass(slots=True)
class _Waiting:
    id: str
    wanted: Waitlist
    effect: Effect
    has_left: bool = False


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

    def __init__(self, books: Books, faults: Faults) -> None:
        self._books = books
        self._faults = faults
        self._holds: dict[str, _Held] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._given_back: set[tuple[str, str]] = set()

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
            and not self._is_full("search", table, query.at)
        ]
        tables.sort(key=lambda table: (table["seats"], table["id"]))
        return Answer(200, {"tables": tables})

    def hold(self, request: Request, wanted: Hold) -> Answer:
        """Keep a table for 15 minutes. Refused when another guest has it.

        The same guest with the same reference is not refused: that this is not asked for twice is
        the caller's business, and the books show whether it was. What comes after the guest has given all back is late.
        """
        if (wanted.reference, wanted.guest) in self._given_back:
            raise Refusal(409, "Given back", f"{wanted.reference} has given back all that it had.")
        if self._is_full("hold", wanted.table, wanted.at):
            raise Refusal(409, "Table taken", f"{wanted.table} was taken a moment ago.")
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
                "house": _house(wanted.table),
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
        refunded = self._cancelled(held, request)
        return Answer(200, {"id": held.id, "status": "cancelled", "refunded_cents": refunded})

    def give_back(self, reference: str, request: Request, body: GiveBack) -> Answer:
        """Give back every table that a guest has under a reference, and take no more for it.

        For a caller that does not know what it has, because an answer never came.
        """
        self._given_back.add((reference, body.guest))
        mine = [
            held
            for held in self._holds.values()
            if (held.wanted.reference, held.wanted.guest) == (reference, body.guest) and not held.cancelled
        ]
        refunded = sum(self._cancelled(held, request) for held in mine)
        return Answer(200, {"holds": [held.id for held in mine], "refunded_cents": refunded})

    def join(self, request: Request, wanted: Waitlist) -> Answer:
        """Put a guest on the waitlist of a city and a time."""
        same = [
            one
            for one in self._waiting.values()
            if (one.wanted.city, one.wanted.at) == (wanted.city, wanted.at)
        ]
        identity = wanted.model_dump(mode="json", exclude={"party"})
        waiting = _Waiting(
            f"wait-{len(self._waiting) + 1}", wanted, self._books.carried_out(request, "waitlist", identity)
        )
        self._waiting[waiting.id] = waiting
        return Answer(201, {"id": waiting.id, "position": 1 + sum(not one.has_left for one in same)})

    def leave(self, name: str, request: Request, body: Leave) -> Answer:
        """Take a guest off a waitlist. Once it is done, asking again changes nothing."""
        if name not in self._waiting:
            raise Refusal(404, "No such entry", f"There is no entry {name!r} of a waitlist.")
        waiting = self._waiting[name]
        if not waiting.has_left:
            waiting.has_left = True
            identity = dict(waiting.effect.identity)
            self._books.undone(waiting.effect, self._books.carried_out(request, "cancel", identity))
        return Answer(200, {"id": name, "status": "cancelled"})

    def place(self, hold: str) -> str:
        """The table of a hold, for the faults that it meets; empty for a hold that is none."""
        return self._holds[hold].wanted.table if hold in self._holds else ""

    def _cancelled(self, held: _Held, request: Request) -> int:
        """What is refunded by the end of a hold, also where it has ended before."""
        if not held.cancelled:
            cancel = self._books.carried_out(request, "cancel", _identity(held.wanted))
            held.cancelled = True
            for effect in (held.effect, held.paid, held.confirmed):
                if effect is not None:
                    self._books.undone(effect, cancel)
        return held.deposit_cents if held.paid else 0

    def _is_full(self, operation: str, table: str, at: datetime) -> bool:
        return self._faults.find(operation, table, at, ["full"]) is not None

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


def _house(table: str) -> str:
    """The name of the house whose table it is."""
    known = {place_of(house): house for houses in _HOUSES.values() for house in houses}
    return known.get(table.split("/")[1] if "/" in table else "", "")


def _identity(wanted: Hold) -> dict[str, Any]:
    return {
        "reference": wanted.reference,
        "guest": wanted.guest,
        "table": wanted.table,
        "at": wanted.at.isoformat(),
    }


def _code(letter: str, *parts: object) -> str:
    return f"{letter}-{hashlib.sha256(repr(parts).encode()).hexdigest()[:6].upper()}"
