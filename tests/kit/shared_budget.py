"""Sagas that share a limit of money with those below them, and what must hold of its account whatever goes wrong."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from decimal import Decimal
from functools import partial
from typing import TYPE_CHECKING, Any

from baton import Context, tool
from baton.core.log.events import Entry, Resumed
from baton.core.money import dollars, micro_dollars
from baton.errors import EngineFault, NotAllowedNow
from baton.runtime.money.holds import PREFIX
from tests.kit.faults import Crash
from tests.kit.process import FOREVER, RUNS_IN, pause
from tests.kit.scripted import Scripted, asks_for, by_turn, says

if TYPE_CHECKING:
    from baton.runtime.requests.service import Service
    from tests.kit.world import World

MOST, COST = 30_000, 25_000
FAMILY = """
name: family
nodes:
  first: {tool: toll}
  agents: {map: {over: [1, 2], concurrency: 2}, graph: thinker, after: first}
  teams: {map: {over: [1, 2], concurrency: 2}, graph: team, after: first}
  outlives: {graph: slow, after: first}
  last: {tool: toll, after: [agents, teams]}
  stop: {end: {result: done}, after: last}
  never: {value: 1, after: outlives}
graphs:
  thinker: {nodes: {think: {agent: {model: m, prompt: Go., tools: [toll], turns: 4, max_output: 50}}}}
  team: {nodes: {both: {map: {over: [1, 2], concurrency: 2}, graph: one}}}
  one: {nodes: {pay: {tool: toll}}}
  slow: {nodes: {a: {tool: toll}, b: {tool: toll, with: {seconds: 60}, after: a}}}
"""
BARGAINS = """
name: bargains
nodes:
  both: {map: {over: [1, 2, 3], concurrency: 3}, tool: bargain}
  last: {tool: bargain, after: both}
output: '${ctx.last.output}'
"""


async def family(
    world: World, *, start: Any, patiently: Callable[..., Awaitable[Any]], forks: bool = True
) -> str:
    """Agents in a map, teams of teams, and a child that is at work when its root ends; then the root is forked to its beginning."""

    @tool("toll", registry=world.registry, cost_usd=dollars(MOST), timeout="90s")
    async def toll(context: Context, seconds: float = 0.4) -> None:
        await pause(seconds)
        if (process := RUNS_IN.get()) is not None:
            process.check()  # the dead spend nothing more
        context.spend(dollars(COST))

    world.tools, world.keeps_to_what_it_declares = world.registry.specs(), True
    world.models = Scripted(
        by_turn(asks_for(("toll", {}), read=101, written=7), says("done", read=203, written=3))
    )
    saga = str(await start(world, FAMILY, {}, "family"))
    pause_s = 20.0
    while world.end(saga) is None:
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.2, 1_800)  # a saga whose message is lost is found by a sweep
        await resume_parked(world, patiently)
    branch = int(not forks)
    while branch == 0:  # a repeated fork would be a second one, so look before asking again
        with suppress(Crash, EngineFault):
            await world.service().fork(saga, 2, "again from the first step")
        branch = (await patiently(world, partial(_shown, world, saga)))["branch"]
    return saga


async def bargains(world: World, *, start: Any, patiently: Callable[..., Awaitable[Any]]) -> str:
    """Tools that hold money before each of their calls, and record each call in their journal."""

    @tool("bargain", registry=world.registry, cost_usd=dollars(1), timeout="90s")
    async def bargain(context: Context) -> list[int]:
        async def call(number: int) -> int:
            held = await context.hold(dollars(MOST))
            await pause(0.4)
            if (process := RUNS_IN.get()) is not None:
                process.check()
            held.spend(dollars(COST))
            return number

        return [await context.once(f"call {number}", call, number) for number in range(3)]

    world.tools, world.keeps_to_what_it_declares = world.registry.specs(), True
    saga = str(await start(world, BARGAINS, {}, "bargains"))
    pause_s = 20.0
    while world.end(saga) is None:
        await asyncio.sleep(pause_s)
        pause_s = min(pause_s * 1.2, 1_800)
        await resume_parked(world, patiently)
    return saga


async def _shown(world: World, saga: str, _: Service) -> dict[str, Any]:
    return await world.queries().show(saga)


async def resume_parked(world: World, patiently: Callable[..., Awaitable[Any]]) -> None:
    for head in [head for head in world.log.heads() if head.status == "parked"]:
        with suppress(NotAllowedNow):
            await patiently(world, partial(_resume, saga=head.ref.id))


async def _resume(service: Service, saga: str) -> None:
    await service.resume(saga)


def of_trees(world: World, logs: Mapping[str, list[Entry]]) -> Iterator[str]:
    """The account of a tree has what its sagas have spent, whichever worker died meanwhile, and is within its limit.

    It has exactly that where no worker died or gave up; else what those held, too.
    """
    granted = max(
        (
            event.budget
            for entries in logs.values()
            for event in _events(entries)
            if isinstance(event, Resumed)
        ),
        default=0,
    )
    limit = max(micro_dollars([Decimal(world.limits.saga_budget_usd)]), granted)
    spent = defaultdict[str, int](int)
    for saga, amounts in world.spends:
        spent[_root_of(saga)] += micro_dollars(amounts)
    for one in world.asked:
        spent[_root_of(one.place[0])] += micro_dollars(one.bill)
    is_whole = not any(
        p.is_dead or p.is_frozen or p.has_failed or p.unanswered for p in world.processes.values()
    )
    for account in world.budgets.spent():
        if not account.user.startswith(PREFIX) or "/" in account.user.removeprefix(PREFIX):
            continue
        sums, root = world.budgets.expire(account, FOREVER).sums, account.user.removeprefix(PREFIX)
        if sums.reserved or sums.open:
            yield f"the account of the tree of {root} is held for ever: {sums}"
        if not world.keeps_to_what_it_declares:
            continue
        if limit and sums.spent > limit:
            yield f"the tree of {root} has spent {sums.spent}, and its limit is {limit}"
        if sums.spent < spent[root] or (is_whole and sums.spent != spent[root]):
            yield f"the account of the tree of {root} has {sums.spent}, and its sagas have spent {spent[root]}"


def _events(entries: list[Entry]) -> Iterator[Any]:
    return (event for entry in entries for event in entry.events)


def _root_of(saga: str) -> str:
    """The saga that it was started for in the end: the first part of its id."""
    return saga.partition(".")[0]
