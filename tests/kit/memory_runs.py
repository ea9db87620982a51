"""Sagas of two tenants with one user's name that remember, look up and roll back, while their workers die: what is kept.

And the planted bugs of it. A run is one deployment whose write of a fact or of a kept result, by its number, meets a fate.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any

from baton import tool
from baton.adapters.facts import StoredFacts
from baton.adapters.memory.store import MemoryCheckpoints
from baton.core.effects.toolspec import EVERYTHING
from baton.core.log.events import StepSucceeded
from baton.errors import EngineFault
from baton.ports import CheckpointRow
from baton.ports.outside import Fact
from baton.runtime.steps import caching
from baton.testing.outside import EMBEDDING_MODEL, WordEmbedder
from baton.tools.standard import Services, with_standard
from tests.kit.bugs import replaced
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, LATE, NO_ANSWER, STALL, Crash, Plan
from tests.kit.found_at import first
from tests.kit.process import RUNS_IN
from tests.kit.scripted import Scripted, says
from tests.kit.verdict import MOST_ROUNDS
from tests.kit.virtual_time import Livelock, VirtualClock, run_virtual
from tests.kit.world import World

MEMORY = "memory"
"""The oracle of these runs."""
FATES = (CRASH_BEFORE, CRASH_AFTER, NO_ANSWER, LATE, STALL)
TALK = """
name: talk
input: {type: object}
nodes:
  seat: {tool: seats, with: {of: "${input.of}"}}
  keep: {tool: std.remember, with: {text: "Prefers ${ctx.seat.output} seats"}, after: seat, timeout: 30s}
  find: {tool: std.recall, with: {query: "Which seats?"}, after: keep}
output: "${ctx.find.output.facts}"
"""
REGRETS = """
name: regrets
input: {type: object}
on_failure: rollback
nodes:
  keep: {tool: std.remember, with: {text: "Wants nothing but soup"}, timeout: 30s}
  no: {fail: {code: no_deal, message: No.}, after: keep}
