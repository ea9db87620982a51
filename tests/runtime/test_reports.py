"""How a parent hears of its children: what the relay asks of the store, and whom the parent asks when it is told."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from baton import Context, tool
from baton.core.limits import Limits
from baton.core.log.events import ChildOpened
from baton.core.log.work import CHILDREN_IN_A_WINDOW
from baton.ports import Head, Report, SagaRef, Wake
from baton.runtime.relay import StreamItem
from tests.kit.corpus import start
from tests.kit.faults import CRASH_BEFORE, EVERYTHING, HANG, Crash, Plan
from tests.kit.world import TENANT, World
from tests.runtime.family import ALONE, CHILD, HELD, end, family, head_of, relay, reports, work


def asked(world: World) -> Counter[str]:
    """Reads of heads from now on, by the saga's id."""
    found: Counter[str] = Counter()
    real = world.log.read_head

    def read_head(ref: SagaRef) -> Head | None:
        found[ref.id] += 1
        return real(ref)

    any_log: Any = world.log
    any_log.read_head = read_head
    return found


def windows_read(world: World) -> list[int]:
    found: list[int] = []
    real = world.store.inbox.read

    def read(parent: SagaRef, window: int) -> Any:
        found.append(window)
        return real(parent, window)

    any_inbox: Any = world.store.inbox
    any_inbox.read = read
    return found


# ---- the relay


async def test_the_relay_reads_nothing_and_counts_once_for_all_children_of_a_parent() -> None:
    world = World.start(**ALONE)
    saga = await family(world, 30)
    items = await end(world, saga, *range(30))
    world.plan = Plan()
    assert await relay(world, items) == []
    assert world.plan.reads == []
    assert world.plan.writes == ["leave", "announce", "send"]
    assert head_of(world, saga).inbox == 1


async def test_parents_are_told_side_by_side_and_one_that_cannot_be_told_holds_up_no_other() -> None:
    world = World.start(**ALONE)
    saga = await family(world, 2)
    items = await end(world, saga, 0, 1)
    gone = [
        StreamItem(f"g{n}", SagaRef(TENANT, f"g{n}"), Wake(v=2, parent=f"T#{TENANT}#SAGA#p{n}", slot="c"))
        for n in range(20)
    ]
    world.plan = Plan({2: HANG})
    assert await relay(world, [*items, *gone], 4_000) == ["0", "1"]
    assert await relay(world, [*items, *gone]) == []
    assert head_of(world, saga).inbox == 1


@pytest.mark.parametrize("fate", EVERYTHING)
@pytest.mark.parametrize("write", [1, 2, 3])
async def test_whatever_the_relay_meets_its_records_come_again_and_the_parent_hears_of_all(
    write: int, fate: str
) -> None:
    world = World.start(**ALONE)
    saga = await family(world, 3)
    items = await end(world, saga, 0, 1, 2)
    world.plan = Plan({write: fate})
    failed = ["0"]
    while failed:
        failed = [item.id for item in items]
        with suppress(Crash):
            failed = await relay(world, items)
    await asyncio.sleep(20)
    await work(world, saga)
    assert [sorted(one) for one in reports(world, saga)] == [["c0", "c1", "c2"]]
    assert head_of(world, saga).status == "completed"


# ---- the parent


async def test_a_parent_that_is_told_asks_only_those_that_stand_in_its_inbox() -> None:
    world = World.start(**ALONE)
    saga = await family(world, 150)
    items = await end(world, saga, 3, 70)
    await relay(world, items)
    reads, windows = asked(world), windows_read(world)
    head = await work(world, saga)
    assert {one for one in reads if one != saga} == {f"{saga}.0.c3", f"{saga}.0.c70"}
    assert sorted(windows) == [0, 1, 2]
    assert reports(world, saga) == [["c3", "c70"]]
    assert (head.inbox, head.owner) == (0, "")
    assert await work(world, saga) == head, "and then there is nothing to do"


async def test_only_windows_with_open_children_are_read() -> None:
    world = World.start(**ALONE)
    count = CHILDREN_IN_A_WINDOW + 6
    saga = await family(world, count)
    opened = [event for event in world.events(saga) if isinstance(event, ChildOpened)]
    first, last = opened[: CHILDREN_IN_A_WINDOW - 1], opened[-1]
    await relay(world, await end(world, saga, *(int(event.node[1:]) for event in first)))
    await work(world, saga)
    windows = windows_read(world)
    await relay(world, await end(world, saga, int(last.node[1:])))
    await work(world, saga)
    assert windows == [1]


