"""Sagas that cannot be read, by the hundred: what a reconciler that dies, messages that come twice and an operator who tries again make of their letters."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, ParamSpec, TypeVar

import msgspec

from baton.adapters.memory.queues import MemoryDeadLetters
from baton.core.letters import PENDING, REDRIVEN, DeadMessage
from baton.core.limits import Limits
from baton.errors import CorruptLog, EngineFault, StoreUnavailable, Throttled
from baton.ports import Message, Record, SagaRef, Wake
from baton.runtime.dead_letters import LetterCollector
from baton.runtime.engine.request import Caller, Request
from baton.runtime.requests.operators import LetterFilter, LetterService
from baton.runtime.requests.service import Service
from baton.runtime.starting.catalog import Registered
from tests.kit.corpus import patiently
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, FINE, LATE, NO_ANSWER, THROTTLE, Crash
from tests.kit.virtual_time import run_virtual
from tests.kit.world import TENANT, World

P = ParamSpec("P")
T = TypeVar("T")

LETTERS = "letters"
"""The oracle of dead letters."""
ECHO = (
    "name: echo\nnodes: {a: {tool: work, with: {n: '${input.n}', seconds: 0.05}}}\noutput: '${ctx.a.output}'"
)
PAUSE = "name: pause\nnodes: {a: {wait: {for: 40s}}}"
SKEW = Limits().clock_skew_ms
WRITES = frozenset({"write", "delete", "defer"})
FATES = (CRASH_BEFORE, CRASH_AFTER, NO_ANSWER, LATE, THROTTLE)
SOON_S = 120
"""Within which a redriven saga is at its end. By itself a worker would look at it after an hour."""


class Twice(MemoryDeadLetters):
    """A queue that hands some messages out to two at a time, and forgets some deletions."""

    def __init__(self, world: World, draw: random.Random) -> None:
        super().__init__(world.process("queue").clock)
        self._draw = draw

    def receive(self, limit: int) -> Sequence[DeadMessage]:
        found = super().receive(limit)
        for one in found:
            if self._draw.random() < 0.1:
                self._waiting[one.id] = (0, one)
        return found

    def delete(self, receipts: Sequence[str]) -> None:
        super().delete([receipt for receipt in receipts if self._draw.random() >= 0.05])


class Fates:
    """The calls of one process: each write may be its last, be lost, land late, or be refused. `at`: the one that `fate` meets, from 1."""

    def __init__(self, world: World, draw: random.Random, rate: float, fate: str = "", at: int = 0) -> None:
        self._world, self._draw, self._rate = world, draw, rate
        self._fate, self._at, self._writes = fate, at, 0
        self._is_dead = False

    writes = WRITES

    async def offload(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        await asyncio.sleep(0.002)
        fate = self._drawn(function.__name__)
        if self._is_dead or fate == CRASH_BEFORE:
            self._is_dead = True
            raise Crash
        if fate == THROTTLE:
            raise Throttled("slow down")
        if fate == LATE:
            self._world.spawn(self._land(partial(function, *args, **kwargs)))
            raise StoreUnavailable("no answer")
        result = function(*args, **kwargs)
        if fate == CRASH_AFTER:
            self._is_dead = True
            raise Crash
        if fate == NO_ANSWER:
            raise StoreUnavailable("no answer")
        return result

    def _drawn(self, name: str) -> str:
        if name not in self.writes:
            return FINE
        self._writes += 1
        if self._writes == self._at:
            return self._fate
        return self._draw.choice(FATES) if self._draw.random() < self._rate else FINE

    async def _land(self, call: Callable[[], Any]) -> None:
        await asyncio.sleep(9)
        call()


class Mortuary:
    """A world in which the logs of `unreadable` sagas cannot be read, with a reconciler and an operator for their letters."""

    def __init__(self, world: World, seed: int, rate: float) -> None:
        self.world, self.rate = world, rate
        self.draw = random.Random(seed)
        self.unreadable: set[SagaRef] = set()
        self.queue = Twice(world, self.draw)
        world.dead_letters = self.queue
        self.letters = world.store.letters
        self.woken: Counter[SagaRef] = Counter()
        self._watch()

    def _watch(self) -> None:
        any_log: Any = self.world.log
        real_tail, real_pass = any_log.read_tail, any_log.pass_on

        def read_tail(ref: SagaRef, *request: Any) -> Sequence[Record]:
            if ref in self.unreadable:
                raise CorruptLog("an entry does not decode")
            found: Sequence[Record] = real_tail(ref, *request)
            return found

        def pass_on(ref: SagaRef, wake: Wake) -> None:
            self.woken[ref] += 1
            real_pass(ref, wake)

        any_log.read_tail, any_log.pass_on = read_tail, pass_on

    async def start(self, count: int) -> None:
        """So many sagas, all of which die: every other one at its first wake, the others when their pause is over."""
        for document in (ECHO, PAUSE):
            await patiently(self.world, partial(_register, text=document))
        for number in range(count):
            saga = await patiently(self.world, partial(_start, number=number))
            if number % 2:
                self.unreadable.add(SagaRef(TENANT, saga))
        await asyncio.sleep(5)
        self.unreadable = {head.ref for head in self.world.log.heads()}
        await asyncio.sleep(60)

    async def collect(self, fate: str = "", at: int = 0) -> bool:
        """One run of the reconciler. False: it died or failed."""
        fates = Fates(self.world, self.draw, self.rate, fate, at)
        clock = self.world.process("reconciler").clock
        collector = LetterCollector((self.queue,), self.letters, clock, fates.offload, SKEW)
        try:
            found = await collector.collect(50_000)
        except (Crash, EngineFault):
            return False
        return not found.failed and not found.more

    async def collect_all(self) -> None:
        """Runs until the queue is empty, each a minute after the one before."""
        while self.queue._waiting:
            await self.collect()
            await asyncio.sleep(60)

    def desk(self, fate: str = "", at: int = 0) -> LetterService:
        """An operator's request in a process of its own."""
        process = self.world.process("api")
        fates = Fates(self.world, self.draw, self.rate, fate, at)
        engine = replace(self.world.engine(process), offload=fates.offload)
        caller = Caller(tenant=TENANT, user="ada", request=process.id)
        return LetterService(Request(engine, caller, process.clock.now() + 14_500))

    async def redrive_all(self) -> None:
        """Requests until nothing is pending, as a person repeats one that has failed."""
        while self.pending():
            cursor: str | None = ""
            while cursor is not None:
                try:
                    answer = await self.desk().redrive_all(
                        LetterFilter(), force=False, dry_run=False, limit=100, cursor=cursor
                    )
                except (Crash, EngineFault):
                    break
                cursor = answer.next
        await asyncio.sleep(20)  # what was on its way has landed

    def pending(self) -> int:
        return sum(letter.status == PENDING for letter in self.letters.all())

    def broken(self) -> tuple[str, ...]:
        """Every promise about letters that does not hold once all have been redriven."""
        sent = Counter(
            SagaRef.parse(msgspec.json.decode(body, type=Message).saga) for body, _ in self.queue.letters
        )
        there = {SagaRef(letter.tenant, letter.saga): letter for letter in self.letters.all()}
        found = [f"{ref} has no letter" for ref in sent if ref not in there]
        for ref, letter in there.items():
            if letter.messages != sent[ref]:
                found.append(f"{ref} counts {letter.messages} of {sent[ref]} messages")
            if (letter.status, letter.redrives) != (REDRIVEN, 1):
                found.append(f"{ref} is {letter.status} after {letter.redrives} redrives")
            if self.woken[ref] != 1:
                found.append(f"{ref} was woken {self.woken[ref]} times")
        heads = self.world.log.heads()
        found += [f"{head.ref} is {head.status}" for head in heads if head.status != "completed"]
        return tuple(f"{LETTERS}: {text}" for text in found)


