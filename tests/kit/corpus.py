"""The workflows of the simulation, one per shape of a saga's life, with the outside services they act on.

Each `Scenario` drives one saga through the API as a patient client would: an answer that did not come is
asked for again with the same key.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeVar, cast

from baton import Context, Key, tool
from baton.core.limits import Limits
from baton.errors import BudgetSpent, EngineFault, NotAllowedNow
from baton.runtime.service import Service
from baton.tools.define import Registry
from tests.kit.documents import (
    BIG,
    CROWD,
    FAILING,
    LIMITED,
    LONG_WAIT,
    LOSERS,
    LOSERS_AT_THE_END,
    PARENT,
    ROUTES,
    ROWS,
    WAITING,
    chain_of,
    fan_of,
)
from tests.kit.faults import Crash
from tests.kit.mishaps import EFFECTS, MISHAPS, add_mishaps, answering, with_books
from tests.kit.process import pause
from tests.kit.world import World

T = TypeVar("T")


@dataclass
class Books:
    """An outside service that honours idempotency keys: what it was asked, and what it did."""

    asked: list[str] = field(default_factory=list)
    done: dict[str, Any] = field(default_factory=dict)
    happened: list[str] = field(default_factory=list)
    """What a service did that honours no keys: every call of it is a deed."""
    calls: Counter[str] = field(default_factory=Counter)

    def act(self, key: str, what: Any) -> Any:
        self.asked.append(key)
        return self.done.setdefault(key, what)


class _Open:
    """The books of the world that is running now: what a tool does, it does there."""

    def __init__(self) -> None:
        self.now = Books()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.now, name)


_OPEN = _Open()


def make_registry(books: Books) -> Registry:
    """The tools of the corpus, acting on `books`: one world at a time, for to declare them takes as long as to run one."""
    _OPEN.now = books
    registry = Registry()
    for one in _declared().values():
        registry.add(one)
    return registry


@lru_cache(maxsize=1)
def _declared() -> Registry:
    books = cast("Books", _OPEN)
    registry = Registry()

    @tool("work", registry=registry, timeout="30s")
    async def work(n: int, context: Context, seconds: float = 0.4) -> dict[str, int]:
        await pause(seconds)
        books.act(context.idempotency_key, [context.node, n])
        return {"n": n + 1}

    @tool("add", registry=registry, effect="pure")
    async def add(numbers: list[int]) -> dict[str, int]:
        await pause(0.05)
        return {"n": sum(numbers)}

    @tool("fill", registry=registry)
    async def fill(size: int, context: Context) -> dict[str, str]:
        await pause(0.3)
        books.act(context.idempotency_key, [context.node, size])
        return {"text": "x" * size}

    @tool("seat", registry=registry)
    async def seat(guest: str, context: Context) -> str:
        await pause(0.2)
        context.put_row("guests", guest, {"seated_by": context.node, "times": 1})
        return guest

    @tool("measure", registry=registry, effect="pure")
    async def measure(text: str, seconds: float = 0) -> dict[str, int]:
        await pause(seconds)
        return {"n": len(text)}

    @tool("die", registry=registry, cost_usd="0.01")
    async def die() -> None:
        """Takes its process down with it."""
        await pause(0.1)
        raise Crash

    @tool("hang", registry=registry, timeout="10m")
    async def hang() -> None:
        await pause(3_600)

    @tool("refuse", registry=registry, effect="pure")
    async def refuse() -> None:
        await pause(0.1)
        raise ValueError("no table is free")

    _add_spenders(registry, books)
    _add_haulers(registry, books)
    add_mishaps(registry, books)
    return registry


def _add_spenders(registry: Registry, books: Books) -> None:
    """Tools that cost something, and one whose effect others may repeat after a while."""

    @tool("meter", registry=registry)
    async def meter(begins: float, context: Context) -> None:
        """Spends a little every other moment, for seconds."""
        await pause(begins)
        for _ in range(5_000):
            context.spend("0.0001")
            await pause(0.0007)

    @tool("buy", registry=registry, cost_usd="0.10")
    async def buy(seconds: float, context: Context) -> None:
        """Spends all that it declares."""
        await pause(seconds)
        context.spend("0.10")

    @tool(
        "rent",
        registry=registry,
        effect="once",
        verify="find_rent",
        key=Key.business("stall", "stall", keep="5s"),
    )
    async def rent(stall: str) -> dict[str, str]:
        """Others may rent it again when five seconds are over."""
        await pause(0.2, stands_still=False)
        books.happened.append(f"rent {stall}")
        return {"receipt": f"rent {stall}"}

    @tool("find_rent", registry=registry, effect="pure")
    async def find_rent(stall: str) -> dict[str, Any]:
        there = f"rent {stall}" in books.happened
        return {"happened": there, "result": {"receipt": f"rent {stall}"} if there else None}


def _add_haulers(registry: Registry, books: Books) -> None:
    """An effect that takes so long that it is under way when its invocation ends."""

    @tool("haul", registry=registry, effect="once", verify="find_haul", timeout="5s")
    async def haul(load: str) -> dict[str, str]:
        await pause(4.0, stands_still=False)
        books.happened.append(f"haul {load}")
        await pause(0.1, stands_still=False)
        return {"receipt": f"haul {load}"}

    @tool("find_haul", registry=registry, effect="pure")
    async def find_haul(load: str) -> dict[str, Any]:
        there = f"haul {load}" in books.happened
        return {"happened": there, "result": {"receipt": f"haul {load}"} if there else None}


async def patiently(world: World, use: Callable[[Service], Awaitable[T]]) -> T:
    """Ask until there is an answer: a client that repeats with the same key."""
    return await _until_answered(lambda: use(world.service()))


async def shown(world: World, saga: str) -> dict[str, Any]:
    """Look until there is an answer."""
    return await _until_answered(lambda: world.queries().show(saga))


async def _until_answered(ask: Callable[[], Awaitable[T]]) -> T:
    for _ in range(40):
        try:
            return await ask()
        except (Crash, EngineFault):
            await asyncio.sleep(0.5)
    raise AssertionError("the API never answered")


@dataclass(frozen=True)
class Scenario:
    """A workflow's life. `drive` starts the saga and does all that happens to it; it returns its id.

    `same_steps` False: which steps got done before the end depends on time, by design.
    """

    name: str
    drive: Callable[[World], Awaitable[str]]
    expected: str = "completed"
    same_steps: bool = True
    limits: Limits = field(default_factory=Limits)


async def start(world: World, document: str, given: Any, name: str) -> str:
    await patiently(world, lambda service: service.register(document, json_only=False))
    view, _ = await patiently(world, lambda service: service.start(name, given, "key-1"))
    return str(view["id"])


async def _chain(world: World) -> str:
    return await start(world, chain_of(8, 1.1), {"n": 0}, "chain")


async def _fan(world: World) -> str:
    return await start(world, fan_of(6), {}, "fan")


async def _waiting(world: World) -> str:
    saga = await start(world, WAITING, {}, "waiting")
    await asyncio.sleep(30)
    await patiently(world, lambda service: service.signal(saga, "answer", {"yes": True}, "sig-1"))
    return saga


async def _early_signal(world: World) -> str:
    saga = await start(world, WAITING, {}, "waiting")
    await patiently(world, lambda service: service.signal(saga, "answer", {"yes": True}, "sig-1"))
    await patiently(world, lambda service: service.signal(saga, "answer", {"yes": True}, "sig-1"))
    return saga


async def _long_wait(world: World) -> str:
    return await start(world, LONG_WAIT, {}, "long-wait")


async def _big(world: World) -> str:
    return await start(world, BIG, {"note": "y" * 20_000}, "big")


async def _parent(world: World) -> str:
    child = chain_of(2)
    await patiently(world, lambda service: service.register(child, json_only=False))
    return await start(world, PARENT, {}, "parent")


async def _signal_then_end(world: World) -> str:
    document = "name: w\nnodes: {go: {wait: {signal: go}}}"
    saga = await start(world, document, {}, "w")
    for _ in range(2):
        await patiently(world, lambda service: service.signal(saga, "go", 1, "k"))
        await asyncio.sleep(5)
    return saga


async def _killer(world: World) -> str:
    return await start(world, "name: w\nnodes: {a: {tool: die}}", {}, "w")


async def _overlong(world: World) -> str:
    return await start(world, "name: w\nnodes: {a: {tool: hang}}", {}, "w")


async def _resumed(world: World) -> str:
    saga = await _killer(world)
    while (await shown(world, saga))["status"] != "parked" and world.end(saga) is None:
        await asyncio.sleep(30)
    await patiently(world, lambda service: _ask_unless_done(service.resume(saga)))
    await asyncio.sleep(400)  # longer than the sweep
    for _ in range(20):  # and as long as faults on top of it take: the head says `parked` all the time
        if (await shown(world, saga))["status"] == "parked":
            break
        await asyncio.sleep(30)
    return saga


async def _ask_unless_done(asked: Awaitable[T]) -> None:
    """A repeated request whose first answer was lost is told that it cannot be done any more."""
    with suppress(NotAllowedNow):
        await asked


async def _parent_cancelled(world: World) -> str:
    await patiently(
        world, lambda service: service.register("name: slow\nnodes: {a: {wait: {for: 1h}}}", json_only=False)
    )
    saga = await start(world, "name: parent\nnodes: {child: {workflow: slow}}", {}, "parent")
    await asyncio.sleep(20)
    await _cancel(world, saga, 0)
    return saga


async def _parent_forked(world: World) -> str:
    await patiently(
        world, lambda service: service.register("name: slow\nnodes: {a: {wait: {for: 10m}}}", json_only=False)
    )
    document = "name: parent\nnodes:\n  go: {wait: {signal: go}}\n  child: {workflow: slow, after: go}\n"
    saga = await start(world, document, {}, "parent")
    await asyncio.sleep(20)
    await patiently(world, lambda service: service.signal(saga, "go", None, "k"))
    await asyncio.sleep(20)
    await patiently(world, lambda service: service.fork(saga, 2, "before the child", "f"))
    await asyncio.sleep(20)
    await patiently(world, lambda service: service.signal(saga, "go", None, "k2"))
    return saga


async def _rows(world: World) -> str:
    return await start(world, ROWS, {}, "rows")


async def _routes(world: World) -> str:
    await patiently(
        world, lambda service: service.register("name: slow\nnodes: {a: {wait: {for: 10m}}}", json_only=False)
    )
    return await start(world, ROUTES, {}, "routes")


async def _limited(world: World) -> str:
    return await start(world, LIMITED, {}, "limited")


async def _failing(world: World) -> str:
    return await start(world, FAILING, {}, "failing")


async def _cancelled(world: World) -> str:
    saga = await start(world, WAITING, {}, "waiting")
    await asyncio.sleep(10)
    await _cancel(world, saga, 5_000)
    return saga


async def _cancel(world: World, saga: str, grace_ms: int) -> None:
    try:
        await patiently(world, lambda service: service.cancel(saga, "changed my mind", grace_ms))
    except NotAllowedNow:
        return


async def _forked(world: World) -> str:
    saga = await start(world, chain_of(3), {"n": 0}, "chain")
    while world.end(saga) is None:
        await asyncio.sleep(20)
    branch = 0
    while branch == 0:  # a repeated fork would be a second one, so look before asking again
        try:
            await world.service().fork(saga, 2, "again from the first step")
        except (Crash, EngineFault):
            await asyncio.sleep(0.5)
        branch = (await shown(world, saga))["branch"]
    return saga


async def _effects(world: World) -> str:
    saga = await start(world, EFFECTS, {}, "effects")
    await answering(world, saga, shown, with_books(world.books))
    return saga


async def _mishaps(world: World) -> str:
    saga = await start(world, MISHAPS, {}, "mishaps")
    await answering(world, saga, shown, with_books(world.books))
    return saga


async def _losers(world: World) -> str:
    return await start(world, LOSERS, {}, "losers")


async def _losers_at_the_end(world: World) -> str:
    return await start(world, LOSERS_AT_THE_END, {}, "losers")


async def _rented(world: World) -> str:
    return await start(world, "name: w\nnodes: {a: {tool: rent, with: {stall: corner}}}", {}, "w")


async def _asked(world: World) -> str:
    """A person who answers at once."""
    saga = await start(world, "name: w\nnodes: {a: {tool: send, with: {n: 3}}}", {}, "w")
    await answering(world, saga, shown, with_books(world.books), every_s=0.3)
    return saga


async def _crowd(world: World) -> str:
    """Six callers who speak at the same moment, three times over."""
    saga = await start(world, CROWD, {}, "crowd")

    async def say(word: str) -> None:
        with suppress(NotAllowedNow):  # a repetition that comes when all was heard
            await patiently(world, lambda service: service.signal(saga, "word", word, word))

    for turn in range(3):
        await asyncio.gather(*(say(f"{turn}-{caller}") for caller in range(6)))
        await asyncio.sleep(2)
    return saga


async def _hauled(world: World) -> str:
    document = """
