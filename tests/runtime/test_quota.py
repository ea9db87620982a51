"""How many sagas of one tenant are at work at once: callers are refused, children are put off, other tenants notice nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from baton.core.limits import Limits
from baton.errors import StoreUnavailable, Throttled, TooManyRequests
from baton.ports import SagaRef
from baton.runtime.starting.start import ASK_FOR_MS, FULL_FOR_MS, GOOD_FOR_MS
from tests.kit.documents import chain_of
from tests.kit.sentences import Says
from tests.kit.world import World

FEW = Limits(tenant_sagas=4)
FAN_OF_CHILDREN = (
    "name: parent\nnodes:\n"
    + "".join(f"  c{i}: {{workflow: chain, with: {{n: {i}}}}}\n" for i in range(12))
    + "  sum: {tool: work, with: {n: 1}, after: ["
    + ", ".join(f"c{i}" for i in range(12))
    + "]}\n"
)


def at_work(world: World, tenant: str = "acme") -> int:
    return sum(head.group == "open" and head.ref.tenant == tenant for head in world.log.heads())


async def test_a_caller_is_refused_when_as_many_are_at_work_as_may_be(says: Says) -> None:
    world = World.start(limits=FEW)
    service = world.service()
    await service.register(chain_of(2, 1.0), json_only=False)
    for number in range(4):
        await service.start("chain", {"n": 0}, f"key-{number}")
    with says.raised(TooManyRequests) as refused:
        await service.start("chain", {"n": 0}, "key-4")
    assert refused.value.retry_after_s > 0
    assert (await service.start("chain", {"n": 0}, "key-3"))[1] is False, "it has been started"
    await world.settle()
    await asyncio.sleep(FULL_FOR_MS / 1_000)
    assert (await service.start("chain", {"n": 0}, "key-4"))[1] is True


async def test_another_tenant_is_not_refused() -> None:
    world = World.start(limits=FEW)
    for tenant in ("acme", "globex"):
        service = world.service(tenant=tenant)
        await service.register(chain_of(2, 1.0), json_only=False)
        for _ in range(4):
            await service.start("chain", {"n": 0}, "")
    assert (at_work(world), at_work(world, "globex")) == (4, 4)


async def test_sagas_that_wait_take_no_room() -> None:
    world = World.start(limits=FEW)
    service = world.service()
    await service.register("name: w\nnodes: {a: {wait: {signal: go}}}", json_only=False)
    for _ in range(3):
        for _ in range(4):
            await service.start("w", {}, "")
        await asyncio.sleep(2)
    assert len(world.log.heads()) == 12


async def test_a_fan_of_children_is_started_as_there_is_room_and_ends_well() -> None:
    world = World.start(limits=FEW)
    service = world.service()
    await service.register(chain_of(2, 1.0), json_only=False)
    await service.register(FAN_OF_CHILDREN, json_only=False)
    view, _ = await service.start("parent", {}, "")
    most = 0
    while (head := world.log.read_head(SagaRef("acme", view["id"]))) and head.group != "done":
        await asyncio.sleep(0.1)
        most = max(most, at_work(world))
    assert head is not None
    assert head.status == "completed"
    assert most <= 4
    assert len(world.log.heads()) == 13


async def test_the_index_is_asked_seldom_while_there_is_room() -> None:
    world = World.start(limits=replace(FEW, tenant_sagas=5_000))
    asked: list[str] = []
    count = world.log.at_work

    def at_work(tenant: str, shard: int, most: int) -> int:
        asked.append(tenant)
        return count(tenant, shard, most)

    any_log: Any = world.log
    any_log.at_work = at_work
    service = world.service()
    await service.register(chain_of(1, 0.0), json_only=False)
    for _ in range(200):
        await service.start("chain", {"n": 0}, "")
    assert len(asked) == world.log.limits.status_shards
    await asyncio.sleep(GOOD_FOR_MS / 1_000)
    await service.start("chain", {"n": 0}, "")
    assert len(asked) == 2 * world.log.limits.status_shards


def unanswered(world: World, fault: Exception | None) -> list[str]:
    """The tenants that are asked for from now on, in vain: refused with a fault, or without an answer in time."""
    asked: list[str] = []

    def at_work(tenant: str, shard: int, most: int) -> int:
        asked.append(tenant)
        if fault is not None:
            raise fault
        raise AssertionError("it hangs before that")

    any_log: Any = world.log
    any_log.at_work = at_work
    if fault is None:
        world.slow["at_work"] = 3_600
    return asked


@pytest.mark.parametrize("fault", [Throttled("slow down"), StoreUnavailable("gone"), None])
async def test_while_the_index_cannot_be_asked_callers_are_let_through_soon(fault: Exception | None) -> None:
    world = World.start(limits=FEW)
    unanswered(world, fault)
    service, loop = world.service(), asyncio.get_running_loop()
    await service.register(chain_of(1, 0.0), json_only=False)
    began = loop.time()
    for _ in range(8):
        await service.start("chain", {"n": 0}, "")
    assert loop.time() - began < ASK_FOR_MS / 1_000 + 0.2, "they wait for one answer, and not for each"
    await world.settle()
    assert {head.status for head in world.log.heads()} == {"completed"}


@pytest.mark.parametrize("fault", [Throttled("slow down"), None])
async def test_while_the_index_cannot_be_asked_children_are_started_and_no_invocation_fails(
    fault: Exception | None,
) -> None:
    world = World.start(limits=FEW, reconciler_on=False)
    service = world.service()
    await service.register(chain_of(2, 0.1), json_only=False)
    await service.register(FAN_OF_CHILDREN, json_only=False)
    await service.start("parent", {}, "")
    unanswered(world, fault)
    await world.settle()
    assert {head.status for head in world.log.heads()} == {"completed"}
    assert len(world.log.heads()) == 13
    assert not any(process.has_failed or process.has_overrun for process in world.processes.values())


async def test_an_index_that_answers_again_is_believed_again() -> None:
    world = World.start(limits=FEW)
    service = world.service()
    await service.register(chain_of(2, 1.0), json_only=False)
    real = world.log.at_work
    unanswered(world, Throttled("slow down"))
    for _ in range(4):
        await service.start("chain", {"n": 0}, "")
    any_log: Any = world.log
    any_log.at_work = real
    await asyncio.sleep(FULL_FOR_MS / 1_000)
    with pytest.raises(TooManyRequests):
        await service.start("chain", {"n": 0}, "")
