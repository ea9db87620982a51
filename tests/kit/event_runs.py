"""Events from outside in a world where callers die and repeat; and what must hold of what they start and signal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from baton.core.limits import Limits
from baton.core.log.events import SignalReceived
from baton.errors import EngineFault
from baton.runtime.requests.events import LATER
from baton.runtime.requests.service import Service
from tests.kit.corpus import patiently
from tests.kit.faults import Crash, Plan
from tests.kit.schedule_runs import registered
from tests.kit.virtual_time import run_virtual
from tests.kit.world import TENANT, World

ONCE, EVERY, SIGNAL, GONE = "once", "every", "signal", "gone"
"""The oracles: no more than one saga of a workflow for an event and for a correlation key; none is left out; each saga has its own
event as a signal, once; no event meets a subscription a second time that its workflow has no rules for."""
WRITES = ("create_head", "append", "subscribe", "unsubscribe", "put")
ORDERS = ("A", "B")
KEY = 'correlation_key: "${event.data.order}"'
DOCUMENTS = {
    "ship": "name: ship\nevents: {start: [settled]}\nnodes: {a: {value: 1}}",
    "bill": "name: bill\nevents: {start: [{type: settled, labels: {order: '${event.data.order}'}}]}\nnodes: {a: {value: 1}}",
    "order": f"name: order\nevents: {{start: [{{type: placed, {KEY}}}], signal: [{{type: settled, {KEY}, signal: paid}}]}}\n"
    "nodes: {paid: {wait: {signal: paid}}, rest: {wait: {for: 5s}, after: paid}}\noutput: ${ctx.paid.output.order}",
    "book": f"name: book\nevents: {{start: [{{type: placed, {KEY}}}], signal: [{{type: settled, {KEY}, signal: paid}}]}}\n"
    "nodes: {paid: {wait: {signal: paid}}}",
    "busy": f"name: busy\nevents: {{start: [{{type: opened, {KEY}}}], signal: [{{type: item, {KEY}, signal: item}}]}}\n"
    "nodes: {take: {wait: {signal: item}}, rest: {wait: {for: 1s}, after: take, loop: {while: loop.iteration < 1, max_iterations: 9, back_to: take}}}",
}
BOOK_WITHOUT = "name: book\nnodes: {a: {value: 1}}"
BOOK = (
    DOCUMENTS["book"].replace("signal: paid", "signal: settled"),
    BOOK_WITHOUT,
    BOOK_WITHOUT + "\noutput: 1",
)
"""Later versions of a workflow whose sagas run: with a signal of another name, and without rules. The last comes while events come."""
ITEMS = 2
"""Events at once for a saga that takes one after another, and keeps fewer."""
LATE = "late"
"""A workflow that is registered once, whatever becomes of the request; and the type of its event."""
FICKLE = "fickle"
"""A workflow of which versions with and without a rule for its type are registered at once; what events do is up to the newest."""
EARLY = 6
LEFT = "left"
"""A type of event for which a registration that has died has left a subscription."""
WITHOUT = f"name: {FICKLE}\nnodes: {{a: {{value: 1}}}}"
WITH = WITHOUT + f"\nevents: {{start: [{{type: {FICKLE}, when: event.data.order != 'early'}}]}}"


@dataclass
class Ordeal:
    """One run: what was broken."""

    broken: list[str] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)

    @property
    def oracles(self) -> set[str]:
        return {one.split(":")[0] for one in self.broken}


def event(kind: str, order: str, again: int = 0) -> dict[str, Any]:
    """`again`: another event that says the same."""
    name = f"{kind}-{order}-{again}"
    return {"specversion": "1.0", "id": name, "source": "shop", "type": kind, "data": {"order": order}}


def endure(plan: Plan | None = None, **world: Any) -> Ordeal:
    """Let each event come twice at once, and once more when all is over."""
    ordeal = Ordeal(plan=plan or Plan())
    options: dict[str, Any] = {"skew_ms": 3_000, "timeout_s": 12, "limits": Limits(signals_kept=1), **world}

    async def main() -> None:
        here = World.start(plan=ordeal.plan, **options)
        for document in DOCUMENTS.values():
            await patiently(here, registered(document))
        here.store.subscriptions.subscribe(TENANT, LEFT, "ship", "mia", 1)
        late = f"name: {LATE}\nevents: {{start: [{LATE}]}}\nnodes: {{a: {{value: 1}}}}"
        with suppress(Crash, EngineFault):
            await registered(late)(here.service())
        await patiently(here, registered(WITH))
        at_once = (registered(one) for one in (WITHOUT, WITH + "\noutput: 1"))
        # Rules are not for these; they meet subscriptions whose registration is under way.
        early = (event(FICKLE, "early", again) for again in range(EARLY))
        await asyncio.gather(*(patiently(here, one) for one in at_once), _come_one_by_one(here, *early))
        events = [event("placed", order) for order in ORDERS]
        events += [event("placed", ORDERS[0], 1), event("opened", ORDERS[0])]
        await _come(here, *events, *events)
        settled = [event("settled", order) for order in ORDERS] + [
            event(one, "A") for one in (LATE, FICKLE, LEFT)
        ]
        items = [event("item", ORDERS[0], number) for number in range(ITEMS)]
        *before, last = map(registered, BOOK)
        for one in before:
            await patiently(here, one)
        await asyncio.gather(_come(here, *settled, *settled, *items, *items), patiently(here, last))
        await here.settle()
        await _come(here, *events, *settled)
        await here.settle()
        _look(here, ordeal)

    run_virtual(main())
    return ordeal


async def _come(world: World, *events: dict[str, Any]) -> None:
    await asyncio.gather(*(_come_until_taken(world, one) for one in events))


async def _come_until_taken(world: World, one: dict[str, Any]) -> None:
    while any(done["did"] == LATER for done in await patiently(world, _taking(world, one))):
        await asyncio.sleep(5)


async def _come_one_by_one(world: World, *events: dict[str, Any]) -> None:
    for one in events:
        await _come(world, one)


def _taking(world: World, one: dict[str, Any]) -> Callable[[Service], Awaitable[Any]]:
    async def take(service: Service) -> Any:
        return await service.event_service.take(one)

    return take


def _look(world: World, ordeal: Ordeal) -> None:
    heads = world.log.heads()
    count = {name: sum(head.workflow == name for head in heads) for name in (*DOCUMENTS, LATE, FICKLE)}
    is_there = world.store.definitions.get(TENANT, LATE) is not None
    due = {
        **dict.fromkeys(DOCUMENTS, len(ORDERS)),
        "busy": 1,
        LATE: int(is_there),
        FICKLE: int(_is_heard(world)),
    }
    for name, expected in due.items():
        if count[name] > expected:
            ordeal.broken.append(f"{ONCE}: {count[name]} sagas of {name}, and {expected} are meant")
        if count[name] < expected:
            ordeal.broken.append(f"{EVERY}: {count[name]} sagas of {name}, and {expected} are meant")
    for kind in (FICKLE, LEFT):
        for name, _, version in world.store.subscriptions.subscribed(TENANT, kind, 9):
            newest = world.store.definitions.get(TENANT, name)
            if newest is not None and kind not in newest.types and version <= newest.version:
                text = f"version {newest.version} of {name} has a subscription of {version}"
                ordeal.broken.append(f"{GONE}: {text}")
    for head in heads:
        entries = world.entries(head.ref.id)
        if world.end(head.ref.id) is None:
            ordeal.broken.append(f"{EVERY}: {head.workflow} {head.ref.id} has not ended")
        came = sum(isinstance(one, SignalReceived) for entry in entries for one in entry.events)
        if came != {"order": 1, "book": 1, "busy": ITEMS}.get(head.workflow, 0):
            ordeal.broken.append(f"{SIGNAL}: {head.workflow} {head.ref.id} has {came} signals")


def _is_heard(world: World) -> bool:
    newest = world.store.definitions.get(TENANT, FICKLE)
    return newest is not None and FICKLE in newest.types