name: w
nodes:
  wait: {tool: work, with: {n: 1, seconds: 1}}
  haul: {tool: haul, after: wait, with: {load: sand}}
"""
    return await start(world, document, {}, "w")


async def _spenders(world: World) -> str:
    """Sagas of one user that want to spend on one day twice as much as they may, and end on the next."""
    document = """
name: spender
nodes:
  wait: {tool: measure, with: {text: a, seconds: '${input.after}'}}
  one: {tool: buy, after: wait, with: {seconds: 2.4}}
  two: {tool: buy, after: one, with: {seconds: 1.9}}
"""
    await patiently(world, lambda service: service.register(document, json_only=False))
    world.keeps_to_what_it_declares = True
    sagas = []
    for number in range(5):
        with suppress(BudgetSpent):  # a caller who was not heard at once may come too late
            given = {"after": 0.7 * number}
            view, _ = await patiently(world, lambda service, g=given: service.start("spender", g, str(g)))
            sagas.append(str(view["id"]))
    await asyncio.sleep(300)
    world.reconciler_gap_s = 1_800
    await asyncio.sleep(3 * 86_400)  # what dies has spent in vain
    return sagas[0]


CORPUS = (
    Scenario("chain", _chain),
    Scenario("fan", _fan),
    Scenario("waiting", _waiting),
    Scenario("early-signal", _early_signal),
    Scenario("long-wait", _long_wait),
    Scenario("big", _big),
    Scenario("parent", _parent),
    Scenario("rows", _rows),
    Scenario("snapshots", _chain, limits=Limits(snapshot_tail_bytes=300)),
    Scenario("signal-then-end", _signal_then_end),
    Scenario("killer", _killer, "parked"),
    Scenario("resumed", _resumed, "parked"),
    Scenario("overlong", _overlong, "parked"),
    Scenario("parent-cancelled", _parent_cancelled, "cancelled"),
    Scenario("parent-forked", _parent_forked),
    Scenario("routes", _routes),
    Scenario("limited", _limited, "failed"),
    Scenario("failing", _failing, "failed", same_steps=False),
    Scenario("cancelled", _cancelled, "cancelled", same_steps=False),
    Scenario("forked", _forked),
    Scenario("effects", _effects),
    Scenario("mishaps", _mishaps),
    Scenario("losers", _losers, same_steps=False),
    Scenario("losers-at-the-end", _losers_at_the_end, same_steps=False),
    Scenario("rented", _rented),
    Scenario("asked", _asked),
    Scenario("crowd", _crowd),
    Scenario("hauled", _hauled),
    Scenario("spenders", _spenders, limits=Limits(user_day_budget_usd="0.50")),
)
