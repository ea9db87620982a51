"""A workflow with a schedule in the simulation. What must hold of many ticks, and of reconcilers that race for them, is in schedule_runs.py."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baton.ports import Head
    from baton.runtime.requests.service import Service
    from tests.kit.world import World

DOCUMENT = """
name: ticked
nodes: {a: {value: 1}}
schedule: {rate: 1m, overlap: allow, catch_up: 100}
"""
TICKS = 2


async def ticked(world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]) -> str:
    """The saga of its first tick. The schedule is paused after the second."""

    async def pause(_: Service) -> Any:
        return await world.service().schedules.pause("ticked")

    await patiently(world, lambda service: service.register(DOCUMENT, json_only=False))
    while len(found := _ended(world)) < TICKS:
        await asyncio.sleep(20)
    await patiently(world, pause)
    return str(found[0].ref.id)


def _ended(world: World) -> list[Head]:
    heads = sorted(world.log.heads(), key=lambda head: head.created)
    return [head for head in heads if world.end(head.ref.id) is not None]