"""


def _here(function: Callable[..., Any], *args: Any) -> Coroutine[Any, Any, Any]:
    """Call a port as the process does that runs the tool."""
    process = RUNS_IN.get()
    assert process is not None
    return process.offload(function, *args)


class _Deployment:
    """A world with the tools of facts; `seats`: calls of the tool whose results are kept."""

    def __init__(self, plan: Plan) -> None:
        self.world = World.start(plan=plan, models=Scripted(lambda *_: says(""), known=(EMBEDDING_MODEL,)))
        self.seats: list[str] = []
        services = Services(
            http=None,  # type: ignore[arg-type]
            entities=None,  # type: ignore[arg-type]
            objects=None,  # type: ignore[arg-type]
            mailer=None,  # type: ignore[arg-type]
            clock=VirtualClock(),
            offload=_here,  # type: ignore[arg-type]  # any call
            facts=StoredFacts(self.world.store.checkpoints),
            embedder=WordEmbedder(),
            embedding_model=EMBEDDING_MODEL,
        )
        registry = with_standard(self.world.registry, services, EVERYTHING)

        @tool("seats", registry=registry, effect="pure", cache="1h")
        async def seats(of: str) -> str:
            self.seats.append(of)
            return of

        self.world.registry, self.world.tools = registry, registry.specs()

    async def start(self, document: str, tenant: str, key: str, **given: str) -> str:
        for _ in range(40):
            with suppress(Crash, EngineFault):
                service = self.world.service(tenant=tenant)
                await service.register(document, json_only=False)
                return str((await service.start(document.split()[1], given, key))[0]["id"])
            await asyncio.sleep(0.5)
        raise AssertionError("the API never answered")


def remembered(fate: str = "", at: int = 0) -> tuple[list[str], list[str]]:
    """Return the faults after a run whose write number `at` meets the fate, and all its writes."""
    try:
        return run_virtual(_remembered(Plan(at={at: fate} if at else {})), MOST_ROUNDS)
    except Livelock as error:
        return [f"{MEMORY}: {error}"], []


async def _remembered(plan: Plan) -> tuple[list[str], list[str]]:
    deployment = _Deployment(plan)
    world, broken = deployment.world, list[str]()
    wanted = {"acme": "window", "globex": "aisle"}
    sagas = {tenant: await deployment.start(TALK, tenant, "k", of=of) for tenant, of in wanted.items()}
    await world.settle()
    for tenant in wanted:
        await deployment.start(REGRETS, tenant, "r")
    await world.settle()
    await asyncio.sleep(60)  # a write that its client has given up lands
    for tenant, of in wanted.items():
        texts = [one.text for one in world.store.facts.listed(tenant, "ann", "", 100)[0]]
        if texts != [f"Prefers {of} seats"]:
            broken.append(f"{tenant} remembers {texts}")
        done = [
            event.output.v
            for entry in world.entries(sagas[tenant], tenant)
            for event in entry.events
            if isinstance(event, StepSucceeded) and event.node == "find"
        ]
        found = [[fact["text"] for fact in one["facts"]] for one in done]
        if found != [[f"Prefers {of} seats"]]:
            broken.append(f"the saga of {tenant} found {found}")
    return [f"{MEMORY}: {text}" for text in broken], plan.writes[:]


def places(writes: list[str]) -> list[int]:
    """The numbers of the writes of facts and of kept results."""
    return [number for number, write in enumerate(writes, 1) if write == "put"]


# ---- planted bugs


@contextmanager
def a_fact_has_another_id_in_each_attempt() -> Iterator[None]:
    """Memory row: an attempt that is repeated writes the fact twice."""
    numbers, real = itertools.count(), StoredFacts.put

    def put(self: StoredFacts, tenant: str, user: str, fact: Any, vector: Any) -> None:
        real(self, tenant, user, Fact(**{**_fields(fact), "id": f"{next(numbers):032x}"}), vector)

    with replaced(StoredFacts, "put", put):
        yield


def _fields(fact: Any) -> dict[str, Any]:
    return {name: getattr(fact, name) for name in fact.__struct_fields__}


@contextmanager
def facts_are_found_by_the_user_alone() -> Iterator[None]:
    """Memory row: two tenants with one user's name read each other's facts."""
    real = MemoryCheckpoints.rows

    def rows(self: MemoryCheckpoints, tenant: str, thread: str, *more: Any) -> Any:
        tenants = [tenant, *({"acme", "globex"} - {tenant} if thread.startswith("~facts/") else ())]
        return [row for one in tenants for row in real(self, one, thread, *more)]

    with replaced(MemoryCheckpoints, "rows", rows):
        yield


@contextmanager
def a_deleted_fact_leaves_its_id_free() -> Iterator[None]:
    """Memory row: a write that lands after its fact was forgotten brings it back."""

    def delete(self: StoredFacts, tenant: str, thread: str, key: str, now: int) -> bool:
        there = self._rows.rows(tenant, thread, key, key, 1)
        self._rows.delete(tenant, thread, [key], now)
        return bool(there)

    with replaced(StoredFacts, "_delete", delete):
        yield


@contextmanager
def a_kept_result_is_everyones() -> Iterator[None]:
    """Cache row: a call takes the result of a call with other arguments."""
    with (
        replaced(caching, "_key", lambda spec, arguments: "k"),
        replaced(MemoryCheckpoints, "rows", _of_any_tenant()),
    ):
        yield


def _of_any_tenant() -> Callable[..., Any]:
    real = MemoryCheckpoints.rows

    def rows(self: MemoryCheckpoints, tenant: str, thread: str, *more: Any) -> list[CheckpointRow]:
        tenants = [tenant, *({"acme", "globex"} - {tenant} if thread.startswith("~cache/") else ())]
        return [row for one in tenants for row in real(self, one, thread, *more)]

    return rows


MEMORY_BUGS = (
    a_fact_has_another_id_in_each_attempt,
    facts_are_found_by_the_user_alone,
    a_deleted_fact_leaves_its_id_free,
    a_kept_result_is_everyones,
)


def found_by(bug: Callable[[], Any]) -> int:
    """The number of the run in which the bug is found; -1 if it never is."""
    drawn = ((at, fate) for at in places(remembered()[1]) for fate in FATES)
    runs = [partial(remembered), *(partial(remembered, fate, at) for at, fate in drawn)]
    with bug():
        return first(bug.__name__, runs, lambda run: bool(run()[0]))
