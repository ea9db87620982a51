"""Ends of children at every moment of their parent's life, and a stream that loses, repeats and reorders its records."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress
from functools import partial
from typing import Any

from baton.core.limits import Limits
from baton.errors import NotAllowedNow
from baton.ports import SagaRef, Wake
from tests.kit.corpus import Scenario, patiently, start
from tests.kit.faults import EVERYTHING, Chaos
from tests.kit.verdict import Verdict, run
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World

CHILD = "name: short\nnodes: {a: {tool: work, with: {n: '${input.n}', seconds: '${input.seconds}'}}}\noutput: '${ctx.a.output}'"
BUSY = """
name: busy
nodes:
  child: {{workflow: short, with: {{n: 1, seconds: 1}}}}
  busy: {{tool: work, with: {{n: 2, seconds: {busy}}}}}
  last: {{tool: work, after: child, with: {{n: 3, seconds: 0.05}}}}
"""
FAMILY = """
name: family
nodes:
  go: {wait: {for: 25s}}
  one: {workflow: short, with: {n: 1, seconds: 0.1}}
  two: {workflow: short, with: {n: 2, seconds: 2}}
  three: {workflow: short, after: one, with: {n: 3, seconds: 0.1}}
  busy: {tool: work, with: {n: 4, seconds: 3.5}}
  four: {workflow: short, after: [busy, go], with: {n: 5, seconds: 0.5}}
  last: {tool: work, after: [two, three, four], with: {n: 6}}
output: '${ctx.last.output}'
"""
ACTS = ("none", "cancel", "fork", "fork and cancel")


def report_race(busy_s: float) -> float:
    """A child of a second, beside a step of its parent that takes `busy_s`: seconds from its end to the parent's next step."""

    async def main() -> float:
        world = World.start(timeout_s=max(6, busy_s + 5))
        # Long enough for a report to come in between, and for a parent to look too early.
        world.slow.update(release=0.04, leave=0.04)
        await world.service().register(CHILD, json_only=False)
        saga = await start(world, BUSY.format(busy=busy_s), {}, "busy")
        await world.settle(1_500)
        child = SagaRef("acme", f"{saga}.0.child")
        ended = world.written[str(child), len(world.entries(child.id))]
        _busy, began, *_ = (at for at, _, of in world.starts if of == saga)
        return began - ended

    return run_virtual(main())


def storm(seed: int, act: str) -> Verdict:
    """A parent of four whose stream cannot be trusted, with faults at reads and writes, to which something happens meanwhile."""
    draw = random.Random(f"storm {seed}")

    async def drive(world: World) -> str:
        await patiently(world, lambda service: service.register(CHILD, json_only=False))
        saga = await start(world, FAMILY, {}, "family")
        await asyncio.sleep(draw.uniform(0, 8))
        with suppress(NotAllowedNow):
            if act.startswith("fork"):
                cut = min(draw.choice([1, 2, 3]), len(world.entries(saga)))
                await patiently(world, lambda service: service.fork(saga, cut, "again", "f"))
            if act.endswith("cancel"):
                await asyncio.sleep(draw.uniform(0, 2))
                await patiently(world, lambda service: service.cancel(saga, "enough", 0))
        return saga

    def setup(world: World) -> None:
        put = world.stream.put

        def mangled(ref: SagaRef, wake: Wake) -> None:
            loop, fate = asyncio.get_running_loop(), draw.random()
            if fate < 0.6:
                put(ref, wake)
            if 0.4 < fate < 0.85:  # once more, or only then: behind those that were written later
                loop.call_later(draw.uniform(0, 20), partial(put, ref, wake))

        any_stream: Any = world.stream
        any_stream.put = mangled

    expected = "cancelled" if act.endswith("cancel") else "completed"
    scenario = Scenario(act, drive, expected, same_steps=False, limits=Limits(news_every_ms=1_000))
    return run(scenario, Chaos(seed=seed, rate=0.03, budget=seed % 9, kinds=EVERYTHING), setup)
