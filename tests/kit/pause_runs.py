"""Operators who pause, resume, wake, cancel and retry sagas at drawn moments, one by one and many at once."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any

from baton import StepFailure, tool
from baton.core.log import events as ev
from baton.core.log.questions import Answer
from baton.errors import NotAllowedNow, NotFound
from baton.runtime.requests.steering import Part, SagaFilter
from tests.kit.corpus import patiently, shown
from tests.kit.faults import Chaos, Plan
from tests.kit.oracles import of_saga, of_world
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

BEGINS, RESULT, TWICE = "begins", "result", "twice"
"""The oracles: a paused saga begins no step; each saga ends as if no person had paused it; a key retries a saga once."""
KID = "name: kid\nnodes: {w: {wait: {for: 8s}}, k: {tool: work, after: w, with: {n: '${input.n[3]}'}}}"
HELD = """
name: held
nodes:
  one: {tool: work, with: {n: '${input.n[0]}', seconds: 1.1}}
  two: {tool: work, after: one, with: {n: '${input.n[1]}', seconds: 1.1}}
  go: {wait: {signal: go, timeout: 6m}}
  ask: {human: {title: Well?, expires: 6m}, after: one}
  kid: {workflow: kid, after: two, with: {n: '${input.n}'}}
  last: {tool: work, after: [go, ask, kid], with: {n: '${input.n[2]}', seconds: 0.5}}
