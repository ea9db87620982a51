"""The tools of the corpus, with the outside services they act on.

Tools that fail on purpose are in mishaps.py.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, cast

from baton import Context, Key, Risk, StepFailure, tool
from baton.tools.define import Registry
from tests.kit.assisted_functions import add_assisted
from tests.kit.drawn_functions import add_drawn
from tests.kit.external_work import Jobs, add_handing
from tests.kit.faults import Crash
from tests.kit.function_members import add_members
from tests.kit.function_scenarios import add_functions
from tests.kit.journal_scenarios import UnitDone, add_journals
from tests.kit.mishaps import add_misbehaving, add_mishaps
from tests.kit.process import RUNS_IN, pause
from tests.kit.remote_tools import add_remote
from tests.kit.roles import note
from tests.kit.undoable_tools import Loans, add_lending
from tests.kit.virtual_time import EPOCH

MOST_REMITTED = 500


@dataclass
class Books:
    """An outside service that honours idempotency keys: what it was asked, and what it did."""

    asked: list[str] = field(default_factory=list)
    done: dict[str, Any] = field(default_factory=dict)
    happened: list[str] = field(default_factory=list)
    """What a service did that honours no keys: every call of it is a deed."""
    calls: Counter[str] = field(default_factory=Counter)
    jobs: Jobs = field(default_factory=Jobs)
    units: list[UnitDone] = field(default_factory=list)
    loans: Loans = field(default_factory=Loans)
    shop: Any = None
    """Of order_scenarios.py."""

    def do(self, what: str, until_ms: int | None = None) -> None:
        """What a service does that honours no keys, unless it is told until when it may. Raises `StepFailure`.

        A process that is killed asks for nothing, not even in a tool that does not hear that it is cancelled.
        """
        if (process := RUNS_IN.get()) is not None:
            process.check()
        if until_ms is not None and EPOCH + asyncio.get_running_loop().time() * 1_000 >= until_ms:
            raise StepFailure("timeout", "it is too late", happened=False)
        self.happened.append(what)
        note(what, is_told_until_when=until_ms is not None)

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
    registry._tools.update(_declared())  # they were checked when they were declared
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
        if (process := RUNS_IN.get()) is not None:
            process.die()
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
    _add_remittances(registry, books)
    add_mishaps(registry, books)
    add_misbehaving(registry)
    add_handing(registry, books)
    add_lending(registry, books)
    add_functions(registry)
    add_journals(registry, books)
    add_drawn(registry)
    add_assisted(registry, books)
    add_members(registry)
    add_remote(registry, books)
    return registry


def _add_spenders(registry: Registry, books: Books) -> None:
    """Tools that cost something, and one whose effect others may repeat after a while."""

    @tool("meter", registry=registry)
    async def meter(begins: float, context: Context) -> None:
        """Spends a little every other moment, for seconds."""
        await pause(begins)
        for _ in range(2_500):
            context.spend("0.0002")
            await pause(0.0014)  # less than a call takes, so that each of them finds more spent

    @tool("purchase", registry=registry, cost_usd="0.10")
    async def purchase(seconds: float, context: Context) -> None:
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
        books.do(f"rent {stall}")
        return {"receipt": f"rent {stall}"}

    @tool("find_rent", registry=registry, effect="pure")
    async def find_rent(stall: str) -> dict[str, Any]:
        there = f"rent {stall}" in books.happened
        return {"happened": there, "result": {"receipt": f"rent {stall}"} if there else None}


def _add_remittances(registry: Registry, books: Books) -> None:
    """A payment that a person approves first."""

    @tool(
        "remit",
        registry=registry,
        effect="once",
        verify="find_remit",
        risk=Risk(action="payment", amount="amount", currency_is="USD"),
    )
    async def remit(amount: int) -> dict[str, str]:
        """Too much is declined."""
        await pause(0.2, stands_still=False)
        if amount > MOST_REMITTED:
            raise StepFailure("declined", "too much", kind="recoverable", happened=False)
        books.do(f"remit {amount}")
        await pause(0.2, stands_still=False)
        return {"receipt": f"remit {amount}"}

    @tool("find_remit", registry=registry, effect="pure")
    async def find_remit(amount: int) -> dict[str, Any]:
        there = f"remit {amount}" in books.happened
        return {"happened": there, "result": {"receipt": f"remit {amount}"} if there else None}


def _add_haulers(registry: Registry, books: Books) -> None:
    """An effect that takes so long that it is under way when its invocation ends."""

    @tool("haul", registry=registry, effect="once", verify="find_haul", timeout="5s")
    async def haul(load: str) -> dict[str, str]:
        await pause(4.0, stands_still=False)
        books.do(f"haul {load}")
        await pause(0.1, stands_still=False)
        return {"receipt": f"haul {load}"}

    @tool("insist", registry=registry, effect="once", verify="find_insisted", timeout="5s")
    async def insist() -> dict[str, str]:
        """Lets nothing else of its process run: it cannot be cancelled, only killed."""
        loop, process = asyncio.get_running_loop(), RUNS_IN.get()
        end = loop.time() + 6.4
        if process is not None:
            process.block(6.4)
        while (left := end - loop.time()) > 0:
            with suppress(asyncio.CancelledError):
                await pause(left, stands_still=False)
        books.do("insist")
        return {"receipt": "insist"}

    @tool("find_insisted", registry=registry, effect="pure")
    async def find_insisted() -> dict[str, Any]:
        there = "insist" in books.happened
        return {"happened": there, "result": {"receipt": "insist"} if there else None}

    @tool("wire", registry=registry, effect="once", verify="find_wired", timeout="30s")
    async def wire(context: Context) -> dict[str, str]:
        """Stands still with its process, and asks a service that does nothing after the time that it is told."""
        await pause(3.5)
        books.do("wire", until_ms=context.deadline_ms)
        return {"receipt": "wire"}

    @tool("find_wired", registry=registry, effect="pure")
    async def find_wired() -> dict[str, Any]:
        there = "wire" in books.happened
        return {"happened": there, "result": {"receipt": "wire"} if there else None}

    @tool("listen", registry=registry, timeout="10m")
    async def listen() -> str:
        """Listens for as long as it may, and is done when it is told that its time is over."""
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3_600)
        return "heard"

    @tool("find_haul", registry=registry, effect="pure")
    async def find_haul(load: str) -> dict[str, Any]:
        there = f"haul {load}" in books.happened
        return {"happened": there, "result": {"receipt": f"haul {load}"} if there else None}
