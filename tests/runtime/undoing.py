"""Tools whose effects are entries of a ledger, and what undoes them; for tests of undoing."""

from __future__ import annotations

import asyncio
from typing import Any

from msgspec import Struct

from baton import Context, StepFailure, tool
from tests.kit.corpus import start
from tests.kit.world import World


class Ledger(Struct):
    """What is in force, and all that was done, in its order. `broken`: by tool, or by deed, how many of its next calls fail; -1: all."""

    in_force: dict[str, str] = {}
    deeds: list[str] = []
    broken: dict[str, int] = {}
    keys: dict[str, list[str]] = {}

    def begin(self, tool: str, what: str, key: str, code: str = "unavailable") -> None:
        self.deeds.append(f"{tool} {what}")
        self.keys.setdefault(f"{tool} {what}", []).append(key)
        name = f"{tool} {what}" if f"{tool} {what}" in self.broken else tool
        if left := self.broken.get(name, 0):
            self.broken[name] = left - 1 if left > 0 else left
            raise StepFailure(code, f"{tool} is broken", happened=False)


def add_ledger(world: World, ledger: Ledger) -> None:
    """`book` and its inverse `cancel`, by the booking's id; `pay` (once), found by `paid`, and `refund`; `mail`, which nothing undoes;
    `fail` and `gone`, which fail.
    """

    @tool("trip.book", undo="trip.cancel", registry=world.registry)
    async def book(what: str, context: Context, seconds: float = 0.0) -> dict[str, str]:
        await asyncio.sleep(seconds)
        key = context.idempotency_key
        if f"b-{key}" not in ledger.in_force:
            ledger.begin("book", what, key)
            ledger.in_force[f"b-{key}"] = what
        return {"id": f"b-{key}"}

    @tool("trip.cancel", registry=world.registry)
    async def cancel(id: str, what: str, context: Context) -> None:
        ledger.begin("cancel", what, context.idempotency_key)
        if id not in ledger.in_force:
            raise StepFailure("not_found", f"there is no booking {id}", kind="permanent")
        del ledger.in_force[id]

    @tool("trip.pay", effect="once", verify="trip.paid", undo="trip.refund", registry=world.registry)
    async def pay(what: str, context: Context, seconds: float = 0.0) -> dict[str, str]:
        ledger.begin("pay", what, context.idempotency_key)
        ledger.in_force[f"p-{context.idempotency_key}"] = what
        await asyncio.sleep(seconds)
        return {"id": f"p-{context.idempotency_key}"}

    @tool("trip.paid", effect="pure", registry=world.registry)
    async def paid(context: Context) -> dict[str, Any]:
        known = f"p-{context.idempotency_key}"
        return {"happened": known in ledger.in_force, "result": {"id": known}}

    @tool("trip.refund", effect="once", registry=world.registry)
    async def refund(id: str, context: Context) -> None:
        ledger.begin("refund", ledger.in_force.get(id, "nothing"), context.idempotency_key)
        del ledger.in_force[id]

    @tool("trip.mail", registry=world.registry)
    async def mail(what: str) -> None:
        ledger.begin("mail", what, "")

    @tool("trip.fail", effect="pure", registry=world.registry)
    async def fail(after: float = 0.0) -> None:
        await asyncio.sleep(after)
        raise StepFailure("sold_out", "nothing is left", kind="permanent")

    @tool("trip.gone", registry=world.registry)
    async def gone() -> None:
        raise StepFailure("not_found", "it does not go any more", happened=False)

    world.tools = world.registry.specs()


async def view_of(world: World, document: str, given: Any = None, settle_s: float = 7_200) -> dict[str, Any]:
    """The saga of the document, once it has come to rest."""
    saga = await start(world, document, given or {}, "w")
    await world.settle(settle_s)
    return await world.queries().show(saga)