output: '${ctx.go.output}'
"""
FLAKY = "name: flaky\non_failure: fail\nnodes: {a: {tool: work, with: {n: '${input.n[0]}'}}, b: {tool: breaks, after: a}}"
OPERATIONS_S, LONG_S, SAGAS, LAG_MS, PASSES = 40, 3_600, 3, 10_000, 4
WORKFLOW, TENANT_WIDE = SagaFilter(workflow="held"), SagaFilter()


def paused(seed: int, **faults: Any) -> tuple[list[str], Plan]:
    """Broken promises after drawn operations, a long pause of everything, and a retry; and the calls."""
    plan = Plan(**faults) if faults else Chaos(seed=seed, rate=0.02, budget=6)

    async def main() -> list[str]:
        world = World.start(plan=plan, seed=seed, is_warm=seed % 2 == 0)
        return await _Run(world, random.Random(f"pauses {seed}")).all()

    return run_virtual(main()), plan


class _Run:
    def __init__(self, world: World, draw: random.Random) -> None:
        self.world, self.draw = world, draw
        self.sagas: list[str] = []
        self.cancelled = set[str]()
        self.is_mended, self.started = False, 0
        world.runaway = 6_000

        @tool("breaks", registry=world.registry)
        async def breaks() -> str:
            if not self.is_mended:
                raise StepFailure("bad_request", "not yet")
            return "b"

        world.tools = world.registry.specs()

    async def all(self) -> list[str]:
        for document in (KID, HELD, FLAKY):
            await self.ask("register", document, json_only=False)
        flaky = await self.start("flaky", "f")
        for number in range(SAGAS):
            self.sagas.append(await self.start("held", f"k{number}"))
        await asyncio.gather(*(self.operator() for _ in range(3)))
        await self.many("pause", TENANT_WIDE, "night")
        self.sagas.append(await self.start("held", "born"))
        for saga in self.sagas:
            await self.ask("signal", saga, "go", 7, "last")
        await asyncio.sleep(LONG_S)
        await self.many("resume", WORKFLOW)
        await asyncio.sleep(30)
        await self.many("resume", TENANT_WIDE)
        for saga in self.sagas:
            await self.ask("resume", saga)
        await self.finish()
        self.is_mended = False
        for _ in range(2):
            await self.many("retry", SagaFilter(workflow="flaky"), "night")
            await asyncio.sleep(60)
        self.is_mended = True
        await self.many("retry", SagaFilter(workflow="flaky"), "morning")
        await self.world.settle()
        await asyncio.sleep(40)
        await self.world.settle()
        return [*self.broken(flaky)]

    async def ask(self, do: str, *arguments: Any, **options: Any) -> None:
        with suppress(NotAllowedNow, NotFound):
            await patiently(self.world, lambda service: getattr(service, do)(*arguments, **options))

    async def start(self, name: str, key: str) -> str:
        self.started += 1
        numbers = [10 * self.started + each for each in range(4)]
        view, _ = await patiently(self.world, lambda service: service.start(name, {"n": numbers}, key))
        return str(view["id"])

    async def many(self, do: str, wanted: SagaFilter, *more: Any) -> None:
        """All parts, until a pass changes nothing; another operator may want the opposite meanwhile."""
        for _ in range(PASSES):
            changed, cursor = 0, ""
            while True:
                part = Part(limit=self.draw.choice([1, 2, 50]), cursor=cursor)
                page = await patiently(self.world, partial(_steer, do=do, arguments=(wanted, *more, part)))
                changed += page.changed
                if page.next is None:
                    break
                cursor = page.next
            if not changed or do == "retry":
                return
            await asyncio.sleep(1)

    async def operator(self) -> None:
        for _ in range(4):
            await asyncio.sleep(self.draw.random() * OPERATIONS_S / 4)
            await self.draw.choice(self.deeds(self.draw.choice(self.sagas)))()

    def deeds(self, saga: str) -> list[Callable[[], Awaitable[None]]]:
        return [
            *[lambda: self.ask("pause", saga, "by hand")] * 2,
            lambda: self.ask("resume", saga),
            lambda: self.ask("wake", saga),
            lambda: self.ask("signal", saga, "go", 7, "early"),
            lambda: self.cancel(saga),
            lambda: self.answer(saga),
            lambda: self.many("pause", WORKFLOW, "the workflow"),
            lambda: self.many("resume", WORKFLOW),
        ]

    async def cancel(self, saga: str) -> None:
        if not self.cancelled:
            self.cancelled.add(saga)
            await self.ask("cancel", saga, "enough", 0)

    async def answer(self, saga: str) -> None:
        for one in (await shown(self.world, saga))["questions"]:
            answer = Answer(ask=one["id"], action=one["options"][0])
            await self.ask("answer", saga, answer, "k")

    async def finish(self) -> None:
        """A person who resumes what is held and answers what is asked, until all is over."""
        for _ in range(20):
            for saga in self.sagas:
                if self.world.end(saga) is None:
                    await self.ask("resume", saga)
                    await self.answer(saga)
            await self.world.settle(60)

    def broken(self, flaky: str) -> Iterator[str]:
        world = self.world
        for saga in self.sagas:
            end = world.end(saga)
            wanted = ("cancelled", "completed") if saga in self.cancelled else ("completed",)
            if end is None or end.status not in wanted or (end.status == "completed" and end.output.v != 7):
                yield f"{RESULT}: {saga} came to {end}"
        for head in world.log.heads():
            is_born_paused = head.ref.id.startswith(self.sagas[-1])
            held = {"birth": head.created} if is_born_paused and "." not in head.ref.id else {}
            yield from (f"{BEGINS}: {text}" for text in _begun(world.entries(head.ref.id), held))
            yield from of_saga(world, head.ref.id)
        keys = Counter(one.key for one in world.events(flaky) if isinstance(one, ev.Forked))
        if keys != {"night": 1, "morning": 1}:
            yield f"{TWICE}: {flaky} was retried with {dict(keys)}"
        yield from of_world(world)


async def _steer(service: Any, do: str, arguments: tuple[Any, ...]) -> Any:
    return await getattr(service.many, do)(*arguments)


def _begun(entries: list[ev.Entry], held: dict[str, int]) -> Iterator[str]:
    """Steps that began while a person held the saga back, by the log alone; `held`: from the beginning on."""
    for entry in entries:
        for event in entry.events:
            if isinstance(event, ev.Parked) and event.is_pause:
                held.setdefault(event.code, event.at)
            elif isinstance(event, ev.Resumed):
                held.pop(event.code, None)
                held.pop("birth", None)
            elif isinstance(event, ev.CancelRequested | ev.Forked):
                held.clear()
            elif isinstance(event, ev.StepSucceeded | ev.StepFailed | ev.AttemptFailed) and held:
                since = min(held.values())
                if event.started_at > since + LAG_MS:
                    yield f"`{event.slot}` began {event.started_at - since} ms after the saga was paused"
