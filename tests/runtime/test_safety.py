"""Fifty invocations, one execution; a stale invocation that wakes after its lease appends and starts nothing."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from baton.core.limits import Limits
from baton.core.log.events import StepSucceeded
from baton.ports import Message, NoRoom, SagaRef, StepContext
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.context import Invocation, Tenure
from baton.runtime.log.lease import HELD, NOTHING_NEW, WAKE_LEFT, Lease, WithinLease
from baton.runtime.worker.runner import SUPERSEDED, Runner
from tests.kit.corpus import start
from tests.kit.documents import chain_of
from tests.kit.faults import FREEZE, NO_ANSWER, STALL, Plan
from tests.kit.world import TENANT, World


async def invoke(world: World, saga: str, version: int) -> str:
    """One worker invocation with one wake for one saga; how it ended."""
    process = world.process("worker")
    now = process.clock.now()
    scope = InvocationScope(world.engine(process), Invocation(process.id, now, now + 6_000))
    return await Runner(scope).run(Message(str(SagaRef(TENANT, saga)), version), alone=True)


async def test_fifty_concurrent_invocations_on_one_saga_run_it_once() -> None:
    world = World.start(stream_on=False, reconciler_on=False)
    books = world.books
    saga = await start(world, chain_of(4), {"n": 0}, "chain")
    endings = Counter(await asyncio.gather(*(invoke(world, saga, 1) for _ in range(50))))
    assert endings["finished"] == 1
    assert sum(endings.values()) == 50
    assert set(endings) <= {"finished", WAKE_LEFT, HELD, NOTHING_NEW}
    assert endings[WAKE_LEFT] >= 1
    steps = Counter(event.node for event in world.events(saga) if isinstance(event, StepSucceeded))
    assert steps == {"s0": 1, "s1": 1, "s2": 1, "s3": 1}
    assert len(books.asked) == 4


async def test_fifty_concurrent_starts_with_one_key_make_one_saga() -> None:
    world = World.start()
    books = world.books
    await world.service().register(chain_of(2), json_only=False)
    answers = await asyncio.gather(*(world.service().start("chain", {"n": 0}, "key") for _ in range(50)))
    assert len({view["id"] for view, _ in answers}) == 1
    assert sum(is_new for _, is_new in answers) == 1
    await world.settle()
    assert len(books.done) == 2


async def test_a_stale_invocation_that_wakes_after_its_lease_appends_and_starts_nothing() -> None:
    world = World.start(plan=Plan({10: STALL}))
    books = world.books
    saga = await start(world, chain_of(5), {"n": 0}, "chain")
    # the tenth write is in the middle of the first invocation's steps; it freezes there for longer than its lease
    await world.settle()
    frozen = next(fault.partition(":")[0] for fault in world.faults)
    entries = world.entries(saga)
    own = [entry for entry in entries if entry.invocation == frozen]
    heir = next(entry for entry in entries if entry.epoch > own[-1].epoch)
    assert all(entry.version < heir.version for entry in own)
    asked_before = len(books.asked)
    await asyncio.sleep(60)
    assert len(books.asked) == asked_before
    assert world.entries(saga) == entries
    steps = Counter(event.node for event in world.events(saga) if isinstance(event, StepSucceeded))
    assert set(steps.values()) == {1}


@pytest.mark.parametrize("write", [8, 11])
async def test_a_frozen_invocation_whose_entry_was_there_already_learns_of_its_heir_and_starts_nothing(
    write: int,
) -> None:
    """No answer says that the entry was put; it is put again, and meanwhile the process and its clock stand still for longer than the lease."""
    world = World.start(plan=Plan({write: NO_ANSWER, write + 1: FREEZE}))
    await start(world, chain_of(5), {"n": 0}, "chain")
    await world.settle()
    assert [fault.partition(": ")[2] for fault in world.faults] == [
        "no answer at append",
        "freeze at append",
    ]
    await asyncio.sleep(60)
    assert len(world.books.asked) == 5


async def test_past_its_own_lease_a_runner_stops_even_if_no_other_took_over() -> None:
    world = World.start(stream_on=False, reconciler_on=False)
    saga = await start(world, chain_of(5), {"n": 0}, "chain")
    process = world.process("worker")
    now = process.clock.now()
    scope = InvocationScope(world.engine(process), Invocation(process.id, now, now + 6_000))
    running = asyncio.create_task(Runner(scope).run(Message(str(SagaRef(TENANT, saga)), 1), alone=True))
    await asyncio.sleep(1)
    before = world.entries(saga)
    process.clock.skew = 60_000  # as if the process had been frozen and thawed a minute later
    assert await running == SUPERSEDED
    assert world.entries(saga) == before


async def test_what_goes_before_a_call_may_outlast_the_lease_and_then_there_is_no_call() -> None:
    world = World.start(stream_on=False, reconciler_on=False)
    process = world.process("worker")
    now, engine = process.clock.now(), world.engine(process)
    tenure = Tenure.of(Invocation("i", now, now + 1_000), process.clock, Limits(lease_grace_ms=500))
    guarded = WithinLease(engine.performer, process.clock, tenure)
    context = StepContext(saga="s", tenant=TENANT, user="ada", node="a", deadline_ms=now + 60_000)
    await asyncio.sleep(1.4)
    assert await guarded.perform("add", {"numbers": [1, 2]}, context) == {"n": 3}
    await asyncio.sleep(0.1)
    with pytest.raises(NoRoom):
        await guarded.perform("add", {"numbers": [1, 2]}, context)
    assert len(world.starts) == 1


async def test_an_older_lease_stops_at_the_first_entry_of_a_newer_one() -> None:
    world = World.start(stream_on=False, reconciler_on=False)
    saga = await start(world, chain_of(3), {"n": 0}, "chain")
    ref = SagaRef(TENANT, saga)
    first = asyncio.create_task(invoke(world, saga, 1))
    await asyncio.sleep(0.1)
    head = world.log.read_head(ref)
    assert head is not None
    # Another worker takes the lease while the first still believes in it: its clock is far ahead of ours.
    assert world.log.take(ref, "thief", head.until + 100_000, head.epoch, head.until + 103_000) is not None
    process = world.process("worker")
    scope = InvocationScope(
        world.engine(process), Invocation("thief", process.clock.now(), process.clock.now() + 6_000)
    )
    lease = await scope.leases.acquire(ref, Message(str(ref), 1), alone=True)
    assert isinstance(lease, Lease)
    second = asyncio.create_task(Runner(scope).run(Message(str(ref), 1), alone=True))
    assert await first == SUPERSEDED
    await second
    steps = Counter(event.node for event in world.events(saga) if isinstance(event, StepSucceeded))
    assert set(steps.values()) == {1}