async def test_the_children_of_a_saga_are_numbered_through_all_its_entries_and_branches() -> None:
    world = World.start(**ALONE)
    saga = await family(world, 2, "  last: {workflow: child, after: c0}")
    await relay(world, await end(world, saga, 0))
    await work(world, saga)
    await world.service().fork(saga, 1, "again", "f")
    await work(world, saga, 9)
    numbers = [event.number for event in world.events(saga) if isinstance(event, ChildOpened)]
    assert numbers == [1, 2, 3, 4, 5]


async def test_a_parent_that_was_told_is_looked_at_no_later_than_before() -> None:
    """What it did not ask, it asks then; a child may have been put off."""
    world = World.start(**ALONE)
    saga = await family(world, 3)
    due = head_of(world, saga).due_at
    await asyncio.sleep(60)
    await relay(world, await end(world, saga, 1))
    assert (await work(world, saga)).due_at == due


async def test_a_parent_that_is_due_asks_all_its_children() -> None:
    world = World.start(**ALONE)
    saga = await family(world, 3)
    await end(world, saga, 1)
    await asyncio.sleep(301)
    await work(world, saga)
    assert reports(world, saga) == [["c1"]]


async def test_a_parent_that_has_news_in_its_log_too_asks_all_its_children() -> None:
    world = World.start(**ALONE)
    saga = await family(world, 3, "  w: {wait: {signal: w}}")
    items = await end(world, saga, 0, 2)
    await relay(world, items[:1])
    await world.service().signal(saga, "w", None, "k")
    await work(world, saga, 9)
    assert sorted(reports(world, saga), key=len) == [["c0"], ["c2"]]


async def test_what_was_announced_while_the_parent_let_go_is_taken_in_before_it_does() -> None:
    world = World.start(**ALONE)
    saga = await family(world, 3)
    items = await end(world, saga, 0, 1)
    await relay(world, items[:1])
    world.slow["release"] = 0.5
    working = asyncio.create_task(work(world, saga))
    await asyncio.sleep(0.1)
    world.plan = Plan()
    await relay(world, items[1:])
    assert "send" not in world.plan.writes, "its holder finds it"
    head = await working
    assert reports(world, saga) == [["c0"], ["c1"]]
    assert (head.inbox, head.owner) == (0, "")


async def test_a_parent_whose_steps_keep_it_busy_hears_within_the_time_between_two_looks() -> None:
    """However many entries its other branch writes meanwhile."""
    world = World.start(**HELD)
    steps = "".join(
        f"  s{i}: {{tool: work, {f'after: s{i - 1}, ' if i else ''}with: {{n: {i}, seconds: 0.7}}}}\n"
        for i in range(24)
    )
    await world.service().register(CHILD, json_only=False)
    saga = await start(world, f"name: parent\nnodes:\n  c0: {{workflow: child}}\n{steps}", {}, "parent")
    await asyncio.sleep(2)
    await world.service().signal(f"{saga}.0.c0", "go", 1, "k")
    began = asyncio.get_running_loop().time()
    while not reports(world, saga):
        await asyncio.sleep(0.1)
    assert asyncio.get_running_loop().time() - began < 5.2
    assert len({entry.epoch for entry in world.entries(saga) if entry.epoch}) == 1


async def test_a_saga_without_children_never_reads_its_head_while_it_works() -> None:
    world = World.start(**ALONE)
    saga = await start(world, "name: w\nnodes: {a: {tool: work, with: {n: 1, seconds: 25}}}", {}, "w")
    world.plan = Plan()
    await work(world, saga, 1)
    assert head_of(world, saga).status == "completed"
    assert world.plan.reads.count("read_head") == 1
    assert world.plan.reads.count("read") == 0


async def test_a_parent_that_has_no_time_for_its_inbox_yields_and_leaves_it_for_the_next() -> None:
    world = World.start(**ALONE)
    saga = await family(world, 60)
    await relay(world, await end(world, saga, *range(60)))
    world.timeout_s, world.slow["read_tail"] = 4, 0.5
    head = await work(world, saga)
    assert head.inbox == 1
    assert head.wake is not None
    assert 0 < sum(map(len, reports(world, saga))) < 60
    for _ in range(12):
        head = await work(world, saga, 1_000)
    assert (head.status, head.inbox) == ("completed", 0)


