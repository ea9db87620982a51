"""A parent in the simulation whose user calls its child off by a signal, when the child has done a part of its work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from baton.core.log.events import StepSucceeded
from baton.errors import NotAllowedNow

if TYPE_CHECKING:
    from baton.runtime.requests.service import Service
    from tests.kit.world import World

EVENING = """
name: evening
nodes:
  hold: {tool: work, with: {n: 1}}
  nap: {wait: {for: 20d}, after: hold}
  order: {tool: work, after: nap, with: {n: 2}}
output: {hold: '${ctx.hold.output.n}', order: '${ctx.order.output?}'}
"""
CALLED_OFF = """
name: called-off
nodes:
  carry: {workflow: evening, cancel_on: enough}
  after: {tool: work, after: carry, with: {n: '${ctx.carry.output.result.hold}'}}
output: ['${ctx.carry.output}', '${ctx.after.output.n}']
"""


async def called_off(
    world: World, start: Callable[..., Awaitable[str]], patiently: Callable[..., Any]
) -> str:
    await patiently(world, lambda service: service.register(EVENING, json_only=False))
    saga = await start(world, CALLED_OFF, {}, "called-off")
    while world.troubles is None and not _is_held(world):
        await asyncio.sleep(1)
        for head in world.log.heads():
            if (
                head.status == "parked"
            ):  # its workers have died before that, three in a row: that is what a person is for
                with suppress(NotAllowedNow):
                    await patiently(world, partial(_resume, saga=head.ref.id))
    said = partial(_enough, saga=saga)
    for _ in range(2):
        with suppress(NotAllowedNow):  # it has ended
            await patiently(world, said)
    return saga


async def _enough(service: Service, saga: str) -> Any:
    return await service.signal(saga, "enough", "Too late for dinner.", "e-1")


async def _resume(service: Service, saga: str) -> Any:
    return await service.resume(saga)


def _is_held(world: World) -> bool:
    """Whether the child's first step is done."""
    return any(
        isinstance(event, StepSucceeded) and event.node == "hold"
        for head in world.log.heads()
        for event in world.events(head.ref.id)
    )
