"""Orders of examples/orders in the simulation: one that is fulfilled, one that no courier takes, one that is cancelled."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from baton import StepFailure
from baton.core.log import events as ev
from baton.errors import NotAllowedNow
from baton.tools.functions.define import document_of
from baton.tools.standard import load_app
from examples.orders import shop
from tests.kit.process import pause
from tests.kit.simulated_models import attended
from tests.kit.virtual_time import until_something_happens

if TYPE_CHECKING:
    from tests.kit.toolbox import Books
    from tests.kit.world import World

ORDERS = "orders"
WORKFLOW = "fulfil-order"
ORDER = {
    "id": "o1",
    "customer": "ann",
    "address": "1 High St",
    "card": "good",
    "items": [{"article": "samovar", "pieces": 1}, {"article": "tea", "pieces": 3}],
}


class SimulatedShop(shop.Shop):
    """A shop whose clients may die while a request is under way. `is_on_strike`: no courier takes a parcel."""

    def __init__(self, books: Books, *, is_on_strike: bool) -> None:
        super().__init__()
        self._books, self._is_on_strike = books, is_on_strike

    async def travel(self) -> None:
        await pause(0.1, stands_still=False)

    def book(self, order: str, cents: int) -> str:
        self._books.do(f"charge {order}")
        return super().book(order, cents)

    async def ship(self, key: str, address: str) -> str:
        if self._is_on_strike:
            await self.travel()
            raise StepFailure("no_courier", "the strike goes on", kind="permanent")
        return await super().ship(key, address)


async def _ordered(world: World, start: Callable[..., Any], *, is_on_strike: bool) -> str:
    shop.SHOP = world.books.shop = SimulatedShop(world.books, is_on_strike=is_on_strike)
    for name, one in load_app("examples.orders").items():
        if name == WORKFLOW or name.startswith("orders."):
            world.registry.add(one)
    world.tools = world.registry.specs()
    return str(
        await start(world, json.dumps(document_of(world.registry[WORKFLOW])), {"order": ORDER}, WORKFLOW)
    )


async def _pack(world: World, saga: str, patiently: Callable[..., Any]) -> None:
    """The warehouse packs what it is asked to pack."""
    while not _is_awaited(world, saga):
        if world.end(saga) is not None:
            return
        await until_something_happens(1)
    with suppress(NotAllowedNow):  # it has ended
        await patiently(world, lambda service: service.signal(saga, "packed", {"by": "eve"}, "packed-1"))


def _is_awaited(world: World, saga: str) -> bool:
    return any(isinstance(event, ev.WaitOpened) and event.signal == "packed" for event in world.events(saga))


async def order(world: World, *, start: Any, patiently: Any, is_on_strike: bool = False) -> str:
    """A large order, which sales approve and the warehouse packs."""
    saga = await _ordered(world, start, is_on_strike=is_on_strike)
    world.spawn(_pack(world, saga, patiently))
    return await attended(world, saga, patiently)


async def order_cancelled(world: World, *, start: Any, patiently: Any) -> str:
    """An order that its customer no longer wants when it is paid."""
    saga = await _ordered(world, start, is_on_strike=False)

    async def cancel() -> None:
        while not _is_awaited(world, saga):
            await until_something_happens(1)
        with suppress(NotAllowedNow):  # it was heard before
            await patiently(world, lambda service: service.cancel(saga, "changed my mind", 0, undo=True))

    world.spawn(cancel())
    return await attended(world, saga, patiently)


def of_orders(world: World, logs: Mapping[str, list[ev.Entry]]) -> Iterator[str]:
    """An order is paid, packed and sent; or nothing is paid, held or under way."""
    done: SimulatedShop | None = world.books.shop
    if (
        done is None or world.troubles is not None
    ):  # a tool that fails at random may say that it has not acted
        return
    for saga, entries in logs.items():
        ended = entries[-1].events[-1] if entries else None
        if not isinstance(ended, ev.SagaEnded):
            continue
        count = len(done.held), len(done.paid), len(done.parcels), len(done.refunded)
        if ended.status == "completed" and count != (2, 1, 1, 0):
            yield f"{saga} is fulfilled, and of reservations, payments, parcels and refunds there are {count}"
        if ended.status != "completed":
            if done.held or done.parcels or done.stock != shop.Shop().stock:
                yield f"{saga} is undone, and there are {done.held} and {done.parcels}"
            if done.refunded != [*done.paid]:
                yield f"{saga} is undone, {[*done.paid]} is paid and {done.refunded} refunded"


OF_ORDERS: Mapping[str, Any] = {
    "order": (order, "completed"),
    "order-unsent": (partial(order, is_on_strike=True), "rolled_back"),
    "order-cancelled": (order_cancelled, "rolled_back"),
}
