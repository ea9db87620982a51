"""A wake that comes back while a worker still holds its saga: it outlives a dead holder, and is no dead letter of a live one."""

from __future__ import annotations

import asyncio

from baton.core.limits import Limits
from baton.core.log.events import Revived, StepSucceeded
from baton.ports import Message, SagaRef
from tests.kit.corpus import start
from tests.kit.documents import chain_of
from tests.kit.world import TENANT, World

LONG_STEP = "name: w\nnodes: {a: {tool: work, with: {n: 1, seconds: 5}}}"


async def test_a_wake_that_comes_back_before_its_dead_workers_lease_has_run_out_revives_the_saga_later() -> (
    None
):
    """Visibility counts from receiving, a lease from the handler's start: here 4 s later, so it ends 2 s later."""
    world = World.start(start_late_s=4, reconciler_on=False, limits=Limits(clock_skew_ms=0))
    saga = await start(world, LONG_STEP, {}, "w")
    while not world.running:
        await asyncio.sleep(0.1)
    world.start_late_s = 0
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    world.running[saga, "a"].is_dead = True
    await asyncio.sleep(20)
    deaths = [event for event in world.events(saga) if isinstance(event, Revived)]
    assert len(deaths) == 1
    assert 0 < deaths[0].at - head.until < 7_000, "at the end of the next visibility of 8 s"
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    assert world.dead_letters.letters == []


async def test_a_wake_of_a_saga_that_is_at_work_all_the_time_is_no_dead_letter() -> None:
    world = World.start()
    books = world.books
    saga = await start(world, chain_of(100, 0.9), {"n": 0}, "chain")
    for moment in range(20):
        await asyncio.sleep(1)
        failing = Message(str(SagaRef(TENANT, saga)), moment % 7)
        world.spawn(world.queue.deliver(failing, 0, receives=1))
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    assert world.dead_letters.letters == []
    assert len(books.asked) == len(books.done) == 100


async def test_starts_that_are_always_late_deliver_every_wake_again_and_do_nothing_twice() -> None:
    world = World.start(start_late_s=5)
    books = world.books
    saga = await start(world, chain_of(12, 1.1), {"n": 0}, "chain")
    await world.settle()
    view = await world.queries().show(saga)
    assert (view["status"], view["revivals"]) == ("completed", 0)
    done = [event.node for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert len(done) == len(set(done)) == len(books.asked) == 12
    assert world.dead_letters.letters == []
