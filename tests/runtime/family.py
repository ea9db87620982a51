"""A parent and its children, which end when they are told to, and the relay's part in that, call by call."""

from __future__ import annotations

from typing import Any

from baton.core.log.events import ChildReported, SagaStarted
from baton.ports import Head, Message, SagaRef, Wake
from baton.runtime.relay import StreamItem
from tests.kit.corpus import start
from tests.kit.world import TENANT, World

CHILD = "name: child\nnodes: {a: {wait: {signal: go}}}\noutput: '${ctx.a.output}'"
ALONE: dict[str, Any] = {"stream_on": False, "queue_on": False, "reconciler_on": False, "timeout_s": 600}
HELD: dict[str, Any] = {"stream_on": True, "reconciler_on": False, "timeout_s": 60}


async def family(world: World, count: int, more: str = "") -> str:
    """A parent that waits for so many children, which wait for a word."""
    await world.service().register(CHILD, json_only=False)
    children = "\n".join(f"  c{i}: {{workflow: child}}" for i in range(count))
    saga = await start(world, f"name: parent\nnodes:\n{children}\n{more}", {}, "parent")
    await work(world, saga, 1)
    for i in range(count):
        await work(world, f"{saga}.0.c{i}", 1)
    return saga


async def work(world: World, saga: str, version: int = 0) -> Head:
    await world.work([Message(str(SagaRef(TENANT, saga)), version)])
    return head_of(world, saga)


def head_of(world: World, saga: str) -> Head:
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    return head


async def end(world: World, saga: str, *numbers: int) -> list[StreamItem]:
    """These children come to their ends; what the stream has of that."""
    for i in numbers:
        child = f"{saga}.0.c{i}"
        await world.service().signal(child, "go", i, "k")
        await work(world, child, 3)
    return [ended(world, saga, i) for i in numbers]


def ended(world: World, saga: str, number: int) -> StreamItem:
    child = f"{saga}.0.c{number}"
    origin = next(event for event in world.events(child) if isinstance(event, SagaStarted))
    wake = Wake(v=len(world.entries(child)), parent=origin.parent, slot=origin.slot, window=origin.window)
    return StreamItem(str(number), SagaRef(TENANT, child), wake)


async def relay(world: World, items: list[StreamItem], within_ms: int = 10_000) -> list[str]:
    process = world.process("relay")
    return await world.relay(process).handle(items, process.clock.now() + within_ms)


def reports(world: World, saga: str) -> list[list[str]]:
    """The children of each entry that has reports."""
    told = [
        [event.slot for event in entry.events if isinstance(event, ChildReported)]
        for entry in world.entries(saga)
    ]
    return [one for one in told if one]
