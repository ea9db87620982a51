"""Operators who acknowledge incidents while these end and while the same saga fails again: what each was told, and what came of it.

Requests die, get no answer, or land nine seconds late; operators repeat what has failed.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace

from baton.core.log.events import Notice
from baton.errors import EngineFault, NotAllowedNow
from baton.ports.people import Incident
from baton.runtime.engine.request import Caller, Request
from baton.runtime.requests.answers import IncidentService
from tests.kit import dead_letter_runs
from tests.kit.faults import Crash
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import run_virtual
from tests.kit.world import TENANT, World

INCIDENTS = "incidents"
"""The oracle of incidents."""
SAGA = "dinner"
WRITES = frozenset({"acknowledge", "resolve"})


class Fates(dead_letter_runs.Fates):
    """The calls of one request to the record of incidents."""

    writes = WRITES


@dataclass(frozen=True)
class Did:
    """What an operator asked for, from when to when, and what they were told: `kept`, `resolved`, or nothing."""

    by: str
    note: str
    incident: str
    begin: float
    end: float
    told: str


class Duty:
    """One saga that fails twice, operators who acknowledge, and one who decides about the saga in between."""

    def __init__(self, seed: int, rate: float) -> None:
        self.world = World(make_registry(Books()), seed=seed)
        self.draw, self.rate = random.Random(seed), rate
        self.incidents = self.world.store.notice_record
        self.did: list[Did] = []
        self.decided: tuple[float, float] | None = None

    def fail(self) -> str:
        """Another failure of the same node; the id of its incident."""
        before = set(self.incidents.of_saga(TENANT, SAGA))
        at = self.world.process("worker").clock.now()
        notice = Notice(
            key=f"{SAGA}/0.pay.incident",
            to="on_call",
            code="down",
            message="m",
            node="pay",
            at=at,
            incident=True,
        )
        self.incidents.open(TENANT, SAGA, notice)
        new = set(self.incidents.of_saga(TENANT, SAGA)) - before
        return new.pop() if new else ""

    def desk(self, by: str) -> IncidentService:
        """A request in a process of its own."""
        process = self.world.process("api")
        fates = Fates(self.world, self.draw, self.rate)
        engine = replace(self.world.engine(process), offload=fates.offload)
        caller = Caller(tenant=TENANT, user=by, request=process.id)
        parts = Request(engine, caller, process.clock.now() + 14_500).parts
        return IncidentService(self.incidents, parts.call, engine.clock, TENANT, by)

    async def acknowledge(self, by: str, note: str, incident: str) -> None:
        """Until there is an answer, as a person clicks again."""
        loop = asyncio.get_running_loop()
        await asyncio.sleep(self.draw.random() * 4)
        told = ""
        while not told:
            begin = loop.time()
            try:
                found = await self.desk(by).acknowledge(incident, note)
                told = "kept" if (found.acknowledged_by, found.note) == (by, note) else "lost"
            except NotAllowedNow:
                told = "resolved"
            except (Crash, EngineFault):
                pass
            self.did.append(Did(by, note, incident, begin, loop.time(), told))
            await asyncio.sleep(0.5)

    async def decide(self) -> None:
        """A person decides what becomes of the saga: its incidents are over."""
        await asyncio.sleep(self.draw.random() * 4)
        begin = asyncio.get_running_loop().time()
        with suppress(Crash, EngineFault):
            await self.desk("carl").resolve_all(SAGA)
        if not all(one.resolved for one in self.all() if one.opened <= self.world.process("api").clock.now()):
            return
        self.decided = (begin, asyncio.get_running_loop().time())

    def all(self) -> list[Incident]:
        found = [self.incidents.find(TENANT, one) for one in self.incidents.of_saga(TENANT, SAGA)]
        return [one for one in found if one is not None]


async def _story(seed: int, rate: float, *, resolves: bool) -> tuple[str, ...]:
    duty = Duty(seed, rate)
    first = duty.fail()
    acts = [duty.acknowledge(by, f"{by} {number}", first) for number in range(3) for by in ("ada", "bob")]
    acts += [duty.decide()] if resolves else []
    await asyncio.gather(*acts)
    second = duty.fail()
    await asyncio.sleep(20)  # what was on its way has landed
    return tuple(f"{INCIDENTS}: {text}" for text in broken(duty, first, second, resolves=resolves))


def broken(duty: Duty, first: str, second: str, *, resolves: bool) -> Iterator[str]:
    """Every promise about them that does not hold at the end."""
    if not second:
        yield "a second failure is no incident of its own"
        return
    there = {one.id: one for one in duty.all()}
    one, other = there[first], there[second]
    if other.acked or other.resolved:
        yield "what was said of the first failure counts for the second"
    kept = [did for did in duty.did if did.told == "kept"]
    if kept and not one.acked:
        yield "an operator was told that they have it, and no operator has"
    if any(did.told == "lost" for did in duty.did):
        yield "an operator was told that another has it, who asked at the same time"
    last = [did for did in duty.did if (did.by, did.note) == (one.holder, one.note)]
    for did in kept:
        if last and did.begin > max(its.end for its in last):
            yield f"`{did.note}` was acknowledged after `{one.note}`, which has taken it back"
    if duty.decided is not None:
        if not one.resolved or one.by != "carl":
            yield "what was decided is open"
        for did in kept:
            if did.begin > duty.decided[1]:
                yield f"`{did.note}` was acknowledged after the end"
    elif not resolves and one.resolved:
        yield "it is over, and no person has decided"


def on_call(seed: int, rate: float, *, resolves: bool) -> tuple[str, ...]:
    """What is broken in one world."""
    return run_virtual(_story(seed, rate, resolves=resolves))
