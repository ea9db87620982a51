"""Many sagas in one world: what they have in common (a stream, a queue, a reconciler, an account) is shared by all of them."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial
from typing import Any

from baton.core.limits import Limits
from baton.runtime.requests.service import Service
from baton.runtime.starting.catalog import Registered
from tests.kit.corpus import patiently
from tests.kit.documents import chain_of
from tests.kit.faults import Plan
from tests.kit.oracles import of_saga, of_world
from tests.kit.process import Outage
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

PAYING = """
name: paying
nodes:
  work: {tool: work, with: {n: '${input.n}', seconds: 0.2}}
  pay: {tool: pay, after: work, with: {n: '${input.n}'}}
  pause: {wait: {for: 90s}, after: work}
  last: {tool: work, after: [pay, pause], with: {n: '${input.n}', seconds: 0.1}}
"""
LIMITS = Limits(user_day_budget_usd="1000")


@dataclass(frozen=True)
class Ending:
    """How it ended: sagas by status, every broken promise, and how many were over when the last had just been started."""

    statuses: dict[str, int]
    broken: tuple[str, ...]
    meanwhile: int


def many(
    count: int,
    plan: Plan,
    *,
    within_s: float = 5,
    seed: int = 0,
    outages: tuple[Outage, ...] = (),
    **world: Any,
) -> Ending:
    """Start so many sagas within so many seconds, half of them with a payment and a pause, and wait for all of them."""

    async def main() -> Ending:
        made = World.start(plan=plan, limits=LIMITS, seed=seed, outages=outages, batch=10, **world)
        made.runaway = 100 * count
        for document in (chain_of(3, 0.3), PAYING):
            await patiently(made, partial(_register, text=document))
        await asyncio.gather(*(_start(made, number, number / count * within_s) for number in range(count)))
        meanwhile = sum(head.group == "done" for head in made.log.heads())
        await made.settle()
        await asyncio.sleep(2 * max(made.stall_s, made.late_s))
        await made.settle()
        statuses: dict[str, int] = {}
        for head in made.log.heads():
            statuses[head.status] = statuses.get(head.status, 0) + 1
        broken = [text for head in made.log.heads() for text in of_saga(made, head.ref.id)]
        return Ending(statuses, (*broken, *of_world(made)), meanwhile)

    return run_virtual(main())


async def _register(service: Service, text: str) -> Registered:
    return await service.register(text, json_only=False)


async def _start(world: World, number: int, at_s: float) -> None:
    await asyncio.sleep(at_s)
    name = ("chain", "paying")[number % 2]
    await patiently(world, lambda service: service.start(name, {"n": 1_000 * number}, f"key-{number}"))
