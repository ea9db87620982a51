"""How often the newest version of a workflow is read: at each start, and once a second where there are many."""

from __future__ import annotations

import asyncio

from baton.adapters.memory.store import MemoryBlobs, MemoryDefinitions
from baton.core.limits import Limits
from baton.ports import Definition
from baton.runtime.invocation.context import StoreRetrier, inline
from baton.runtime.starting.catalog import NAMES_KEPT, Catalog
from tests.kit.virtual_time import SeededEntropy, VirtualClock


class Counted(MemoryDefinitions):
    reads = 0

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        self.reads += 1
        return super().get(tenant, name, version)


def version(number: int, name: str = "w") -> Definition:
    return Definition(tenant="acme", name=name, version=number, graph="g", document="d", created=0, by="ann")


class Process:
    """One that is asked for definitions."""

    def __init__(self) -> None:
        self.kept, clock = Counted(), VirtualClock()
        call = StoreRetrier(inline, clock, SeededEntropy(1), Limits(), clock.now() + 3_600_000)
        self.catalog = Catalog(self.kept, MemoryBlobs(), clock).through(call)

    async def found(self, reference: str = "w") -> int:
        return (await self.catalog.find("acme", reference)).version


async def test_a_process_that_is_seldom_asked_reads_each_time() -> None:
    process = Process()
    for number in range(1, 6):
        process.kept.put(version(number))
        assert await process.found() == number
        await asyncio.sleep(0.25)


async def test_a_busy_process_reads_once_a_second_and_is_no_later_than_that() -> None:
    process = Process()
    process.kept.put(version(1))
    for _ in range(100):  # ten seconds
        await process.found()
        await asyncio.sleep(0.1)
    assert process.kept.reads == 10
    process.kept.put(version(2))
    late = 0.0
    while await process.found() == 1:
        await asyncio.sleep(0.1)
        late += 0.1
    assert late < 1.05
    assert await process.found("w@1") == 1  # a version that is named is read as it is


async def test_no_more_names_are_kept_than_there_is_room_for() -> None:
    process = Process()
    names = [f"w{number}" for number in range(NAMES_KEPT + 1)]
    for name in names:
        process.kept.put(version(1, name))
        await process.found(name)
    reads = process.kept.reads
    await process.found(names[-1])
    assert process.kept.reads == reads
    await process.found(names[0])
    assert process.kept.reads == reads + 1
