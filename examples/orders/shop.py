"""The services of the shop, in memory. In yours, these are clients of a warehouse, a bank and a courier.

All but the bank know a repeated request by its key. The bank can be asked whether it has taken a payment.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

PRICES = {"tea": 350, "kettle": 4_500, "samovar": 60_000}
"""In cents, by article."""


class OutOfStock(Exception):
    """The warehouse has less than is wanted."""


class CardDeclined(Exception):
    """The bank does not accept the card."""


@dataclass
class Shop:
    """`stock`: pieces by article; `held`: reservations, with article and pieces. `paid` and `refunded`: cents, by payment.
    `parcels`: those that are under way. `letters`: all that were sent, with whom to.
    """

    stock: dict[str, int] = field(default_factory=lambda: dict.fromkeys(PRICES, 20))
    held: dict[str, tuple[str, int]] = field(default_factory=dict)
    paid: dict[str, int] = field(default_factory=dict)
    refunded: list[str] = field(default_factory=list)
    parcels: set[str] = field(default_factory=set)
    letters: list[tuple[str, str]] = field(default_factory=list)
    _answers: dict[str, Any] = field(default_factory=dict)

    async def reserve(self, key: str, article: str, pieces: int) -> str:
        def act() -> str:
            if pieces > (left := self.stock.get(article, 0)):
                raise OutOfStock(f"{pieces} of {article} are wanted, and {left} are there")
            self.stock[article] -= pieces
            self.held[f"r-{key}"] = article, pieces
            return f"r-{key}"

        return str(await self._once(key, act))

    async def release(self, key: str, reserved: str) -> None:
        """Put back what was reserved under a key, if anything was."""

        def act() -> None:
            article, pieces = self.held.pop(f"r-{reserved}", ("", 0))
            if pieces:
                self.stock[article] += pieces

        await self._once(key, act)

    async def charge(self, order: str, card: str, cents: int) -> str:
        """Take the money: again, if it is asked to again."""
        await self.travel()
        if card == "stolen":
            raise CardDeclined("the bank does not accept the card")
        payment = self.book(order, cents)
        await self.travel()
        return payment

    def book(self, order: str, cents: int) -> str:
        payment = f"p-{order}-{len(self.paid) + 1}"
        self.paid[payment] = cents
        return payment

    async def payment_of(self, order: str) -> str:
        """Return the payment for an order, empty if there is none."""
        await self.travel()
        return next((one for one in self.paid if one.startswith(f"p-{order}-")), "")

    async def refund(self, key: str, payment: str) -> None:
        await self._once(key, lambda: self.refunded.append(payment))

    async def ship(self, key: str, address: str) -> str:
        def act() -> str:
            self.parcels.add(f"parcel-{key}")
            return f"parcel-{key}"

        return str(await self._once(key, act))

    async def recall(self, key: str, shipped: str) -> None:
        """Bring back what was shipped under a key, if anything was."""
        await self._once(key, lambda: self.parcels.discard(f"parcel-{shipped}"))

    async def send(self, key: str, to: str, text: str) -> None:
        await self._once(key, lambda: self.letters.append((to, text)))

    async def _once(self, key: str, act: Callable[[], Any]) -> Any:
        """Carry out a request, and answer a repeated one as before."""
        await self.travel()
        if key not in self._answers:
            self._answers[key] = act()
        await self.travel()
        return self._answers[key]

    async def travel(self) -> None:
        """Take the time that a request or an answer is under way."""
        await asyncio.sleep(0.1)


SHOP = Shop()