async def test_a_parent_that_yields_asks_for_what_it_has_to_start_even_by_a_clock_that_is_behind() -> None:
    world = World.start(**ALONE)
    saga = await family(world, 2)
    ref, head = SagaRef(TENANT, saga), head_of(world, saga)
    now = world.process("worker").clock.now()
    yielded = Wake(v=head.folded)
    world.log._heads[ref] = replace(head, due_at=now + 2_000, wake=yielded)
    await end(world, saga, 0)
    await work(world, saga, head.folded)
    assert reports(world, saga) == [["c0"]], "no one has told it: it has asked"


async def test_a_lease_that_is_given_up_keeps_the_inbox() -> None:
    world = World.start(**ALONE)
    saga = await family(world, 2)
    await relay(world, await end(world, saga, 0))
    world.slow["read"] = 10_000.0
    world.timeout_s = 6
    head = await work(world, saga)
    assert (head.owner, head.inbox) == ("", 1)
    del world.slow["read"]
    assert (await work(world, saga)).inbox == 0
    assert reports(world, saga) == [["c0"]]


async def test_a_worker_that_dies_over_its_inbox_leaves_it_to_its_heir() -> None:
    world = World.start(**ALONE)
    saga = await family(world, 2)
    await relay(world, await end(world, saga, 0, 1))
    world.plan = Plan({2: CRASH_BEFORE})  # the entry
    world.timeout_s = 6
    await work(world, saga)
    assert head_of(world, saga).inbox == 1
    await asyncio.sleep(15)
    assert (await work(world, saga)).status == "completed"
    assert head_of(world, saga).inbox == 0


async def test_a_parent_that_is_parked_lets_its_inbox_be_and_asks_when_it_goes_on() -> None:
    world = World.start(**ALONE | {"timeout_s": 6})
    deadly = [True]

    @tool("fragile", registry=world.registry)
    async def fragile(context: Context) -> None:
        if deadly[-1]:
            world.running[context.saga, context.node].is_dead = True
            raise Crash

    world.tools = world.registry.specs()
    saga = await family(world, 1, "  w: {wait: {signal: w}}\n  die: {tool: fragile, after: w}")
    await world.service().signal(saga, "w", None, "k")
    for _ in range(8):
        await work(world, saga, 9)
        await asyncio.sleep(70)
    assert head_of(world, saga).status == "parked"
    await relay(world, await end(world, saga, 0))
    head = await work(world, saga)
    assert (head.inbox, head.status, reports(world, saga)) == (0, "parked", [])
    deadly.append(False)
    await world.service().resume(saga)
    await work(world, saga, 100)
    assert reports(world, saga) == [["c0"]]


async def test_what_stands_in_an_inbox_for_a_child_that_is_not_open_any_more_means_nothing() -> None:
    world = World.start(**ALONE)
    saga = await family(world, 2)
    ref = SagaRef(TENANT, saga)
    foreign = [Report(ref, 0, "c0", "another"), Report(ref, 0, "nowhere", f"{saga}.0.c1")]
    world.store.inbox.leave(foreign, 0)
    world.store.inbox.announce(ref)
    reads = asked(world)
    head = await work(world, saga)
    assert (head.inbox, set(reads)) == (0, {saga})


async def test_children_that_stand_there_and_are_gone_are_no_reason_to_look_again_at_once() -> None:
    """They would be started anew, and their tenant has no room for them."""
    world = World.start(**ALONE)
    saga = await family(world, 20)
    await relay(world, await end(world, saga, *range(20)))
    for i in range(20):
        del world.log._heads[SagaRef(TENANT, f"{saga}.0.c{i}")]
    await world.service().start("child", {}, "at work")
    world.limits = Limits(tenant_sagas=1)
    head = await work(world, saga)
    assert (head.inbox, head.wake) == (0, None)


async def test_hundreds_of_children_that_end_together_are_a_few_entries_of_their_parent() -> None:
    world = World.start(timeout_s=60, runaway=100_000)
    await world.service().register("name: child\nnodes: {a: {wait: {for: 20s}}}", json_only=False)
    children = "".join(f"  c{i}: {{workflow: child}}\n" for i in range(200))
    saga = await start(world, f"name: parent\nnodes:\n{children}", {}, "parent")
    await world.settle(400)
    assert head_of(world, saga).status == "completed"
    told = reports(world, saga)
    assert sum(map(len, told)) == 200
    assert len(told) <= 10
