"""Budgets where they meet the world: many sagas of one user at once, deaths, cut-offs, days that turn, children."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import Context, tool
from baton.core.decide.spending import day_of, end_of
from baton.core.limits import DAY_MS, Limits
from baton.core.log.events import NoticeDue, Parked, Resumed, StepInterrupted
from baton.errors import BudgetSpent
from baton.ports import Account, Sums
from tests.kit.faults import Crash
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, USER, World

CENT = 10_000
ONE_STEP = "name: w\nnodes: {a: {tool: think}}"


def add_tools(world: World) -> list[str]:
    """Those that cost. Returns who was at work and paid, in order."""
    paid: list[str] = []

    @tool("think", registry=world.registry, cost_usd="0.30")
    async def think(context: Context, seconds: float = 1, usd: str = "0.25") -> None:
        await asyncio.sleep(seconds)
        context.spend(usd)
        paid.append(context.saga)

    @tool("last.words", registry=world.registry, cost_usd="0.30")
    async def last_words(context: Context) -> None:
        if len(world.events(context.saga)) == 1:
            world.running[context.saga, context.node].is_dead = True
            raise Crash

    @tool("surprise", registry=world.registry)
    async def surprise(context: Context, usd: str) -> None:
        context.spend(usd)

    world.tools = world.registry.specs()
    return paid


async def start(world: World, document: str) -> str:
    registered = await world.service().register(document, json_only=False)
    view, _ = await world.service().start(registered.definition.name, {}, "")
    return str(view["id"])


def sums(world: World, day: int | None = None) -> Sums:
    today = day_of(VirtualClock().now())
    return world.budgets.read(Account(TENANT, USER, today if day is None else day))


def parked(world: World, saga: str) -> list[Parked]:
    return [event for event in world.events(saga) if isinstance(event, Parked)]


async def status(world: World, saga: str) -> str:
    return str((await world.queries().show(saga))["status"])


async def until_the_day_turns() -> None:
    now = VirtualClock().now()
    await asyncio.sleep((end_of(day_of(now)) - now) / 1_000 + 600)


async def test_of_fifty_sagas_at_once_none_overspends_their_users_day_and_in_the_end_all_are_done() -> None:
    world = World.start()
    paid = add_tools(world)
    sagas = [await start(world, ONE_STEP) for _ in range(50)]
    await world.settle()
    spent: list[int] = []
    while len(paid) < 50 and len(spent) < 5:
        spent.append(sums(world).spent)
        await until_the_day_turns()
    assert spent == [475 * CENT, 475 * CENT], "the last 25 cents of a day are less than one more may cost"
    assert sums(world) == Sums(300 * CENT, 300 * CENT, 0)
    assert sorted(paid) == sorted(sagas), "each of them once"
    for saga in sagas:
        assert await status(world, saga) == "completed"
        for event in parked(world, saga):
            assert (event.code, event.until % DAY_MS) == ("budget_user_day", 0)
    keys = {e.notice.key for saga in sagas for e in world.events(saga) if isinstance(e, NoticeDue)}
    assert len(keys) == 2 * len(spent), "on each of both days a warning, and that it is over"


async def test_steps_of_one_saga_side_by_side_do_not_overspend_it_and_wait_for_each_other() -> None:
    world = World.start()
    paid = add_tools(world)
    nodes = ", ".join(f"n{i}: {{tool: think, with: {{seconds: {(i + 1) / 2}}}}}" for i in range(6))
    saga = await start(world, f"name: w\nnodes: {{{nodes}}}")
    await world.settle()
    assert len(paid) == 3, "75 cents are spent, and 30 more would be too much"
    shown = await world.queries().show(saga)
    assert shown["status"] == "parked"
    (event,) = parked(world, saga)
    assert event.code == "budget_saga"
    await world.service().resume(saga)
    await asyncio.sleep(30)
    assert await status(world, saga) == "completed"
    assert len(paid) == 6


async def test_a_tool_that_declares_nothing_is_stopped_once_its_saga_has_spent_all() -> None:
    world = World.start()
    add_tools(world)
    document = """
            name: w
            nodes:
              a: {tool: surprise, with: {usd: '1.50'}}
              b: {tool: surprise, with: {usd: '0.10'}, after: a}
        """
    saga = await start(world, document)
    await world.settle()
    assert await status(world, saga) == "parked"
    assert sums(world) == Sums(150 * CENT, 150 * CENT, 0)
    await world.service().resume(saga)
    await asyncio.sleep(30)
    assert await status(world, saga) == "completed"
    (resumed,) = (event for event in world.events(saga) if isinstance(event, Resumed))
    assert resumed.budget == 250 * CENT


async def test_what_a_dead_invocation_held_is_free_once_its_saga_is_revived() -> None:
    world = World.start()
    add_tools(world)
    saga = await start(world, "name: w\nnodes: {a: {tool: last.words}}")
    await asyncio.sleep(3)
    assert sums(world) == Sums(0, 30 * CENT, 1)
    await world.settle()
    assert await status(world, saga) == "completed"
    assert sums(world) == Sums(0, 0, 0)


async def test_what_a_step_spent_before_it_was_cut_off_counts_for_its_user_too() -> None:
    world = World.start()
    add_tools(world)

    @tool("slow", registry=world.registry, cost_usd="0.30", timeout="60s")
    async def slow(context: Context) -> None:
        context.spend("0.05")
        await asyncio.sleep(30)

    world.tools = world.registry.specs()
    saga = await start(world, "name: w\nnodes: {a: {tool: slow}}")
    await world.settle()
    cut_off = sum(isinstance(event, StepInterrupted) for event in world.events(saga))
    assert cut_off
    assert sums(world) == Sums(cut_off * 5 * CENT, cut_off * 5 * CENT, 0)


async def test_a_blocked_user_starts_nothing_and_children_wait_instead_of_failing_their_parents() -> None:
    world = World.start()
    add_tools(world)
    await world.service().register(ONE_STEP, json_only=False)
    parent = "name: p\nnodes: {a: {wait: {for: 1m}}, b: {workflow: w, after: a}}"
    saga = await start(world, parent)
    spender = "name: s\nnodes: {a: {tool: surprise, with: {usd: '5'}}}"
    await start(world, spender)
    await asyncio.sleep(10)
    with pytest.raises(BudgetSpent) as refused:
        await world.service().start("w", {}, "")
    now = VirtualClock().now()
    assert abs(refused.value.retry_after_s * 1_000 - (end_of(day_of(now)) - now)) < 2_000
    await world.service(user="bob").start("w", {}, "")
    await asyncio.sleep(600)
    (child,) = (one["saga"] for one in (await world.queries().show(saga))["active"])
    assert await status(world, child) == "parked"
    await until_the_day_turns()
    assert await status(world, saga) == "completed"
    await world.service().start("w", {}, "")


@pytest.mark.parametrize(
    ("parent", "left", "counted"),
    [
        ("name: p\nnodes: {k: {workflow: c}}", "fork", 25),
        (
            "name: p\nnodes: {k: {workflow: c}, b: {wait: {for: 10s}}, j: {value: 1, after: [k, b], join: any}}",
            "",
            0,
        ),
    ],
    ids=["fork", "join"],
)
async def test_a_child_that_its_parent_goes_on_without_is_on_the_users_day_and_not_on_the_parent(
    parent: str, left: str, counted: int
) -> None:
    world = World.start()
    paid = add_tools(world)
    child = "name: c\nnodes: {a: {tool: think}, b: {wait: {for: 1m}, after: a}}"
    await world.service().register(child, json_only=False)
    saga = await start(world, parent)
    await asyncio.sleep(5)
    (old,) = paid
    if left:
        await world.service().fork(saga, 1, "again")
    await world.settle()
    assert await status(world, old) == "cancelled"
    view = await world.queries().show(saga)
    assert (view["status"], view["spent_usd"]) == ("completed", counted / 100)
    assert sums(world).spent == (25 + counted) * CENT


async def test_a_start_that_is_repeated_finds_its_saga_whatever_was_spent_since() -> None:
    world = World.start()
    add_tools(world)
    await world.service().register("name: s\nnodes: {a: {tool: surprise, with: {usd: '5'}}}", json_only=False)
    first, _ = await world.service().start("s", {}, "k")
    await world.settle()
    again, is_new = await world.service().start("s", {}, "k")
    assert (again["id"], is_new) == (first["id"], False)


async def test_without_limits_nothing_waits_and_no_account_is_kept() -> None:
    world = World.start(limits=Limits(saga_budget_usd="0", user_day_budget_usd="0"))
    paid = add_tools(world)
    sagas = [await start(world, ONE_STEP) for _ in range(30)]
    await world.settle()
    assert len(paid) == len(sagas)
    asked: Any = world.budgets.calls
    assert asked == 0
