"""A call to a store that never answers ends by itself, in time for whatever is to be done about it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import Context, tool
from baton.errors import StoreUnavailable, Throttled
from baton.ports import Message, SagaRef, Wake
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.context import Invocation, StoreRetrier
from baton.runtime.relay import StreamItem
from tests.kit.corpus import start
from tests.kit.virtual_time import SeededEntropy, VirtualClock
from tests.kit.world import TENANT, World

FOREVER = 100_000.0
ALONE: dict[str, Any] = {"stream_on": False, "reconciler_on": False}


def patience(world: World, offload: Any = None, *, deadline: int, cut_off: int | None = None) -> StoreRetrier:
    """A caller whose times are milliseconds from now."""
    now = VirtualClock().now()
    return StoreRetrier(
        offload or world.process("worker").offload,
        VirtualClock(),
        SeededEntropy(1),
        world.limits,
        now + deadline,
        None if cut_off is None else now + cut_off,
    )


@pytest.mark.parametrize(
    ("begins", "ends"),
    [(0, 4_000), (3_700, 4_200), (3_990, 4_490), (4_000, 5_000), (4_900, 5_000), (6_000, 6_000)],
)
async def test_a_call_that_hangs_ends_at_the_cut_off_and_one_that_begins_late_before_the_deadline(
    begins: int, ends: int
) -> None:
    world = World.start(**ALONE)
    call = patience(world, deadline=5_000, cut_off=4_000)
    began = VirtualClock().now()
    await asyncio.sleep(begins / 1_000)
    world.slow["read_head"] = FOREVER
    with pytest.raises(StoreUnavailable):
        await call(world.log.read_head, SagaRef(TENANT, "s"))
    assert VirtualClock().now() - began == ends


async def test_without_a_cut_off_a_call_that_hangs_ends_at_the_deadline() -> None:
    world = World.start(**ALONE)
    call = patience(world, deadline=5_000)
    world.slow["read_head"] = FOREVER
    began = VirtualClock().now()
    with pytest.raises(StoreUnavailable):
        await call(world.log.read_head, SagaRef(TENANT, "s"))
    assert VirtualClock().now() - began == 5_000


async def test_pauses_between_tries_do_not_outlast_the_time_of_the_call() -> None:
    world = World.start(**ALONE)

    async def busy(*_: object, **__: object) -> Any:
        raise Throttled("slow down")

    call = patience(world, busy, deadline=5_000, cut_off=4_000)
    began = VirtualClock().now()
    with pytest.raises(Throttled):
        await call(world.log.read_head, SagaRef(TENANT, "s"))
    assert VirtualClock().now() - began <= 4_000


async def test_a_timeout_of_the_call_itself_is_not_taken_for_the_end_of_its_time() -> None:
    world = World.start(**ALONE)

    async def impatient(*_: object, **__: object) -> Any:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        await patience(world, impatient, deadline=5_000)(len, ())


async def test_a_caller_that_is_cancelled_during_a_call_is_cancelled() -> None:
    world = World.start(**ALONE)
    world.slow["read_head"] = FOREVER
    call = patience(world, deadline=5_000)
    task = asyncio.create_task(call(world.log.read_head, SagaRef(TENANT, "s")))
    await asyncio.sleep(1)
    task.cancel()
    await asyncio.wait({task})
    assert task.cancelled()


async def test_a_request_is_answered_when_the_table_is_not() -> None:
    world = World.start(**ALONE)
    world.slow["read_head"] = FOREVER
    began = VirtualClock().now()
    with pytest.raises(StoreUnavailable):
        await world.service().health()
    assert VirtualClock().now() - began == 28_000 - world.limits.answer_ms


async def test_a_call_of_a_worker_that_hangs_ends_just_before_its_steps_are_cut_off() -> None:
    world = World.start(**ALONE)
    process = world.process("worker")
    now = process.clock.now()
    scope = InvocationScope(world.engine(process), Invocation(process.id, now, now + 6_000))
    world.slow["read_head"] = FOREVER
    with pytest.raises(StoreUnavailable):
        await scope.call(world.log.read_head, SagaRef(TENANT, "s"))
    assert scope.deadline.cut_off - 50 < process.clock.now() < scope.deadline.cut_off


async def test_a_topic_that_hangs_until_the_end_leaves_time_to_let_the_saga_go() -> None:
    world = World.start(**ALONE)

    @tool("spends", registry=world.registry)
    async def spends(context: Context) -> None:
        await asyncio.sleep(2)
        context.spend("2")

    world.tools = world.registry.specs()
    saga = await start(world, "name: w\nnodes: {a: {tool: spends}, b: {tool: spends, after: a}}", {}, "w")
    world.slow["tell"] = FOREVER
    assert await world.work([Message(str(SagaRef(TENANT, saga)), 1)]) == []
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    assert (head.owner, head.status) == ("", "parked")


async def test_a_relay_reports_in_time_that_a_parent_could_not_be_told() -> None:
    world = World.start(**ALONE)
    await world.service().register("name: w\nnodes: {a: {wait: {for: 1h}}}", json_only=False)
    child = (await world.service().start("w", {}, "c"))[0]["id"]
    record = world.log.read_head(SagaRef(TENANT, child))
    assert record is not None
    assert record.wake is None
    world.slow["announce"] = FOREVER
    process = world.process("relay")
    now = process.clock.now()
    ref = SagaRef(TENANT, child)
    item = StreamItem("1", ref, Wake(v=1, parent=str(ref), slot="a"))
    assert await world.relay(process).handle([item], now + 10_000) == ["1"]
    assert process.clock.now() < now + 10_000
