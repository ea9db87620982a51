"""What a join leaves behind may spend until it is gone: the log knows all of it, and no winner waits for it."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from baton import Context, tool
from baton.core.limits import Limits
from baton.core.log.codec import decode_entry
from baton.core.log.events import JoinFired, SagaEnded, StepInterrupted
from baton.errors import StoreUnavailable
from baton.ports import Appended, Record, SagaRef, Sums, Wake
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import World
from tests.runtime.test_money import CENT, parked, start, sums

QUIET: dict[str, Any] = {"limits": Limits(saga_budget_usd="0.25", user_day_budget_usd="5")}
RACE = """
    name: w
    nodes:
      fast: {tool: pays, with: {at: 1, usd: '0'}}
      slow: {tool: pays, with: {at: AT, usd: 'USD', dies_after: DIES, runs_on: RUNS}}
      first: {value: 1, after: [fast, slow], join: any}
      MORE
"""


def race(
    *, at: float, usd: str = "1.00", dies_after: float = 0, runs_on: float = 0.01, more: str = ""
) -> str:
    text = RACE.replace("AT", str(at)).replace("USD", usd).replace("DIES", str(dies_after))
    return text.replace("RUNS", str(runs_on)).replace("MORE", more)


def add_tools(world: World) -> dict[str, int]:
    """A tool that pays at a moment of its own. Returns when each node of it began, in ms."""
    began: dict[str, int] = {}

    @tool("pays", registry=world.registry, timeout="60s")
    async def pays(
        context: Context, at: float, usd: str, dies_after: float = 0, runs_on: float = 0.01
    ) -> None:
        """It pays in the end where it takes its time to die, and then runs on for a while."""
        began[context.node] = VirtualClock().now()
        try:
            await asyncio.sleep(at)
            if usd != "0":
                context.spend(usd)
                await asyncio.sleep(runs_on)
        except asyncio.CancelledError:
            if dies_after:
                await asyncio.sleep(dies_after)
                context.spend(usd)
            raise

    world.tools = world.registry.specs()
    return began


def late(world: World, saga: str) -> list[tuple[str, int]]:
    """What was spent by whom, in vain."""
    cuts = [event for event in world.events(saga) if isinstance(event, StepInterrupted)]
    assert all(event.why == "stopped" for event in cuts)
    return [(event.node, event.cost) for event in cuts]


async def spent(world: World, saga: str) -> int:
    dollars: float = (await world.queries().show(saga))["spent_usd"]
    return round(dollars * 1_000_000)


@pytest.mark.parametrize(("at", "runs_on"), [(0.5, 30), (1.2, 0.01), (1.5, 30), (1.9, 0.01), (1.995, 30)])
async def test_what_a_loser_spends_before_the_entry_of_the_join_is_appended_is_in_the_log(
    at: float, runs_on: float
) -> None:
    world = World.start(**QUIET)
    add_tools(world)
    more = "last: {tool: pays, after: first, with: {at: 0, usd: '0.01'}}"
    saga = await start(world, race(at=at, runs_on=runs_on, more=more))
    world.slow["append"] = 1.0
    await asyncio.sleep(20)
    world.slow.clear()
    await world.settle()
    assert sums(world) == Sums(100 * CENT, 100 * CENT, 0)
    assert await spent(world, saga) == 100 * CENT
    assert late(world, saga) == [("slow", 100 * CENT)]
    (halt,) = parked(world, saga)
    assert halt.code == "budget_saga", "there is nothing left for the last step"


@pytest.mark.parametrize("at", [1.2, 1.9, 1.995, 2.5])
async def test_an_entry_that_ends_the_saga_has_what_its_losers_have_spent(at: float) -> None:
    world = World.start(limits=Limits(saga_budget_usd="0", user_day_budget_usd="5"))
    add_tools(world)
    saga = await start(world, race(at=at, dies_after=0.1))
    world.slow["append"] = 1.0
    await asyncio.sleep(20)
    world.slow.clear()
    await world.settle()
    assert sums(world).spent == await spent(world, saga) == 100 * CENT
    *_, last = world.entries(saga)
    kinds = [type(event) for event in last.events]
    assert kinds.index(StepInterrupted) < kinds.index(SagaEnded)
    assert kinds[-1] is SagaEnded


async def test_the_account_has_what_a_loser_has_spent_before_the_log_has() -> None:
    """Otherwise a worker that dies in between leaves a user's day with less than was spent."""
    world = World.start(**QUIET)
    add_tools(world)
    real, seen = world.log.append, list[tuple[int, int]]()

    def append(ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        events = decode_entry(record.data).events
        if cost := sum(event.cost for event in events if isinstance(event, StepInterrupted)):
            seen.append((cost, sums(world).spent))
        return real(ref, record, wake)

    any_log: Any = world.log
    any_log.append = append
    world.slow["settle"] = 0.3
    await start(world, race(at=0.5, usd="0.10", runs_on=30))
    await asyncio.sleep(20)
    assert seen == [(10 * CENT, 10 * CENT)]


async def test_a_winner_does_not_wait_for_losers_that_are_slow_to_die() -> None:
    world = World.start(**QUIET)
    began = add_tools(world)
    more = "next: {tool: pays, after: first, with: {at: 0.5, usd: '0'}}"
    saga = await start(world, race(at=30, usd="0.10", dies_after=0.15, more=more))
    await asyncio.sleep(20)
    (fired,) = (
        entry.at for entry in world.entries(saga) if any(isinstance(e, JoinFired) for e in entry.events)
    )
    assert began["next"] - fired < 20
    assert late(world, saga) == [("slow", 10 * CENT)]
    assert sums(world).spent == await spent(world, saga) == 10 * CENT


async def test_a_saga_is_not_given_back_before_its_losers_are_gone_and_have_been_counted() -> None:
    world = World.start(**QUIET)
    add_tools(world)
    more = "pause: {wait: {for: 1h}, after: first}"
    saga = await start(world, race(at=30, usd="0.10", dies_after=0.1, more=more))
    await asyncio.sleep(5)
    assert late(world, saga) == [("slow", 10 * CENT)]
    assert sums(world).spent == await spent(world, saga) == 10 * CENT


async def test_a_loser_that_was_at_its_last_words_when_the_saga_ends_says_them_before() -> None:
    world = World.start(**QUIET)
    add_tools(world)
    more = "next: {tool: pays, after: first, with: {at: 0.02, usd: '0'}}"
    saga = await start(world, race(at=30, usd="0.10", dies_after=0.1, more=more))
    await asyncio.sleep(20)
    assert late(world, saga) == [("slow", 10 * CENT)]
    assert isinstance(world.events(saga)[-1], SagaEnded)


async def test_an_entry_with_what_a_loser_spent_that_seems_lost_counts_it_once() -> None:
    world = World.start(**QUIET)
    add_tools(world)
    more = "next: {tool: pays, after: first, with: {at: 1, usd: '0'}}"
    real = world.log.append
    lost: list[Any] = []

    def append(*args: Any) -> Appended | None:
        done = real(*args)
        if not lost and b"stopped" in args[1].data:
            lost.append(args)
            raise StoreUnavailable("the answer is lost")
        if len(lost) != 1:
            return done
        hang(args)
        return None

    def hang(args: Any) -> None:
        """Nor does the look afterwards get one."""
        lost.append(args)
        world.slow["read_tail"] = 100_000

    any_log: Any = world.log
    any_log.append = append
    saga = await start(world, race(at=0.5, usd="0.10", runs_on=30, more=more))
    await asyncio.sleep(5)
    world.slow.clear()
    await world.settle()
    assert len(lost) == 2
    assert late(world, saga) == [("slow", 10 * CENT)]
    assert sums(world).spent == await spent(world, saga) == 10 * CENT


async def test_what_a_loser_has_spent_counts_for_the_limit_before_the_log_knows_of_it() -> None:
    world = World.start(**QUIET)
    began = add_tools(world)

    @tool("declares", registry=world.registry, cost_usd="0.20")
    async def declares(context: Context) -> None:
        began[context.node] = VirtualClock().now()
        context.spend("0.20")

    @tool("lingers", registry=world.registry, cost_usd="0.10", timeout="60s")
    async def lingers(context: Context) -> None:
        """It is done as soon as it is told to stop."""
        context.spend("0.10")
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(30)

    world.tools = world.registry.specs()
    document = """
            name: w
            nodes:
              fast: {tool: pays, with: {at: 1, usd: '0'}}
              slow: {tool: lingers}
              first: {value: 1, after: [fast, slow], join: any}
              dear: {tool: declares, after: first}
        """
    saga = await start(world, document)
    world.slow["settle"] = 0.1
    await world.settle()
    assert "dear" not in began
    assert await spent(world, saga) == 10 * CENT
    assert [event.code for event in parked(world, saga)] == ["budget_saga"]
