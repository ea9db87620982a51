"""What limits about people are measured by; for test_each_limit_matters.py."""

from __future__ import annotations

import asyncio

from tests.kit.world import World


async def told_of_twelve_questions(world: World) -> int:
    """Of so many one person is told who is asked by twelve sagas."""
    document = "name: asks\nnodes: {a: {human: {title: t}}}"
    await world.service().register(document, json_only=False)
    for number in range(12):
        await world.service().start("asks", {}, f"asks-{number}")
    await asyncio.sleep(20)
    return len(world.notices.told)
