"""Schedules in a world with three reconcilers that race, clocks that differ and workers that die; and what must hold of their ticks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from baton.core.schedules import SKIPPED, STARTED, ScheduleRecord
from baton.ports import Head, SagaRef
from baton.runtime.requests.schedules import saga_of
from baton.runtime.requests.service import Service
from tests.kit.corpus import patiently
from tests.kit.faults import Plan
from tests.kit.virtual_time import EPOCH, run_virtual
from tests.kit.world import SHARDS, TENANT, World

ONCE, EVERY, TIME, COUNTS, OVERLAP = "once", "every", "time", "counts", "overlap"
"""The oracles: a saga for each tick that was started and no other; no tick is left out; none is early, or later than faults make it;
what is said of ticks adds up; no two sagas of a schedule that skips or queues are at work at once."""
WRITES = ("write_schedule", "create_head")
MINUTE_S, MINUTE_MS = 60, 60_000
LATE_S = 240
"""A worker that dies, a message that comes again, a reconciler a minute later; twice."""

QUICK = "nodes: {a: {value: 1}}\nschedule: {rate: 1m, overlap: allow, catch_up: 100}"
SLOW = "nodes: {a: {wait: {for: 95s}}}\nschedule: {rate: 1m, overlap: "
DOCUMENTS = {
    "quick": f"name: quick\n{QUICK}",
    "skips": f"name: skips\n{SLOW}skip}}",
    "queues": f"name: queues\n{SLOW}queue, catch_up: 100}}",
}


@dataclass
class Ordeal:
    """One run: what was broken."""

    broken: list[str] = field(default_factory=list)
    plan: Plan = field(default_factory=Plan)

    @property
    def oracles(self) -> set[str]:
        return {one.split(":")[0] for one in self.broken}


def endure(
    minutes: int = 5,
    plan: Plan | None = None,
    names: Sequence[str] = tuple(DOCUMENTS),
    reconcilers: int = 3,
    **world: Any,
) -> Ordeal:
    """Let schedules of one minute run for so long while three reconcilers sweep at once, then see what became of their ticks."""
    ordeal = Ordeal(plan=plan or Plan())
    options: dict[str, Any] = {"skew_ms": 3_000, "timeout_s": 12, "batch": 2, "runaway": 100_000, **world}

    async def main() -> None:
        here = World.start(plan=ordeal.plan, reconciler_on=False, **options)
        for name in names:
            await patiently(here, registered(DOCUMENTS[name]))
        others = [asyncio.create_task(sweeps(here, number * 0.02)) for number in range(reconcilers)]
        await asyncio.sleep(minutes * MINUTE_S + LATE_S)
        for name in names:
            await patiently(here, partial(_pause, here, name))
        await asyncio.sleep(LATE_S)
        for other in others:
            other.cancel()
        for name in names:
            _look(here, ordeal, name, minutes)

    run_virtual(main())
    return ordeal


def registered(document: str) -> Callable[[Service], Awaitable[Any]]:
    """What registers it."""
    return lambda service: service.register(document, json_only=False)


async def _pause(world: World, name: str, _: Service) -> Any:
    return await world.service().schedules.pause(name)


async def sweeps(world: World, after_s: float) -> None:
    """One of several reconcilers, each with processes of its own."""
    await asyncio.sleep(after_s)
    while True:
        world.log.settle_index()
        await asyncio.gather(*(world._sweep(world.process("reconciler"), shard) for shard in range(SHARDS)))
        await asyncio.sleep(MINUTE_S)


def _look(world: World, ordeal: Ordeal, name: str, minutes: int) -> None:
    record = world.store.schedules.read_schedule(TENANT, name)
    assert record is not None
    heads = {head.ref.id: head for head in world.log.heads() if head.workflow == name}
    ticks = {saga_of(record, _tick(record, number), 0): number for number in range(1, 2 * minutes + 30)}
    started = {saga: ticks[saga] for saga in heads if saga in ticks}
    if strange := heads.keys() - ticks.keys():
        ordeal.broken.append(f"{ONCE}: {name}: sagas of no tick: {strange}")
    said = {one.saga for one in record.recent if one.what == STARTED}
    if len(heads) != record.started or said != heads.keys():
        ordeal.broken.append(
            f"{ONCE}: {name}: {len(heads)} sagas, {record.started} ticks are said to be started"
        )
    numbers = sorted(started.values())
    if name != "skips" and numbers != list(range(1, len(numbers) + 1)):
        ordeal.broken.append(f"{EVERY}: {name}: only the ticks {numbers} have been started")
    if name == "quick" and len(numbers) < minutes:
        ordeal.broken.append(f"{EVERY}: {name}: {len(numbers)} of {minutes} ticks have been started")
    _counts(ordeal, record, numbers)
    for saga, number in started.items():
        late = (heads[saga].created - _tick(record, number)) / 1_000
        if late < -3 or (name != "queues" and late > LATE_S):
            ordeal.broken.append(f"{TIME}: {name}: tick {number} was started {late:.1f} s late")
    if name != "quick":
        _overlaps(world, ordeal, name, sorted(heads.values(), key=lambda head: head.created))


def _tick(record: ScheduleRecord, number: int) -> int:
    return record.anchor + number * MINUTE_MS


def _counts(ordeal: Ordeal, record: ScheduleRecord, numbers: list[int]) -> None:
    skipped = sum(one.count for one in record.recent if one.what == SKIPPED)
    newest = max(((one.tick - record.anchor) // MINUTE_MS for one in record.recent), default=0)
    ended = record.started + record.skipped + record.missed + record.refused
    if record.skipped != skipped or record.missed or record.refused or record.opening is not None:
        ordeal.broken.append(f"{COUNTS}: {record}")
    if ended != newest:
        ordeal.broken.append(
            f"{COUNTS}: {record.workflow}: {newest} ticks have come, and {ended} are told of"
        )


def _overlaps(world: World, ordeal: Ordeal, name: str, heads: list[Head]) -> None:
    ended_at = 0.0
    for head in heads:
        if head.created < ended_at - 3_000:
            ordeal.broken.append(
                f"{OVERLAP}: {name}: a saga began {ended_at - head.created} ms before the last had ended"
            )
        ended_at = max(ended_at, _end(world, head.ref))


def _end(world: World, ref: SagaRef) -> float:
    entries = world.entries(ref.id)
    return entries[-1].at if entries and world.end(ref.id) else EPOCH * 2.0
