"""Content that a step has put is gone after a rollback, also where a worker dies between the write and its record."""

from __future__ import annotations

from typing import Any

import pytest

from baton.adapters.memory.outside import MemoryEntities, MemoryObjects
from baton.ports.outside import StoredObject, Written
from baton.tools.standard.stored import declare
from tests.kit.faults import Crash
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import World
from tests.runtime.undoing import Ledger, add_ledger, view_of
from tests.tools.outside import services

DOCUMENT = """
name: w
nodes:
  a: {tool: std.put_object, with: {name: march, text: soup}}
  b: {tool: trip.fail, after: a}
"""


async def at_once(function: Any, /, *given: Any, **more: Any) -> Any:
    """Without a thread: virtual time stands meanwhile."""
    return function(*given, **more)


class Dying:
    """Has a worker die with a store's first writes, which are done."""

    def __init__(self, world: World, times: int) -> None:
        self.world, self.left = world, times

    def __call__(self) -> None:
        if self.left:
            self.left -= 1
            [process] = self.world.running.values()
            process.is_dead = True
            raise Crash


@pytest.mark.parametrize("times", [0, 1, 2])
@pytest.mark.parametrize("where", ["content", "pointer"])
async def test_content_is_deleted_also_where_it_was_put_by_a_worker_that_died(where: str, times: int) -> None:
    world = World.start()
    die = Dying(world, times)

    class Objects(MemoryObjects):
        def put(self, *given: Any, **more: Any) -> StoredObject:
            made = super().put(*given, **more)
            if where == "content":
                die()
            return made

    class Entities(MemoryEntities):
        def put(self, *given: Any, **more: Any) -> Written:
            done = super().put(*given, **more)
            if where == "pointer":
                die()
            return done

    objects, entities = Objects(), Entities()
    made = MemoryObjects.put(objects, "acme", "april", b"salad", "text/plain")
    add_ledger(world, Ledger())
    declare(
        world.registry,
        services(entities=entities, objects=objects, offload=at_once, clock=VirtualClock()),
    )
    world.tools = world.registry.specs()
    view = await view_of(world, DOCUMENT)
    assert (view["status"], die.left) == ("rolled_back", 0)
    assert list(objects.stored) == [("acme", "april", made.sha256)]
