"""Measures of how long a saga lasts, and what is stored of it, for test_each_limit_matters.py."""

from __future__ import annotations

import asyncio

from baton.ports import SagaRef
from tests.kit.world import TENANT, World


async def _started(world: World, node: str) -> str:
    await world.service().register(f"name: w\nnodes: {{a: {node}}}", json_only=False)
    view, _ = await world.service().start("w", {}, "")
    return str(view["id"])


async def days_until_a_saga_fails_that_gets_no_signal(world: World) -> int | None:
    saga = await _started(world, "{wait: {signal: go}}")
    world.reconciler_gap_s, world.runaway = 900, 10_000
    await asyncio.sleep(3 * 86_400)
    ended = world.entries(saga)[-1].at if world.end(saga) else None
    return ended and round((ended - world.log.heads()[0].created) / 86_400_000)


async def is_a_saga_there_a_year_later(world: World) -> bool:
    saga = await _started(world, "{wait: {for: 1s}}")
    await world.settle()
    world.reconciler_gap_s = 86_400
    await asyncio.sleep(370 * 86_400)
    return world.log.read_head(SagaRef(TENANT, saga)) is not None
