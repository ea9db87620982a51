"""Scenarios that are run only where they are searched for: they take longer, or may end in more than one way."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from functools import partial
from typing import Any

from baton.core.limits import Limits
from baton.errors import BudgetSpent, NotAllowedNow
from baton.runtime.requests.service import Service
from tests.kit.corpus import CORPUS, Scenario, patiently, start
from tests.kit.documents import CHATTER
from tests.kit.links import confirmed
from tests.kit.roles import ask_unless_done
from tests.kit.shared_budget import bargains, family
from tests.kit.shared_limit import THRIFTY
from tests.kit.world import USER, World


async def _start_spender(service: Service, after: float) -> tuple[dict[str, Any], bool]:
    return await service.start("spender", {"after": after}, f"key-{after}")


async def _start_of(service: Service, name: str, given: dict[str, Any], key: str) -> str:
    view, _ = await service.start(name, given, key)
    return str(view["id"])


async def _say(service: Service, saga: str, number: int) -> dict[str, Any]:
    return await service.signal(saga, "word", number, f"w{number}")


async def _spenders(world: World) -> str:
    """Sagas of one user that want to spend on one day twice as much as they may, and end on the next."""
    document = """
name: spender
nodes:
  wait: {tool: measure, with: {text: a, seconds: '${input.after}'}}
  one: {tool: purchase, after: wait, with: {seconds: 2.4}}
  two: {tool: purchase, after: one, with: {seconds: 1.9}}
"""
    await patiently(world, lambda service: service.register(document, json_only=False))
    world.keeps_to_what_it_declares = True
    sagas = []
    for number in range(5):
        with suppress(BudgetSpent):  # a caller who was not heard at once may come too late
            view, _ = await patiently(world, partial(_start_spender, after=0.7 * number))
            sagas.append(str(view["id"]))
    await asyncio.sleep(300)
    world.reconciler_gap_s = 1_800
    await asyncio.sleep(3 * 86_400)  # what dies has spent in vain
    return sagas[0]


async def _tenants(world: World) -> str:
    """Sagas of many users that want to spend on one day twice as much as their tenant may, and end on the next."""
    document = """
name: spender
nodes:
  wait: {tool: measure, with: {text: a, seconds: '${input.after}'}}
  one: {tool: purchase, after: wait, with: {seconds: 2.4}}
  two: {tool: purchase, after: wait, with: {seconds: 1.9}}
  three: {tool: purchase, after: [one, two], with: {seconds: 0.3}}
"""
    await patiently(world, lambda service: service.register(document, json_only=False))
    world.keeps_to_what_it_declares = True
    world.runaway = 20_000  # what a dead invocation has drawn keeps others waiting until the day is over
    sagas = []
    for number in range(6):
        user = (USER, "bob", "eve")[number % 3]
        with suppress(BudgetSpent):
            begin = partial(_start_spender, after=0.7 * number)
            view, _ = await patiently(world, begin, user=user)
            sagas.append(str(view["id"]))
    await asyncio.sleep(300)
    world.reconciler_gap_s = 1_800
    await asyncio.sleep(3 * 86_400)
    return sagas[0]


async def _chatter(world: World) -> str:
    """Two callers who speak all the time, each at a pace of its own, through whatever happens to the saga."""
    saga = await start(world, CHATTER, {}, "chatter")

    async def speak(first: int, every_s: float) -> None:
        for number in range(first, first + 24):
            with suppress(NotAllowedNow):
                await patiently(world, partial(_say, saga=saga, number=number))
            await asyncio.sleep(every_s)

    await asyncio.gather(speak(0, 0.41), speak(100, 0.67))
    await patiently(world, lambda service: ask_unless_done(service.signal(saga, "enough", None, "e")))
    return saga


async def _stubborn(world: World) -> str:
    return await start(world, "name: w\nnodes: {a: {tool: insist}}", {}, "w")


async def _wired(world: World) -> str:
    return await start(world, "name: w\nnodes: {a: {tool: wire}}", {}, "w")


HELD = """
name: held
nodes:
  a: {tool: work, with: {n: '${input.n}', seconds: '${input.seconds}'}}
  b: {tool: work, after: a, with: {n: '${ctx.a.output.n}', seconds: '${input.seconds}'}}
output: '${ctx.b.output.n}'
"""
TABLE = """
name: table
nodes: {book: {tool: take_table, with: {table: window, seconds: 14}, timeout: 50s}}
output: '${ctx.book.output.receipt}'
"""


async def _held(world: World) -> str:
    """Invocations that last far longer than a lease. One of them also has a saga that ends soon."""
    world.timeout_s = 60
    await patiently(world, lambda service: service.register(HELD, json_only=False))
    begin = partial(_start_of, name="held")
    given = {"n": 0, "seconds": 11}, {"n": 9, "seconds": 0.2}
    starts = (partial(begin, given=one, key=f"key-{one['n']}") for one in given)
    return (await asyncio.gather(*(patiently(world, one) for one in starts)))[0]


async def _tables(world: World) -> str:
    """Two sagas that want one table, which takes longer than a lease to book."""
    world.timeout_s = 60
    await patiently(world, lambda service: service.register(TABLE, json_only=False))
    views = [
        await patiently(world, partial(_start_of, name="table", given={}, key=f"key-{number}"))
        for number in range(2)
    ]
    return views[0]


_PURSE = partial(family, start=start, patiently=patiently, forks=False)
_BARGAINS = partial(bargains, start=start, patiently=patiently)
HARDER = (
    Scenario("held", _held, limits=Limits(lease_ms=4_000)),
    Scenario("tables", _tables, limits=Limits(lease_ms=4_000)),
    Scenario("spenders", _spenders, limits=Limits(user_day_budget_usd="0.50")),
    Scenario("tenants", _tenants, limits=Limits(user_day_budget_usd="0.50", tenant_day_budget_usd="0.80")),
    Scenario("chatter", _chatter, same_steps=False),
    Scenario("stubborn", _stubborn, "parked", has_open_end=True),
    Scenario("wired", _wired),
    *(
        Scenario(what, partial(drive, start=start, patiently=patiently), "failed", same_steps=False)
        for what, drive in THRIFTY.items()
    ),
    Scenario("purse", _PURSE, same_steps=False, limits=Limits(saga_budget_usd="0.15")),
    Scenario("bargains", _BARGAINS, limits=Limits(saga_budget_usd="0.15", user_day_budget_usd="0")),
    Scenario("confirmed", partial(confirmed, start=start, patiently=patiently), has_open_end=True),
)
ALL = (*CORPUS, *HARDER)