def thousand(
    count: int, seed: int, *, rate: float = 0.05, stragglers: int = 0
) -> tuple[tuple[str, ...], int]:
    """Let so many sagas die, collect their letters, mend them and redrive them all. What is broken then, and the messages.

    `stragglers`: messages from before that the reconciler finds when their letters are redriven already.
    """

    async def main() -> tuple[tuple[str, ...], int]:
        world = World.start(seed=seed, batch=10)
        world.runaway = 100 * count + 10_000
        deaths = Mortuary(world, seed, rate)
        await deaths.start(count)
        await deaths.collect_all()
        for letter in deaths.letters.all()[:stragglers]:
            deaths.queue.send(letter.body, "CorruptLog: late")
        await asyncio.sleep(30)
        deaths.unreadable = set()
        await deaths.redrive_all()
        await deaths.collect_all()
        await asyncio.sleep(SOON_S)
        return deaths.broken(), len(deaths.queue.letters)

    return run_virtual(main())


def at_each_write(most: int) -> list[tuple[str, int, tuple[str, ...]]]:
    """One saga, and one fault at each write of a run of the reconciler and of a redrive: (fate, write, what is broken)."""

    async def main(fate: str, at: int) -> tuple[str, ...]:
        world = World.start()
        deaths = Mortuary(world, 0, 0)
        await deaths.start(1)
        with suppress(Crash):
            await deaths.collect(fate, at)
        await asyncio.sleep(130)
        await deaths.collect_all()
        deaths.unreadable = set()
        with suppress(Crash, EngineFault):
            await deaths.desk(fate, at).redrive(deaths.letters.all()[0].id)
        await deaths.redrive_all()
        await asyncio.sleep(SOON_S)
        return deaths.broken()

    return [(fate, at, run_virtual(main(fate, at))) for fate in FATES for at in range(1, most + 1)]


async def _register(service: Service, text: str) -> Registered:
    return await service.register(text, json_only=False)


async def _start(service: Service, number: int) -> str:
    name = ("pause", "echo")[number % 2]
    view, _ = await service.start(name, {"n": number}, f"key-{number}")
    return str(view["id"])
