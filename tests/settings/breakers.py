"""What the limits of circuit breakers change, for test_each_limit_matters.py."""

from __future__ import annotations

import asyncio

from tests.kit.unavailable_target import PATIENT, Target, add_down
from tests.kit.world import World


async def calls_until_one_opens(world: World) -> int:
    """Of a target that is down, by a step that tries again and again."""
    return len((await _down(world, 20)).calls)


async def minutes_until_a_probe(world: World) -> int:
    """After it has opened; a step that waits may come somewhat later."""
    before, probe = (at for at, _ in (await _down(world, 3_600)).calls[4:6])
    return round(probe - before) // 60


async def _down(world: World, seconds: float) -> Target:
    target = Target(down=((0, 1e9),))
    add_down(world.registry, target)
    world.tools = world.registry.specs()
    registered = await world.service().register(PATIENT, json_only=False)
    await world.service().start(registered.definition.name, {}, "")
    await asyncio.sleep(seconds)
    return target


async def failures_that_are_left(world: World) -> int:
    """Of ten sagas of which two have failed."""
    document = "name: w\non_failure: [rollback]\nnodes: {a: {tool: fails_as_told, with: {n: 1, fails: '${input.fails}'}}}"
    await world.service().register(document, json_only=False)
    for number in range(10):
        await world.service().start("w", {"fails": ["bad_request"] if number < 2 else []}, f"key-{number}")
    await world.settle()
    (row,) = (await world.queries().error_budgets())["workflows"]
    assert (row["completed"], row["failed"]) == (8, 2)
    return int(row["left"])
