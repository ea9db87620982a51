"""One attempt that calls several tools, or one several times: no call spends what was not held for it."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

import pytest

from baton import Context, StepFailure, tool
from baton.core.decide.spending import day_of
from baton.core.limits import Limits
from baton.core.log.events import Parked, StepFailed, StepInterrupted
from baton.core.log.folding.fold import fold
from baton.core.log.state import State
from baton.ports import Account, Sums
from baton.ports.records import COMPLETED, FREED
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, USER, World

CENT = 10_000
PARTS = """
    name: w
    nodes:
      p: {tool: llm, with: {text: 'abcd abcd abcd abcd abcd abcd abcd abcd'}, on_failure: {context_exceeded: HINT}}
    output: ${ctx.p.output}
"""


def add_tools(world: World, **more: Any) -> Counter[str]:
    """Those that cost. Returns how often each was called."""
    calls: Counter[str] = Counter()

    @tool("llm", registry=world.registry, cost_usd="0.10", context="text", **more)
    async def llm(text: str, context: Context) -> str:
        calls["llm"] += 1
        context.spend("0.10")
        if len(text) > 4:
            raise StepFailure("context_exceeded", "too long")
        return text[:1]

    @tool("cheap", registry=world.registry, cost_usd="0.10")
    async def cheap(text: str, context: Context) -> str:
        calls["cheap"] += 1
        context.spend("0.10")
        raise StepFailure("unauthorized", "no")

    @tool("dear", registry=world.registry, cost_usd="0.90", instead_of="cheap")
    async def dear(text: str, context: Context) -> str:
        calls["dear"] += 1
        await asyncio.sleep(5)
        context.spend("0.90")
        return "x"

    @tool("hold", registry=world.registry, cost_usd="0.50", timeout="10m")
    async def hold(context: Context, seconds: float) -> None:
        calls["hold"] += 1
        await asyncio.sleep(seconds)
        context.spend("0.10")

    world.tools = world.registry.specs()
    return calls


async def start(world: World, document: str) -> str:
    registered = await world.service().register(document, json_only=False)
    view, _ = await world.service().start(registered.definition.name, {}, "")
    return str(view["id"])


def sums(world: World) -> Sums:
    return world.budgets.read(Account(TENANT, USER, day_of(VirtualClock().now())))


def state(world: World, saga: str) -> State:
    of = State()
    for entry in world.entries(saga):
        of = fold(of, entry)
    return of


def hint(name: str) -> str:
    return PARTS.replace("HINT", f"{{hints: [{name}]}}")


def money(saga: str, user_day: str) -> Limits:
    return Limits(saga_budget_usd=saga, user_day_budget_usd=user_day)


@pytest.mark.parametrize("way", ["chunk_context", "truncate_context"])
@pytest.mark.parametrize(
    ("saga_usd", "day_usd"), [("0", "0.30"), ("0.30", "0"), ("0.30", "5"), ("5", "0.30")]
)
async def test_a_context_in_parts_or_shortened_is_not_paid_for_beyond_what_there_is(
    way: str, saga_usd: str, day_usd: str
) -> None:
    world = World.start(limits=money(saga_usd, day_usd))
    calls = add_tools(world)
    saga = await start(world, hint(way))
    await world.settle()
    assert calls == {"llm": 3}
    of = state(world, saga)
    assert of.parked is not None
    is_of_day = saga_usd in ("0", "5")
    assert of.parked.code == ("budget_user_day" if is_of_day else "budget_saga")
    assert (of.parked.node, of.parked.until > 0) == ("p", is_of_day)
    assert of.money.spent == 30 * CENT, "also what was spent in the attempt that was not carried through"
    if day_usd != "0":
        assert sums(world) == Sums(30 * CENT, 30 * CENT, 0)
    assert [told.code for told in world.notices.said][-1] == of.parked.code


async def test_an_operator_who_gives_the_saga_more_lets_the_attempt_be_made_anew_and_loses_none() -> None:
    world = World.start(limits=money("0.30", "5"))
    calls = add_tools(world)
    saga = await start(world, hint("truncate_context"))
    await world.settle()
    assert calls == {"llm": 3}
    assert state(world, saga).failing["p"].attempts == 1, "the halted one does not count"
    await world.service().resume(saga)
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    assert calls == {"llm": 6}, "what is a quarter as long is short enough, and that begins anew"
    assert state(world, saga).money.spent == 60 * CENT


async def test_what_is_called_before_the_tool_is_paid_for_as_well() -> None:
    world = World.start(limits=money("1", "0.35"))
    calls = add_tools(world)

    @tool(
        "shorten",
        registry=world.registry,
        cost_usd="0.20",
        carries_out="summarise_context",
        for_tools="llm",
    )
    async def shorten(text: str, context: Context) -> dict[str, Any]:
        calls["shorten"] += 1
        context.spend("0.20")
        return {"text": "s"}

    world.tools = world.registry.specs()
    saga = await start(world, hint("summarise_context"))
    await world.settle()
    assert calls == {"llm": 1}, "a summary is of no use without the call that it is for"
    of = state(world, saga)
    assert of.parked is not None
    assert (of.parked.code, of.money.spent) == ("budget_user_day", 10 * CENT)
    assert sums(world) == Sums(10 * CENT, 10 * CENT, 0)


@pytest.mark.parametrize("day_usd", ["5", "0"])
async def test_a_way_that_is_dearer_than_its_node_does_not_pass_the_sagas_limit(day_usd: str) -> None:
    world = World.start(limits=money("1", day_usd))
    calls = add_tools(world)
    saga = await start(
        world, "name: w\nnodes: {p: {tool: cheap, with: {text: a}}, q: {tool: cheap, with: {text: b}}}"
    )
    await world.settle()
    of = state(world, saga)
    assert (calls, of.money.spent) == ({"cheap": 2}, 20 * CENT)
    assert of.parked is not None
    assert of.parked.code == "budget_saga"
    assert "0.2 of the 1 dollars" in of.parked.message
    await world.service().resume(saga)
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    assert (calls["dear"], state(world, saga).money.spent) == (2, 200 * CENT)


async def test_of_two_dear_ways_at_once_the_second_waits_for_what_the_first_leaves() -> None:
    world = World.start(limits=money("1.50", "5"))
    calls = add_tools(world)
    nodes = ", ".join(f"{name}: {{tool: cheap, with: {{text: {name}}}}}" for name in "pq")
    saga = await start(world, f"name: w\nnodes: {{{nodes}}}")
    await world.settle()
    of = state(world, saga)
    assert (calls["dear"], of.money.spent) == (1, 110 * CENT)
    assert [type(event) for event in world.events(saga)].count(StepFailed) == 0
    assert [event.code for event in world.events(saga) if isinstance(event, Parked)] == ["budget_saga"]


async def test_an_attempt_whose_next_call_finds_the_money_held_by_another_saga_begins_anew_when_it_is_free() -> (
    None
):
    world = World.start(limits=money("5", "0.80"), timeout_s=300)
    calls = add_tools(world)
    await start(world, "name: h\nnodes: {a: {tool: hold, with: {seconds: 40}}}")
    await asyncio.sleep(2)
    saga = await start(world, hint("truncate_context"))
    await asyncio.sleep(20)
    assert calls == {"hold": 1, "llm": 3}
    waiting = await world.queries().show(saga)
    assert (waiting["status"], waiting["active"][0]["limit"]) == ("waiting", "budget_user_day")
    assert waiting["active"][0]["needs_usd"] == 0.3, (
        "what the attempt has paid for, and the call that was refused"
    )
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    assert calls["llm"] == 3 + 3, "it begins anew once, when there is room for as much as it lacked"
    events = world.events(saga)
    assert [event.cost for event in events if isinstance(event, StepInterrupted)] == [20 * CENT]
    assert state(world, saga).money.spent == 60 * CENT
    assert sums(world) == Sums(70 * CENT, 70 * CENT, 0)


async def test_an_effect_that_happens_once_and_is_halted_before_its_call_leaves_no_doubt() -> None:
    world = World.start(limits=money("0.35", "5"))
    calls = add_tools(world, effect="once")
    saga = await start(world, hint("truncate_context"))
    await world.settle()
    assert calls == {"llm": 3}
    (effect,) = world.effects.stored.values()
    assert effect.status == FREED
    assert state(world, saga).failing["p"].failure.doubt is False
    await world.service().resume(saga)
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    (effect,) = world.effects.stored.values()
    assert effect.status == COMPLETED


async def test_looking_whether_an_effect_has_happened_is_paid_for_too() -> None:
    world = World.start(limits=money("0.25", "5"))
    calls = add_tools(world)

    @tool("find", effect="pure", registry=world.registry, cost_usd="0.20")
    async def find(context: Context) -> dict[str, Any]:
        calls["find"] += 1
        context.spend("0.20")
        return {"happened": False}

    @tool("bill", effect="once", verify="find", timeout="2s", registry=world.registry, cost_usd="0.10")
    async def bill(context: Context) -> int:
        calls["bill"] += 1
        context.spend("0.10")
        await asyncio.sleep(60 if calls["bill"] == 1 else 0)
        return 1

    world.tools = world.registry.specs()
    saga = await start(world, "name: w\nnodes: {a: {tool: bill}}")
    await world.settle()
    of = state(world, saga)
    assert (calls, of.money.spent) == ({"bill": 1}, 10 * CENT)
    assert of.parked is not None
    assert of.parked.code == "budget_saga"
    await world.service().resume(saga)
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    assert calls == {"bill": 2, "find": 1}
    assert state(world, saga).money.spent == 40 * CENT


async def test_a_fork_does_not_wait_for_the_money_that_the_old_branch_held() -> None:
    world = World.start(limits=money("1", "1"), timeout_s=300)

    @tool("long", registry=world.registry, cost_usd="0.80", timeout="2m")
    async def long(context: Context) -> int:
        context.spend("0.10")
        await asyncio.sleep(20)
        return 1

    world.tools = world.registry.specs()
    saga = await start(world, "name: w\nnodes: {a: {tool: long}}")
    await asyncio.sleep(5)
    await world.service().fork(saga, 1, "again")
    await asyncio.sleep(40)
    assert (await world.queries().show(saga))["status"] == "completed"
    assert sums(world) == Sums(20 * CENT, 20 * CENT, 0)
    shown = await world.queries().show(saga)
    assert shown["spent_usd"] == 0.2, "what was stopped had spent, too"


async def test_what_a_stopped_step_held_is_free_for_others_while_its_saga_goes_on() -> None:
    world = World.start(limits=money("5", "0.60"), timeout_s=300)
    calls = add_tools(world)
    document = """
            name: w
            nodes:
              a: {tool: hold, with: {seconds: 500}}
              b: {tool: soon}
              j: {after: [a, b], join: any, tool: wait.long}
        """

    @tool("wait.long", registry=world.registry, timeout="10m")
    async def wait_long() -> None:
        await asyncio.sleep(200)

    @tool("soon", registry=world.registry)
    async def soon() -> None:
        await asyncio.sleep(2)

    world.tools = world.registry.specs()
    await start(world, document)
    await asyncio.sleep(5)
    assert calls == {"hold": 1}
    assert sums(world) == Sums(0, 0, 0)


async def test_what_a_join_goes_on_without_has_spent_counts_for_the_saga() -> None:
    world = World.start(limits=money("0.50", "5"), timeout_s=60)
    add_tools(world)

    @tool("race.paid", registry=world.registry, cost_usd="0.30", timeout="2m")
    async def paid(context: Context) -> int:
        context.spend("0.30")
        await asyncio.sleep(30)
        return 1

    @tool("race.free", registry=world.registry)
    async def free() -> int:
        await asyncio.sleep(0.2)
        return 1

    world.tools = world.registry.specs()
    saga = await start(
        world,
        """
            name: w
            nodes:
              a: {tool: race.paid}
              b: {tool: race.free}
              j: {after: [a, b], join: any, wait: {for: 1s}}
              c: {after: j, tool: race.paid}
              d: {after: j, tool: race.free}
              k: {after: [c, d], join: any, wait: {for: 1s}}
            """,
    )
    await world.settle()
    of = state(world, saga)
    assert of.parked is not None
    assert (of.parked.code, of.money.spent) == ("budget_saga", 30 * CENT)
    assert sums(world) == Sums(30 * CENT, 30 * CENT, 0)
    await world.service().resume(saga)
    await world.settle()
    assert (await world.queries().show(saga))["status"] == "completed"
    assert state(world, saga).money.spent == 60 * CENT, "also where nothing comes after the join"
