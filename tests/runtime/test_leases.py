"""The lease in virtual time: what arrives late, clocks that differ, and what the caller of a fork has armed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton.core.limits import Limits
from baton.core.log.events import StepSucceeded
from baton.errors import CorruptLog
from baton.ports import Head, Message, SagaRef
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.context import Invocation
from baton.runtime.log.lease import HELD_UNTIL, Lease
from tests.kit.corpus import start
from tests.kit.documents import chain_of
from tests.kit.world import TENANT, World

SKEW = Limits().clock_skew_ms
WAITS = "name: w\nnodes: {a: {wait: {signal: go}}}"
ALONE: dict[str, Any] = {"stream_on": False, "reconciler_on": False}


def head_of(world: World, saga: str) -> Head:
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    return head


def worker(world: World, skew: int = 0) -> InvocationScope:
    """What an invocation of six seconds works with, in a process whose clock is `skew` ms ahead."""
    process = world.process("worker")
    process.clock.skew = skew
    now = process.clock.now()
    return InvocationScope(world.engine(process), Invocation(process.id, now, now + 6_000))


async def acquire(scope: InvocationScope, saga: str, version: int = 1) -> Lease | str:
    ref = SagaRef(TENANT, saga)
    return await scope.leases.acquire(ref, Message(str(ref), version), alone=True)


def repeatable(world: World) -> list[Any]:
    """Every take from now on, as a request that can arrive once more."""
    takes: list[Any] = []
    real = world.log.take
    any_log: Any = world.log

    def take(*request: Any) -> Head | None:
        takes.append(lambda: real(*request))
        return real(*request)

    any_log.take = take
    return takes


# -- take


async def test_a_take_that_arrives_after_its_lease_was_given_back_seizes_nothing() -> None:
    """Its client gave up on the first request and repeated it; the first one was only late."""
    world = World.start()
    takes = repeatable(world)
    saga = await start(world, WAITS, {}, "w")
    await asyncio.sleep(5)
    before = head_of(world, saga)
    assert before.owner == ""
    assert [take() for take in takes] == [None] * len(takes)
    assert head_of(world, saga) == before


async def test_a_nudge_survives_a_take_that_arrives_twice() -> None:
    world = World.start(**ALONE)
    takes = repeatable(world)
    saga = await start(world, WAITS, {}, "w")
    assert isinstance(await acquire(worker(world), saga), Lease)
    held = head_of(world, saga)
    assert world.log.leave_wake(held.ref, held.owner, held.epoch, 7)
    takes[-1]()
    assert head_of(world, saga).pending_wake == 7


async def test_of_two_that_saw_the_same_head_one_takes_it_and_the_other_looks_again() -> None:
    world = World.start(**ALONE)
    saga = await start(world, WAITS, {}, "w")
    taken = await asyncio.gather(*(acquire(worker(world), saga) for _ in range(2)))
    assert sorted(type(one).__name__ for one in taken) == ["Lease", "str"]
    assert head_of(world, saga).epoch == 1


# -- its end


async def test_a_lease_ends_a_grace_after_the_hard_deadline_of_its_invocation() -> None:
    """Until then what the invocation has begun may still be at work."""
    world = World.start(**ALONE, limits=Limits(lease_grace_ms=1_700))
    saga = await start(world, WAITS, {}, "w")
    parts = worker(world)
    lease = await acquire(parts, saga)
    assert isinstance(lease, Lease)
    assert head_of(world, saga).until == parts.context.tenure.until == parts.invocation.deadline + 1_700


@pytest.mark.parametrize(("ahead", "is_taken"), [(0, False), (SKEW - 10, False), (SKEW + 10, True)])
async def test_a_live_lease_is_not_taken_by_a_worker_whose_clock_is_ahead(ahead: int, is_taken: bool) -> None:
    world = World.start(**ALONE)
    saga = await start(world, WAITS, {}, "w")
    holder = worker(world)
    held = await acquire(holder, saga)
    assert isinstance(held, Lease)
    until = head_of(world, saga).until
    await asyncio.sleep((until - holder.clock.now()) / 1_000 - 0.005)
    found = await acquire(worker(world, skew=ahead), saga, version=0)
    assert isinstance(found, Lease) if is_taken else found == f"{HELD_UNTIL}{until}"


async def test_a_saga_that_is_held_is_due_when_its_lease_is_over_by_every_clock() -> None:
    world = World.start(**ALONE)
    saga = await start(world, WAITS, {}, "w")
    lease = await acquire(worker(world), saga)
    assert isinstance(lease, Lease)
    head = head_of(world, saga)
    assert head.due_at == head.until + SKEW


async def test_a_yield_is_taken_up_by_a_worker_whose_clock_is_as_far_behind_as_may_be() -> None:
    world = World.start(**ALONE)
    saga = await start(world, chain_of(3, 4.0), {"n": 0}, "chain")
    await world.work([Message(str(SagaRef(TENANT, saga)), 1)])
    yielded = head_of(world, saga)
    assert (yielded.owner, yielded.status) == ("", "running")
    assert isinstance(await acquire(worker(world, skew=-SKEW + 100), saga, yielded.folded), Lease)


@pytest.mark.parametrize("early", [1, 1_000, 2_990])
async def test_a_timer_that_comes_early_by_the_clock_of_its_worker_is_waited_for(early: int) -> None:
    world = World.start(**ALONE)
    saga = await start(world, "name: w\nnodes: {a: {wait: {for: 60s}}}", {}, "w")
    await world.work([Message(str(SagaRef(TENANT, saga)), 1)])
    due = head_of(world, saga).due_at
    assert due is not None
    await asyncio.sleep((due - worker(world).clock.now()) / 1_000)
    behind, takes = worker(world, -early), repeatable(world)
    assert isinstance(await acquire(behind, saga), Lease)
    assert behind.clock.now() >= due
    assert len(takes) == 1


# -- release


async def forked_while_at_work(world: World) -> str:
    """A saga that ends while a caller has armed it for a fork that never comes."""
    saga = await start(world, chain_of(2), {"n": 0}, "chain")
    work = asyncio.create_task(world.work([Message(str(SagaRef(TENANT, saga)), 1)]))
    await asyncio.sleep(0.3)
    seen = head_of(world, saga)
    assert seen.owner
    assert world.log.arm(seen, world.process("api").clock.now() + 60_000)
    await work
    return saga


async def test_what_ends_while_a_caller_is_about_to_fork_it_stays_due_by_the_callers_deadline() -> None:
    world = World.start(**ALONE)
    saga = await forked_while_at_work(world)
    head = head_of(world, saga)
    assert (head.owner, head.status) == ("", "completed")
    assert head.due_at == head.armed > 0


async def test_a_release_that_was_refused_because_the_saga_was_armed_is_made_again_and_knows_of_it() -> None:
    world = World.start(**ALONE)
    asked: list[tuple[int, bool]] = []
    real = world.log.release
    any_log: Any = world.log

    def release(ref: SagaRef, owner: str, epoch: int, plan: Any) -> bool:
        assert len(asked) < 9, "it never learns of the arming"
        done = real(ref, owner, epoch, plan)
        asked.append((plan.armed, done))
        return done

    any_log.release = release
    saga = await forked_while_at_work(world)
    assert asked == [(0, False), (head_of(world, saga).armed, True)]
    steps = [event.node for event in world.events(saga) if isinstance(event, StepSucceeded)]
    assert steps == ["s0", "s1"]


# -- a head that cannot be read


async def test_a_head_that_cannot_be_read_makes_a_dead_letter_an_hour() -> None:
    """Its due time would never move on otherwise: 1,436 letters a day, one for each run of the reconciler."""
    world = World.start()
    saga = await start(world, WAITS, {}, "w")
    spoiled, real = SagaRef(TENANT, saga), world.log.read_head
    any_log: Any = world.log

    def read_head(ref: SagaRef) -> Head | None:
        if ref == spoiled:
            raise CorruptLog("no head")
        return real(ref)

    any_log.read_head = read_head
    await asyncio.sleep(86_400)
    assert 20 <= len(world.dead_letters.letters) <= 26
    before = real(spoiled)
    assert before is not None
    assert (before.owner, before.epoch, before.folded) == ("", 0, 0)
