"""A saga that is to be undone while a step of it waits to be approved, and its worker dies at any of its writes."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

from baton.core.log.events import CancelRequested
from baton.errors import NotAllowedNow
from tests.kit.corpus import Scenario, patiently, start
from tests.kit.faults import CRASH_BEFORE, scripted
from tests.kit.verdict import run
from tests.kit.world import World

DOCUMENT = """
name: unasked
nodes:
  a: {tool: lend, with: {what: hall}}
  b: {tool: lend, with: {what: tent}, after: a, requires_approval: {expires: 1h}}
"""
MOST_WRITES = 16


async def _drive(world: World) -> str:
    saga = await start(world, DOCUMENT, {}, "unasked")
    await asyncio.sleep(2)
    wanted = CancelRequested(reason="all of it", by="", at=0, grace_ms=0, undo=True)
    with suppress(NotAllowedNow):
        await patiently(world, lambda service: service.rollback(saga, wanted))
    return saga


UNASKED = Scenario("unasked", _drive, "rolled_back")


def in_deaths() -> Iterator[Callable[[], tuple[str, ...]]]:
    """A death before each of the first writes."""

    def broken(write: int) -> tuple[str, ...]:
        return run(UNASKED, scripted((("write", write, CRASH_BEFORE),))).broken

    return (partial(broken, write) for write in range(1, MOST_WRITES))
