"""In which lane of the due index a saga is: what is at work or should be, what waits for a moment, and what for others."""

from __future__ import annotations

import asyncio

import pytest

from baton.core.limits import Limits
from baton.ports import SWEEP, TIMER, WORK, Head, Message, SagaRef, Wake
from tests.kit.corpus import start
from tests.kit.documents import chain_of
from tests.kit.world import TENANT, World

ALONE = {"stream_on": False, "queue_on": False, "reconciler_on": False}


def head_of(world: World, saga: str) -> Head:
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    return head


async def worked_on(world: World, document: str, given: object = None) -> str:
    """A saga of the document after one invocation."""
    saga = await start(world, document, given or {}, "w")
    await world.work([Message(str(SagaRef(TENANT, saga)), 1)])
    return saga


@pytest.mark.parametrize(
    ("document", "lane"),
    [
        ("name: w\nnodes: {a: {wait: {for: 30s}}}", TIMER),
        ("name: w\nnodes: {a: {wait: {for: 30d}}}", SWEEP),
        ("name: w\nnodes: {a: {wait: {signal: news, timeout: 10m}}}", TIMER),
        ("name: w\nnodes: {a: {wait: {signal: news}}}", SWEEP),
        (chain_of(3, 4.0).replace("name: chain", "name: w"), WORK),
    ],
)
async def test_a_saga_that_was_given_back_is_in_the_lane_of_what_it_waits_for(
    document: str, lane: str
) -> None:
    world = World.start(**ALONE)
    head = head_of(world, await worked_on(world, document, {"n": 0}))
    assert (head.owner, head.lane) == ("", lane)
    assert head.due_at is not None


async def test_a_timer_shortly_behind_the_next_look_is_kept_and_not_the_look_which_may_be_late() -> None:
    world = World.start(limits=Limits(sweep_shortest_ms=300_000), **ALONE)
    head = head_of(world, await worked_on(world, "name: w\nnodes: {a: {wait: {for: 6m}}}"))
    assert head.lane == TIMER
    assert head.wake == Wake(v=2, at=head.due_at or 0)


async def test_a_saga_that_is_at_work_or_begins_or_is_put_off_by_a_fault_is_in_the_lane_of_work() -> None:
    world = World.start(**ALONE)
    saga = await start(world, chain_of(2), {"n": 0}, "chain")
    assert head_of(world, saga).lane == WORK
    work = asyncio.create_task(world.work([Message(str(SagaRef(TENANT, saga)), 1)]))
    await asyncio.sleep(0.3)
    assert (head_of(world, saga).owner, head_of(world, saga).lane) != ("", WORK)
    await work
