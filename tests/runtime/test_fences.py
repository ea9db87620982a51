"""What keeps writers apart who write at the same moment: ids of requests, epochs, a fence that is put again, a last look."""

from __future__ import annotations

import asyncio
from typing import Any

from baton import Context, tool
from baton.core.log.codec import encode_entry
from baton.core.log.events import Entry, Revived, SignalReceived, StepInterrupted, StepSucceeded, Value
from baton.ports import Appended, Message, Record, SagaRef, Wake
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.context import Invocation
from baton.runtime.worker.runner import SUPERSEDED, Runner
from tests.kit.corpus import start
from tests.kit.documents import chain_of
from tests.kit.process import Process
from tests.kit.world import TENANT, World

VALUE = Value(v=1)
ALONE: dict[str, Any] = {"stream_on": False, "reconciler_on": False}
TWO_WAITS = "name: w\nnodes:\n  a: {wait: {signal: a}}\n  b: {wait: {signal: b}}\n"


def runner_of(world: World, process: Process, last_ms: int = 6_000) -> Runner:
    now = process.clock.now()
    return Runner(InvocationScope(world.engine(process), Invocation(process.id, now, now + last_ms)))


async def dead(world: World, saga: str) -> None:
    """An invocation takes the lease and is never heard of again; its lease runs out."""
    ref, now = SagaRef(TENANT, saga), world.process("worker").clock.now()
    head = world.log.read_head(ref)
    assert head is not None
    assert world.log.take(ref, "dies", now + 7_000, head.epoch, now + 10_000) is not None
    await asyncio.sleep(20)


async def test_two_signals_that_are_appended_at_once_are_both_in_the_log() -> None:
    world = World.start(**ALONE)
    saga = await start(world, TWO_WAITS, {}, "w")
    said = await asyncio.gather(*(world.service().signal(saga, name, name, "k") for name in "ab"))
    assert sorted(answer["version"] for answer in said) == [2, 3]
    heard = [event.name for event in world.events(saga) if isinstance(event, SignalReceived)]
    assert sorted(heard) == ["a", "b"]


async def test_a_holder_that_finds_an_entry_of_a_newer_one_when_it_loads_does_nothing() -> None:
    world = World.start(**ALONE)
    books = world.books
    saga = await start(world, chain_of(2), {"n": 0}, "chain")
    ref, process = SagaRef(TENANT, saga), world.process("worker")
    world.slow["read_tail"] = 1.0
    late = asyncio.create_task(runner_of(world, process).run(Message(str(ref), 1), alone=True))
    await asyncio.sleep(0.5)  # it has taken the lease and has not loaded yet
    world.slow.clear()
    head = world.log.read_head(ref)
    assert head is not None
    assert head.owner == process.id
    assert world.log.take(ref, "heir", head.until + 100_000, head.epoch, head.until + 103_000) is not None
    state = Revived(dead=process.id, dead_epoch=head.epoch, dead_until=head.until, at=head.until)
    heir = Entry(version=2, branch=0, at=head.until, epoch=head.epoch + 1, invocation="heir", events=(state,))
    assert world.log.append(ref, Record(0, 2, encode_entry(heir)))
    assert await late == SUPERSEDED
    assert len(world.entries(saga)) == 2
    assert not books.asked
    after = world.log.read_head(ref)
    assert after is not None
    assert after.owner == "heir"


async def test_the_fence_of_a_revival_is_put_again_after_another_came_first() -> None:
    world = World.start(**ALONE)
    saga = await start(world, TWO_WAITS, {}, "w")
    await dead(world, saga)
    real = world.log.append
    between: list[str] = []

    def append(ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        if len(between) < 2:
            between.append("signal")
            entry = Entry(
                version=record.version,
                branch=0,
                at=record.version,
                epoch=0,
                invocation=f"request-{record.version}",
                events=(
                    SignalReceived(
                        name="a", key=str(record.version), payload=VALUE, by="ann", at=record.version
                    ),
                ),
            )
            assert real(ref, Record(0, record.version, encode_entry(entry)))
        return real(ref, record, wake)

    any_log: Any = world.log
    any_log.append = append
    process = world.process("worker")
    await runner_of(world, process).run(Message(str(SagaRef(TENANT, saga)), 1), alone=True)
    own = [entry for entry in world.entries(saga) if entry.invocation == process.id]
    assert len(between) == 2
    assert isinstance(own[0].events[0], Revived), "before anything else"
    assert sum(isinstance(event, Revived) for event in world.events(saga)) == 1


async def test_a_holder_whose_lease_ran_out_while_it_put_a_value_away_does_not_append_any_more() -> None:
    document = "name: w\nnodes: {a: {tool: fill, with: {size: 20}}}\noutput: '${input.text}'\n"
    world = World.start(**ALONE)
    saga = await start(world, document, {"text": "x" * 20_000}, "w")
    process = world.process("worker")
    real = world.blobs.put

    def put(tenant: str, data: bytes, period: str = "") -> str:
        process.clock.skew = 60_000  # as if it had been frozen here and thawed a minute later
        return real(tenant, data, period)

    any_blobs: Any = world.blobs
    any_blobs.put = put
    before = world.entries(saga)
    ended = await runner_of(world, process).run(Message(str(SagaRef(TENANT, saga)), 1), alone=True)
    assert process.clock.skew, "the output of the saga was put away"
    assert (ended, world.entries(saga)) == (SUPERSEDED, before)


async def test_a_cut_off_keeps_what_finishes_just_then() -> None:
    world = World.start(**ALONE)

    @tool("finishes", registry=world.registry, timeout="60s")
    async def finishes(context: Context) -> str:
        """It is done as soon as it is told to stop."""
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "done"
        return "never"

    world.tools = world.registry.specs()
    document = "name: w\nnodes: {a: {tool: finishes}, b: {tool: hang}}"
    saga = await start(world, document, {}, "w")
    await world.work([Message(str(SagaRef(TENANT, saga)), 1)])
    events = world.events(saga)
    assert [event.node for event in events if isinstance(event, StepSucceeded)] == ["a"]
    assert [event.node for event in events if isinstance(event, StepInterrupted)] == ["b"]
