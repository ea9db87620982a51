"""The graph of a saga changes while it runs: its worker goes on with the new one."""

from __future__ import annotations

import asyncio
from typing import Any

from baton.core.log import events as ev
from baton.core.log.state import State
from tests.kit.corpus import start
from tests.kit.world import World

STEPS = """
name: w
nodes:
  a: {tool: work, with: {n: 1, seconds: 2}}
  b: {tool: work, after: a, with: {n: 2}}
output: '${ctx.b.output.n}'
"""
OTHER = """
name: w
nodes:
  a: {tool: work, with: {n: 1, seconds: 2}}
  x: {tool: work, after: a, with: {n: 5}}
  b: {tool: work, after: x, with: {n: '${ctx.x.output.n}'}}
output: '${ctx.b.output.n}'
"""


async def change(world: World, saga: str, document: str, **more: Any) -> None:
    """Another graph for a saga, without a question."""
    service = world.service()
    registered = await service.register(document, json_only=False)
    opened = await service._request.open(saga)

    def make(state: State, now: int) -> ev.GraphChanged:
        graph = registered.definition.graph
        return ev.GraphChanged(graph=graph, workflow=state.origin.workflow, by="ann", at=now, **more)

    await service._request.append(opened, make)


def nodes(world: World, saga: str) -> list[str]:
    return [event.node for event in world.events(saga) if isinstance(event, ev.StepSucceeded)]


async def test_the_worker_at_work_goes_on_with_the_new_graph() -> None:
    world = World.start()
    saga = await start(world, STEPS, {}, "w")
    await asyncio.sleep(1)
    await change(world, saga, OTHER)
    await world.settle()
    assert nodes(world, saga) == ["a", "x", "b"]
    end = world.end(saga)
    assert end is not None
    assert end.output.v == 7
    kinds = [type(event) for event in world.events(saga)]
    assert kinds.count(ev.StepInterrupted) == 0, "the attempt under way has gone on"
