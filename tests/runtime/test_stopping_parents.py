"""A saga that stops ends after its children: it asks them to stop, hears how they ended, and counts what they have spent."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import pytest

from baton import Context, tool
from baton.core.limits import Limits
from baton.core.log.events import CancelRequested, ChildReported, SagaEnded, StepStopped
from tests.kit.corpus import start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, NO_ANSWER
from tests.kit.world import World
from tests.runtime.test_many_children import work
from tests.runtime.test_undoing import WANTED
from tests.runtime.undoing import Ledger, add_ledger

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))  # `make soak`
CHILD = "name: child\nnodes: {a: {tool: buy}, b: {wait: {for: 1d}, after: a}}"
FAILS = "  w: {wait: {for: 10s}}\n  f: {tool: refuse, after: w}\n"
PARENT = f"name: parent\non_failure: fail\nnodes:\n  c: {{workflow: child}}\n{FAILS}"


def add_spender(world: World) -> None:
    @tool("buy", registry=world.registry)
    async def buy(context: Context) -> str:
        context.spend("0.25")
        return "bought"

    world.tools = world.registry.specs()


async def begun(world: World, parent: str = PARENT, child: str = CHILD) -> str:
    add_spender(world)
    await world.service().register(child, json_only=False)
    return await start(world, parent, {}, "parent")


async def shown(world: World, saga: str) -> dict[str, Any]:
    return await world.queries().show(saga)


def ended_at(world: World, saga: str) -> int:
    last = world.entries(saga)[-1]
    assert isinstance(last.events[-1], SagaEnded)
    return last.at


def cancels(world: World, saga: str) -> int:
    return sum(isinstance(event, CancelRequested) for event in world.events(saga))


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (FAILS, "failed"),
        ("  w: {wait: {for: 10s}}\n  e: {end: {result: 3}, after: w}\n", "completed"),
        ("", "cancelled"),
    ],
    ids=["fails", "has-its-result", "is-cancelled"],
)
async def test_a_parent_ends_after_its_child_and_counts_what_that_has_spent(more: str, status: str) -> None:
    world = World.start()
    saga = await begun(world, f"name: parent\non_failure: fail\nnodes:\n  c: {{workflow: child}}\n{more}")
    await asyncio.sleep(5)
    if not more:
        await world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(20)
    view, child = await shown(world, saga), f"{saga}.0.c"
    assert (view["status"], view["spent_usd"]) == (status, 0.25)
    assert (await shown(world, child))["status"] == "cancelled"
    assert ended_at(world, saga) > ended_at(world, child)
    assert cancels(world, child) == 1


async def test_a_grandchild_ends_before_its_parent_does() -> None:
    world = World.start()
    middle = "name: middle\nnodes: {d: {workflow: child}}"
    await world.service().register(CHILD.replace("tool: buy", "value: 1"), json_only=False)
    saga = await begun(world, PARENT.replace("workflow: child", "workflow: middle"), middle)
    await asyncio.sleep(30)
    assert (await shown(world, saga))["status"] == "failed"
    assert ended_at(world, saga) > ended_at(world, f"{saga}.0.c") > ended_at(world, f"{saga}.0.c.0.d")


async def test_while_it_waits_it_names_the_child_and_a_second_cancel_changes_nothing() -> None:
    world = World.start()
    slow = "name: child\nnodes: {a: {tool: work, with: {n: 1, seconds: 30}}}"
    world.timeout_s = 120
    saga = await begun(world, PARENT, slow)
    await asyncio.sleep(5)
    world.slow["append"] = 0.4
    await world.service().cancel(saga, "enough", 0)
    while not cancels(world, f"{saga}.0.c"):
        await asyncio.sleep(0.01)
    view = await shown(world, saga)
    assert (view["status"], view["cancelling"]) == ("running", True)
    assert f"`{saga}.0.c`" in view["reason"], "it names the child"
    await world.service().cancel(saga, "enough", 0)
    world.slow.clear()
    await asyncio.sleep(20)
    assert (await shown(world, saga))["status"] == "cancelled"
    assert cancels(world, f"{saga}.0.c") == 1


async def test_a_map_of_many_children_one_of_which_fails_ends_after_all_of_them() -> None:
    world = World.start(limits=Limits(saga_budget_usd="0", user_day_budget_usd="0"))
    world.timeout_s = 120
    child = """
name: child
on_failure: fail
nodes:
  a: {tool: buy}
  b: {wait: {for: 60s}, after: a, when: "input.n == 7"}
  f: {tool: refuse, after: b, when: "input.n == 7"}
  z: {wait: {for: 1d}, after: a, when: "input.n != 7"}
"""
    document = """
name: parent
on_failure: fail
nodes:
  c: {workflow: child, map: {over: "${input.all}", concurrency: 256}, with: {n: "${item}"}}
