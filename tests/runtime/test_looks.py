"""A look at a saga that may have missed a wake: one update where there is nothing, and no lease."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from baton.core.limits import Limits
from baton.core.log.events import ChildReported, SignalReceived
from baton.ports import SWEEP, TIMER, WORK, Head, Message, SagaRef
from tests.kit.corpus import start
from tests.kit.world import TENANT, World

HOUR, DAY = 3_600_000, 86_400_000
ALONE = {"stream_on": False, "queue_on": False, "reconciler_on": False}
WAITS = "name: w\nnodes: {a: {wait: {signal: news}}}"


def head_of(world: World, saga: str) -> Head:
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    return head


async def waiting(world: World, document: str = WAITS) -> str:
    """A saga that waits."""
    saga = await start(world, document, {}, "w")
    await world.work([Message(str(SagaRef(TENANT, saga)), 1)])
    return saga


async def look(world: World, saga: str) -> Head:
    """What a worker leaves that is invoked for it when it is due."""
    due = head_of(world, saga).due_at
    assert due is not None
    await asyncio.sleep(max(0, due - world.process("clock").clock.now()) / 1_000)
    await world.work([Message(str(SagaRef(TENANT, saga)))])
    return head_of(world, saga)


async def test_a_look_that_finds_nothing_is_one_update_and_takes_no_lease() -> None:
    world = World.start(**ALONE)
    saga = await waiting(world)
    before = head_of(world, saga)
    world.plan.writes.clear()
    world.plan.reads.clear()
    after = await look(world, saga)
    assert (world.plan.writes, world.plan.reads) == (["defer"], ["read_head", "read_tail"])
    assert after == msgspec.structs.replace(before, due_at=after.due_at)


async def test_the_time_doubles_from_look_to_look_up_to_a_day() -> None:
    world = World.start(**ALONE)
    saga = await waiting(world)
    since, found = head_of(world, saga).quiet_since, []
    for _ in range(7):
        found.append(round(((head_of(world, saga).due_at or 0) - since) / HOUR))
        await look(world, saga)
    assert found == [1, 2, 4, 8, 16, 32, 56]
    assert head_of(world, saga).epoch == 1


async def test_a_signal_whose_wake_was_lost_is_found_by_the_look() -> None:
    world = World.start(**ALONE)
    saga = await waiting(world)
    await look(world, saga)
    await world.service().signal(saga, "news", {}, key="k")
    assert (await look(world, saga)).status == "completed"


async def test_a_fork_whose_caller_was_late_is_found_in_the_branch_that_it_ends() -> None:
    """It came after the time for which it had armed the saga, and its wake was lost."""
    world = World.start(**ALONE)
    saga = await waiting(world, "name: w\nnodes: {a: {wait: {for: 5s}}, b: {wait: {signal: x}, after: a}}")
    await look(world, saga)
    waits = head_of(world, saga)
    assert waits.lane == SWEEP
    await world.service().fork(saga, 2, "again", key="k")
    await asyncio.sleep(70)
    any_log: Any = world.log
    any_log._heads[waits.ref] = waits
    any_log._due.put(waits)
    after = await look(world, saga)
    assert (after.epoch, after.branch) == (waits.epoch + 1, 1)


async def test_a_long_timer_is_not_passed_over_and_is_exact() -> None:
    world = World.start(**ALONE)
    saga = await waiting(world, "name: w\nnodes: {a: {wait: {for: 30d}}}")
    began = head_of(world, saga)
    assert abs(began.timer - began.created - 30 * DAY) < 1_000
    while (head := await look(world, saga)).lane == SWEEP:
        pass
    assert (head.lane, head.due_at, head.epoch) == (TIMER, began.timer, 1)
    assert (await look(world, saga)).status == "completed"


async def test_what_is_due_by_itself_soon_is_seen_to_by_a_worker_that_takes_the_lease() -> None:
    """It sends the message that makes it exact. Only a look that comes late finds one."""
    world = World.start(limits=Limits(sweep_shortest_ms=480_000), **ALONE)
    saga = await waiting(world, "name: w\nnodes: {a: {wait: {for: 30m}}}")
    assert head_of(world, saga).lane == SWEEP
    await asyncio.sleep(20 * 60)
    after = await look(world, saga)
    assert (after.epoch, after.lane, after.wake is not None) == (2, TIMER, True)


async def test_a_parent_is_looked_at_after_five_minutes_and_asks_its_children() -> None:
    world = World.start(**ALONE)
    await world.service().register("name: child\nnodes: {a: {wait: {signal: go}}}", json_only=False)
    saga = await waiting(world, "name: w\nnodes: {c: {workflow: child}}")
    head = head_of(world, saga)
    assert (head.lane, round(((head.due_at or 0) - head.created) / 60_000)) == (WORK, 5)
    (child,) = (one.ref for one in world.log.heads() if one.ref.id != saga)
    await world.service().signal(child.id, "go", {}, key="k")
    await world.work([Message(str(child), 2)])
    await look(world, saga)
    assert any(isinstance(event, ChildReported) for event in world.events(saga))


async def test_a_saga_that_a_caller_is_about_to_fork_is_taken() -> None:
    world = World.start(**ALONE)
    saga = await waiting(world)
    before = head_of(world, saga)
    armed = (before.due_at or 0) + 30_000
    assert world.log.arm(before, armed)
    after = await look(world, saga)
    assert (after.epoch, after.due_at, after.lane) == (2, armed, WORK)


@pytest.mark.parametrize("change", ["armed", "signalled"])
async def test_a_look_that_the_head_has_changed_under_looks_again(change: str) -> None:
    world = World.start(**ALONE)
    saga = await waiting(world)
    any_log: Any = world.log
    real = any_log.read_tail

    def read_tail(ref: SagaRef, *where: Any) -> Any:
        found = real(ref, *where)
        any_log.read_tail = real
        if change == "armed":
            assert world.log.arm(head_of(world, saga), head_of(world, saga).due_at + 60_000)  # type: ignore[operator]
        else:
            assert any_log.take(ref, "another", head_of(world, saga).due_at, 1, 1 << 50) is not None
        return found

    any_log.read_tail = read_tail
    after = await look(world, saga)
    assert after.epoch == 2


async def test_a_wake_that_knows_of_news_needs_no_look() -> None:
    world = World.start(**ALONE)
    saga = await waiting(world)
    await world.service().signal(saga, "news", {}, key="k")
    world.plan.writes.clear()
    await world.work([Message(str(SagaRef(TENANT, saga)), 3)])
    assert "defer" not in world.plan.writes
    assert any(isinstance(event, SignalReceived) for event in world.events(saga))
    assert head_of(world, saga).status == "completed"
