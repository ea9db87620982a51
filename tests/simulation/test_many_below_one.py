"""Very many sagas below one, under one limit of money: it holds to the micro-dollar, whatever goes wrong with any of them.

`make soak` has a thousand of them (`BATON_CROWDS`).
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from baton import Context, tool
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.money import dollars
from baton.errors import NotAllowedNow
from baton.runtime.requests.service import Service
from tests.kit.corpus import patiently
from tests.kit.faults import EVERYTHING, Chaos, Plan
from tests.kit.oracles import MONEY, of_world
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World
from tests.runtime.test_money_of_trees import account

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(3_600)]

BELOW = 1_000 if os.environ.get("BATON_CROWDS") else 80
MOST, COST = 30_000, 25_000
LIMIT = BELOW * COST // 2 + 4_321  # no multiple of what a call costs, so that the last one is refused
SIDE_BY_SIDE = min(BELOW, 250)  # of one map; those that are parked keep their places
MAPS = "\n".join(
    f"  all{n}: {{map: {{over: {[*range(SIDE_BY_SIDE)]}, concurrency: {SIDE_BY_SIDE}}}, graph: one}}"
    for n in range(BELOW // SIDE_BY_SIDE)
)
DOCUMENT = f"""
name: many
nodes:
{MAPS}
graphs:
  one: {{nodes: {{think: {{tool: think}}}}}}
output: done
"""


class Ending:
    """The account of the tree, the calls that were made, the sagas that were parked, and every broken promise.

    `billed_s`: seconds of workers. `asked`: requests to accounts. `waits`: those of steps for money that others held.
    """

    def __init__(self) -> None:
        self.calls = self.asked = 0
        self.billed_s = 0.0
        self.waits: list[ev.StepHeld] = []
        self.spent = self.held = self.parked = 0
        self.broken: tuple[str, ...] = ()


async def _given(service: Service) -> Any:
    await service.register(DOCUMENT, json_only=False)
    return await service.start("many", {}, "one")


def _is_killed(world: World, saga: str) -> bool:
    """Tell whether it is parked because its workers have died."""
    last = [event for event in world.events(saga) if isinstance(event, ev.Parked | ev.Resumed)][-1:]
    return any(isinstance(event, ev.Parked) and event.code == "worker_killed" for event in last)


async def _resumed(service: Service, saga: str) -> Any:
    with suppress(NotAllowedNow):
        await service.resume(saga)


def spend(plan: Plan, seconds: float = 0.2, batch: int = 10, **world: Any) -> Ending:
    """Let all of them spend, in calls of so many `seconds`, until those for whom nothing is left are parked."""
    found = Ending()

    async def main() -> None:
        books = Books()
        registry = make_registry(books)

        @tool("think", registry=registry, cost_usd=dollars(MOST))
        async def think(context: Context) -> None:
            await asyncio.sleep(seconds)
            found.calls += 1
            context.spend(dollars(COST))

        limits = Limits(saga_budget_usd=dollars(LIMIT), user_day_budget_usd="1000")
        made = World(registry, plan, limits, batch=batch, **world)
        made.books, made.runaway = books, 1_000 * BELOW
        made.switch_on()
        view, _ = await patiently(made, partial(_given))
        await made.settle(7_200)
        while killed := [head.ref.id for head in made.log.heads() if _is_killed(made, head.ref.id)]:
            for saga in killed:  # as a person would whose workers have died three times in a row
                await patiently(made, partial(_resumed, saga=saga))
            await made.settle(7_200)
        await asyncio.sleep(2 * max(made.stall_s, made.late_s))
        await made.settle(7_200)
        found.billed_s, found.asked = made.billed_s, made.plan.writes.count("move")
        sums = account(made, view["id"])
        found.spent, found.held = sums.spent, sums.held
        # The root waits for those that are parked: it has no end.
        found.broken = tuple(text for text in of_world(made) if text.startswith(f"{MONEY}:"))
        heads = made.log.heads()
        assert len(heads) == BELOW + 1
        told = [event for head in heads for event in made.events(head.ref.id)]
        codes = [event.code for event in told if isinstance(event, ev.Parked)]
        found.waits = [event for event in told if isinstance(event, ev.StepHeld)]
        assert {"budget_saga"} <= set(codes) <= {"budget_saga", "worker_killed"}
        found.parked = sum(head.status == "parked" for head in heads)

    run_virtual(main())
    return found


def test_undisturbed_it_is_all_of_the_limit_and_nothing_more() -> None:
    ending = spend(Plan())
    assert ending.broken == ()
    assert ending.spent == ending.held == ending.calls * COST
    assert LIMIT - MOST < ending.spent <= LIMIT, "the last money is usable"
    assert ending.parked == BELOW - ending.calls


def test_who_waits_for_money_is_billed_for_no_time_and_they_do_not_all_ask_at_once() -> None:
    ending = spend(Plan(), seconds=10, batch=1, timeout_s=60)
    assert ending.broken == ()
    assert len(ending.waits) > BELOW // 2
    assert {wait.limit for wait in ending.waits} == {"budget_saga"}
    assert ending.billed_s < 1.1 * 10 * ending.calls
    assert ending.asked < 12 * BELOW
    begun = min(wait.at for wait in ending.waits)
    by_second = Counter((wait.until - begun) // 1_000 for wait in ending.waits)
    assert max(count for second, count in by_second.items() if second > 10) < BELOW // 4


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(2, 7))])
def test_through_faults_of_every_kind_no_more_is_spent_than_the_limit(seed: int) -> None:
    plan = Chaos(seed=seed, rate=0.01, budget=60, kinds=EVERYTHING)
    ending = spend(plan, seed=seed, skew_ms=3_000, is_warm=True, reconciler_gap_s=20)
    assert ending.broken == ()
    assert len(plan.at) + len(plan.at_reads) > 10, "the chaos was too quiet to prove anything"
    assert ending.spent == ending.held <= LIMIT, "nothing is held for the dead"
    assert ending.calls * COST <= ending.spent, "what the dead have spent counts, too"
    assert ending.spent > LIMIT // 2
