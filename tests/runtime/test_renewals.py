"""Leases of long invocations in virtual time: they are renewed, and a death is found within a minute."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from baton.core.limits import Limits
from baton.core.log.events import Revived
from baton.errors import StoreUnavailable
from baton.ports import Head, Message, SagaRef
from baton.runtime.engine.parts import InvocationScope
from baton.runtime.invocation.context import Invocation
from baton.runtime.log.lease import RENEWED_AT_ONCE, Lease
from tests.kit.corpus import start
from tests.kit.virtual_time import EPOCH
from tests.kit.world import TENANT, World

LIMITS = Limits()
LEASE_S, SKEW_S = LIMITS.lease_ms / 1_000, LIMITS.clock_skew_ms / 1_000
MINUTE_S = 60


def works(seconds: float) -> str:
    return (
        f"name: w\nnodes: {{a: {{tool: work, with: {{n: 1, seconds: {seconds}}}, timeout: 14m}}}}"  # one step
    )


def head_of(world: World, saga: str) -> Head:
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    return head


# -- renewal


@pytest.mark.parametrize(
    ("timeout_s", "seconds", "renewals"),
    [(60, 15, 0), (60, 45, 1), (900, 15, 0), (900, 300, 13), (30, 25, 0)],
)
async def test_only_a_lease_that_is_held_for_long_is_renewed(
    timeout_s: float, seconds: float, renewals: int
) -> None:
    world = World.start(timeout_s=timeout_s, start_late_s=0)
    await start(world, works(seconds), {}, "w")
    await world.settle()
    writes = Counter(world.plan.writes)
    assert (writes["renew"], writes["take"]) == (renewals, 1)


async def test_a_lease_ends_no_later_than_its_invocation_can_last() -> None:
    world = World.start(timeout_s=60)
    saga = await start(world, works(300), {}, "w")
    await asyncio.sleep(40)
    assert (head_of(world, saga).until - EPOCH) / 1_000 == pytest.approx(61, abs=0.1)


async def test_a_process_without_a_watchdog_has_leases_that_last_as_long_as_its_invocation() -> None:
    """Nothing would end it with a lease that it could not renew."""
    world = World.start(stream_on=False, reconciler_on=False)
    saga = await start(world, works(1), {}, "w")
    process = world.process("worker")
    engine, now, ref = world.engine(process), process.clock.now(), SagaRef(TENANT, saga)
    object.__setattr__(engine, "watchdog", None)
    scope = InvocationScope(engine, Invocation(process.id, now, now + 900_000))
    assert isinstance(await scope.leases.acquire(ref, Message(str(ref), 1), alone=True), Lease)
    assert head_of(world, saga).until == now + 901_000
    await asyncio.sleep(300)
    assert "renew" not in world.plan.writes


async def test_a_hundred_leases_are_renewed_a_few_at_a_time_and_one_that_hangs_ends_its_process_alone() -> (
    None
):
    world = World.start(stream_on=False, reconciler_on=False)
    sagas = []
    for number in range(100):
        view, _ = await _started(world, number)
        sagas.append(view["id"])
    process = world.process("worker")
    now = process.clock.now()
    scope = InvocationScope(world.engine(process), Invocation(process.id, now, now + 900_000))
    for saga in sagas:
        ref = SagaRef(TENANT, saga)
        assert isinstance(await scope.leases.acquire(ref, Message(str(ref), 1), alone=True), Lease)
    under_way, most, real = 0, 0, process.offload
    any_call: Any = scope.call

    async def offload(function: Any, /, *args: Any) -> Any:
        nonlocal under_way, most
        if function.__name__ != "renew":
            return await real(function, *args)
        if hangs and args[0].id == sagas[7]:
            await asyncio.sleep(5)
            raise StoreUnavailable("no answer")
        under_way += 1
        most = max(most, under_way)
        try:
            return await real(function, *args)
        finally:
            under_way -= 1

    any_call._offload, hangs = offload, False
    await asyncio.sleep(100)
    assert most == RENEWED_AT_ONCE
    assert {head_of(world, saga).until > process.clock.now() + 20_000 for saga in sagas} == {True}
    assert process.is_at_work
    hangs, last = True, head_of(world, sagas[7]).until
    await asyncio.sleep((last - process.clock.now()) / 1_000 - 1.1)
    assert process.is_at_work
    assert min(head_of(world, saga).until for saga in sagas if saga != sagas[7]) > last
    await asyncio.sleep(0.2)
    assert process.is_dead, "a grace before the end of the lease that it could not renew"
    process.watchdog.set(None)


async def _started(world: World, number: int) -> Any:
    if not number:
        await world.service().register(works(1), json_only=False)
    return await world.service().start("w", {}, f"key-{number}")


# -- a death


@pytest.mark.parametrize("timeout_s", [60, 300, 900])
async def test_a_death_is_found_within_a_minute_at_any_time_limit(timeout_s: float) -> None:
    """Whenever it comes between two runs of the reconciler, and between two renewals."""
    found = [await _found_after(timeout_s, died_s) for died_s in (1, 2, 11, 30, 47, 59, 61, 65, 83, 119)]
    assert max(found) <= MINUTE_S + 1, "and a message's delay is in whole seconds"


async def _found_after(timeout_s: float, died_s: float) -> float:
    loop = asyncio.get_running_loop()
    world = World.start(timeout_s=timeout_s, reconciler_first_s=59.9 - loop.time() % 1)
    if died_s > timeout_s:
        died_s = timeout_s - 1
    saga = await start(world, works(150), {}, "w")
    await asyncio.sleep(died_s)
    holder = world.processes[head_of(world, saga).owner]
    died_at = loop.time()
    holder.kill()
    while not any(isinstance(event, Revived) for event in world.events(saga)):
        await asyncio.sleep(0.2)
        assert loop.time() < died_at + 1_000
    assert world._pump is not None
    world._pump.cancel()
    return loop.time() - died_at


async def test_a_wake_that_finds_a_live_holder_comes_again_when_the_lease_is_over_and_only_once() -> None:
    world = World.start(timeout_s=900, stream_on=False, reconciler_on=False)
    saga = await start(world, works(200), {}, "w")
    ref = str(SagaRef(TENANT, saga))
    world.spawn(world.work([Message(ref, 1)]))
    await asyncio.sleep(10)
    until = head_of(world, saga).until
    sent: list[tuple[Message, int]] = []
    any_queue: Any = world.queue

    def send(messages: list[tuple[Message, int]]) -> tuple[int, ...]:
        sent.extend(messages)
        return ()

    any_queue.send = send
    assert await world.work([Message(ref)]) == []
    ((again, delay),) = sent
    assert again == Message(ref, due=until)
    assert delay == pytest.approx(LEASE_S - 10 + SKEW_S, abs=1)
    assert await world.work([again]) == []
    assert await world.work([Message(ref, 1)]) == []
    assert len(sent) == 1


async def test_a_wake_that_could_not_be_sent_again_is_not_lost_for_the_queue() -> None:
    world = World.start(timeout_s=900, stream_on=False, reconciler_on=False)
    saga = await start(world, works(200), {}, "w")
    ref = str(SagaRef(TENANT, saga))
    world.spawn(world.work([Message(ref, 1)]))
    await asyncio.sleep(10)
    any_queue: Any = world.queue
    any_queue.send = lambda messages: [0]
    message = Message(ref)
    assert await world.work([message], [2]) == [message]


# -- money


async def test_what_a_dead_worker_held_is_free_long_before_its_invocation_would_have_ended() -> None:
    """Its attempt holds 10 cents of 15, and the next one needs as much."""
    document = "name: w\nnodes: {a: {tool: purchase, with: {seconds: 100}, timeout: 5m}}"
    limits = Limits(user_day_budget_usd="0.15")
    world = World.start(timeout_s=900, limits=limits)
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(50)
    world.processes[head_of(world, saga).owner].kill()
    await world.settle(300)
    assert head_of(world, saga).status == "completed"
    assert [type(event) for event in world.events(saga)].count(Revived) == 1
