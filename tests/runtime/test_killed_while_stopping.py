"""A saga that kills its workers while it stops, or cancels what a fork has left, is parked; a person lets it go on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from baton.core.log.codec import decode_entry
from baton.core.log.events import (
    CancelRequested,
    ChildrenAbandoned,
    Event,
    NoticesSent,
    Parked,
    Revived,
    SagaEnded,
    StepInterrupted,
)
from baton.ports import Appended, Record, SagaRef, Wake
from tests.kit.corpus import start
from tests.kit.faults import Crash
from tests.kit.world import TENANT, World
from tests.runtime.test_many_children import children_end, open_children, parts, times_cancelled, work

A_WHILE = 600  # several sweeps, and less than the children wait
SLOW = (
    "name: slow\nnodes: {a: {tool: work, with: {n: 1, seconds: 3}}, b: {tool: work, after: a, with: {n: 2}}}"
)


class Deadly:
    """As long as it `is_on`, the worker that has this saga dies when it is about to append one of these events."""

    def __init__(self, world: World, saga: str, is_meant: Callable[[str, Event], bool]) -> None:
        self.world, self.ref, self.is_meant = world, SagaRef(TENANT, saga), is_meant
        self.is_on = True
        self.append = world.log.append
        any_log: Any = world.log
        any_log.append = self.die_or_append

    def die_or_append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        events = decode_entry(record.data).events
        if self.is_on and any(self.is_meant(ref.id, event) for event in events):
            head = self.world.log.read_head(self.ref)
            assert head is not None
            self.world.processes[head.owner].is_dead = True
            raise Crash
        return self.append(ref, record, wake)


def count(world: World, saga: str, kind: type[Event]) -> int:
    return sum(isinstance(event, kind) for event in world.events(saga))


async def status(world: World, saga: str) -> str:
    return str((await world.queries().show(saga))["status"])


async def is_parked_for_good(world: World, saga: str, revivals: int = 3) -> None:
    """It is parked after so many revivals, everybody sees it, and nothing more is tried."""
    await asyncio.sleep(A_WHILE)
    view = await world.queries().show(saga)
    assert (view["status"], view["revivals"]) == ("parked", revivals)
    assert view["parked"]["code"] == "worker_killed"
    assert view["reason"].startswith("worker_killed: ")
    listed = (await world.queries().sagas(status="parked"))["sagas"]
    assert [one["id"] for one in listed] == [saga]
    before = len(world.events(saga))
    await asyncio.sleep(A_WHILE)
    assert len(world.events(saga)) == before


async def with_children(world: World, count: int) -> str:
    saga = await open_children(world, count)
    world.timeout_s = 6
    return saga


def cancels_child(saga: str) -> Callable[[str, Event], bool]:
    return lambda ref, event: ref != saga and isinstance(event, CancelRequested)


async def test_a_cancelled_parent_whose_children_kill_its_workers_is_parked_and_goes_on_when_it_is_resumed() -> (
    None
):
    world = World.start()
    saga = await with_children(world, 5)
    deadly = Deadly(world, saga, cancels_child(saga))
    await world.service().cancel(saga, "enough", 0)
    await is_parked_for_good(world, saga)
    assert (await world.queries().show(saga))["cancelling"]
    deadly.is_on = False
    await world.service().resume(saga)
    await asyncio.sleep(10)
    assert await status(world, saga) == "cancelled"
    assert times_cancelled(world, saga) == {1: 5}


async def test_a_second_cancel_lets_a_parked_one_go_on_too() -> None:
    world = World.start()
    saga = await with_children(world, 2)
    deadly = Deadly(world, saga, cancels_child(saga))
    await world.service().cancel(saga, "enough", 0)
    await is_parked_for_good(world, saga)
    assert (await world.service().cancel(saga, "please", 60_000))["status"] == "running"
    await is_parked_for_good(world, saga, revivals=6)
    deadly.is_on = False
    await world.service().cancel(saga, "please", 60_000)
    await asyncio.sleep(10)
    assert await status(world, saga) == "cancelled"
    assert (await world.service().cancel(saga, "please", 60_000))["status"] == "cancelled"


async def test_a_fork_whose_left_children_kill_its_workers_is_parked_and_goes_on_when_it_is_resumed() -> None:
    world = World.start()
    saga = await with_children(world, 5)
    deadly = Deadly(world, saga, cancels_child(saga))
    await world.service().fork(saga, 2, "before the children")
    await is_parked_for_good(world, saga)
    assert count(world, saga, ChildrenAbandoned) == 0
    deadly.is_on = False
    await world.service().resume(saga)
    await asyncio.sleep(10)
    assert parts(world, saga) == [5]
    assert await status(world, saga) == "waiting"
    await world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(10)
    assert await status(world, saga) == "cancelled"


async def test_a_saga_that_kills_its_workers_within_the_grace_of_its_cancel_is_parked_and_ends_cancelled() -> (
    None
):
    """Its step runs out of its invocation; none of it is run again."""
    world = World.start()
    saga = await start(world, SLOW, {}, "slow")
    deadly = Deadly(world, saga, lambda _, event: isinstance(event, SagaEnded | StepInterrupted))
    await asyncio.sleep(1)
    await world.service().cancel(saga, "enough", 20 * 3_600_000)
    await is_parked_for_good(world, saga)
    assert len(world.starts) == 1
    deadly.is_on = False
    await world.service().resume(saga)
    await asyncio.sleep(10)
    assert await status(world, saga) == "cancelled"
    assert len(world.starts) == 1


async def test_a_saga_whose_notice_kills_its_workers_tells_once_more_when_it_is_parked_and_then_nothing() -> (
    None
):
    world = World.start()
    document = "name: w\nnodes: {a: {tool: rent, with: {stall: s}}}"
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(0.15)
    world.processes[world.invocations[-1]].is_dead = True  # in the middle of what may happen only once
    await world.service().cancel(saga, "enough", 0)
    deadly = Deadly(world, saga, lambda _, event: isinstance(event, NoticesSent))
    await is_parked_for_good(world, saga, revivals=4)
    deadly.is_on = False
    await world.service().resume(saga)
    await asyncio.sleep(10)
    assert await status(world, saga) == "cancelled"


@pytest.mark.parametrize("is_fork", [True, pytest.param(False, marks=pytest.mark.soak)])
async def test_a_worker_that_dies_in_every_part_of_many_children_gets_them_all_cancelled(
    is_fork: bool,
) -> None:
    """Each of them has written down a part before, or the end of children that the one before it has asked."""
    world = World.start(stream_on=False, reconciler_on=False)
    saga = await open_children(world, 1_050)
    world.timeout_s = 60
    asked: set[tuple[str, str]] = set()

    def is_beyond_a_part(ref: str, event: Event) -> bool:
        head = world.log.read_head(SagaRef(TENANT, saga))
        assert head is not None
        if cancels_child(saga)(ref, event):
            asked.add((head.owner, ref))
        return sum(owner == head.owner for owner, _ in asked) > 250

    deadly = Deadly(world, saga, is_beyond_a_part)
    if is_fork:
        await world.service().fork(saga, 2, "before the children")
    else:
        await world.service().cancel(saga, "enough", 0)
    for _ in range(8):
        await work(world, saga)
        if not is_fork:
            deadly.is_on = False
            await children_end(world, saga)
            deadly.is_on = True
        await asyncio.sleep(90)  # longer than a lease
    assert times_cancelled(world, saga) == {1: 1_050}
    assert count(world, saga, Revived) > 3
    assert count(world, saga, Parked) == 0
    assert await status(world, saga) == ("waiting" if is_fork else "cancelled")