"""
    add_spender(world)
    await world.service().register(child, json_only=False)
    saga = await start(world, document, {"all": list(range(250))}, "parent")
    await asyncio.sleep(900)
    view = await shown(world, saga)
    assert (view["status"], view["spent_usd"]) == ("failed", 62.5)
    children = [head.ref.id for head in world.log.heads() if head.ref.id != saga]
    assert len(children) == 250
    assert all(ended_at(world, one) < ended_at(world, saga) for one in children)
    assert max(cancels(world, one) for one in children) == 1


@pytest.mark.parametrize(("turn", "fate"), [*enumerate([CRASH_BEFORE, CRASH_AFTER, NO_ANSWER])])
async def test_whatever_write_fails_while_it_stops_it_ends_after_its_child(turn: int, fate: str) -> None:
    """The fates take turns; in `make soak` each write meets all of them."""
    plain = World.start()
    saga = await begun(plain)
    await asyncio.sleep(9)
    first = len(plain.plan.writes)
    await asyncio.sleep(60)
    assert (await shown(plain, saga))["status"] == "failed"
    for write in range(first + 1, len(plain.plan.writes) + 1)[None if IS_ALL else turn :: 1 if IS_ALL else 3]:
        world = World.start()
        world.plan.at = {write: fate}
        saga = await begun(world)
        await asyncio.sleep(900)
        view = await shown(world, saga)
        assert (view["status"], view["spent_usd"]) == ("failed", 0.25), write
        assert ended_at(world, saga) > ended_at(world, f"{saga}.0.c")
        assert cancels(world, f"{saga}.0.c") == 1


async def test_a_child_that_can_never_start_is_not_waited_for() -> None:
    world = World.start(stream_on=False, reconciler_on=False)
    parent = "name: parent\nnodes: {go: {wait: {signal: go}}, c: {workflow: child@3, after: go}}"
    saga = await begun(world, parent)
    await work(world, saga)
    await world.service().signal(saga, "go", None, "k")
    world.plan.at = {len(world.plan.writes) + 2: CRASH_AFTER}  # of the entry that opens it
    await work(world, saga)
    await world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(90)  # longer than a lease
    await work(world, saga)
    assert [head.ref.id for head in world.log.heads()] == [saga], "there is no child"
    reports = [event for event in world.events(saga) if isinstance(event, ChildReported)]
    assert [(one.status, one.failure is not None) for one in reports] == [("failed", True)]
    assert (await shown(world, saga))["status"] == "cancelled"


async def test_a_fork_to_a_version_at_which_it_stopped_opens_the_child_anew() -> None:
    world = World.start()
    saga = await begun(world, "name: parent\nnodes: {c: {workflow: child}}")
    await asyncio.sleep(5)
    await world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(5)
    assert (await shown(world, saga))["status"] == "cancelled"
    cut = next(
        entry.version
        for entry in world.entries(saga)
        if any(isinstance(event, ChildReported) for event in entry.events)
    )
    await world.service().fork(saga, cut, "once more")
    await asyncio.sleep(30)
    view = await shown(world, saga)
    assert (view["status"], view["branch"], view["spent_usd"]) == ("waiting", 1, 0.25), (
        "the new child spends once it has ended"
    )
    assert [one["saga"] for one in view["active"] if "saga" in one] == [f"{saga}.1.c"]


async def test_a_cancel_that_undoes_is_told_to_a_child_that_was_only_asked_to_stop() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    child = "name: child\nnodes: {a: {tool: trip.book, with: {what: car}}, b: {wait: {for: 1d}, after: a}}"
    saga = await begun(world, PARENT, child)
    await asyncio.sleep(5)
    world.slow["append"] = 0.4
    await world.service().cancel(saga, "enough", 0)
    while not cancels(world, f"{saga}.0.c"):
        await asyncio.sleep(0.01)
    await world.service().cancel(saga, "and undo", 0, undo=True)
    world.slow.clear()
    await asyncio.sleep(60)
    assert ledger.in_force == {}
    assert (await shown(world, saga))["status"] in {"rolled_back", "cancelled"}


async def test_what_a_child_had_done_when_it_stopped_is_undone_by_a_later_rollback() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    child = "name: child\nnodes: {a: {tool: trip.book, with: {what: car}}, b: {wait: {for: 1d}, after: a}}"
    saga = await begun(world, PARENT, child)
    await asyncio.sleep(30)
    assert (await shown(world, saga))["status"] == "failed"
    assert any(isinstance(event, StepStopped) for event in world.events(saga))
    await world.service().rollback(saga, WANTED)
    await world.settle(600)
    assert ((await shown(world, saga))["status"], ledger.in_force) == ("rolled_back", {})
