"""Fifty agents of one user at once, under one limit of their day: they hold it to the micro-dollar, whichever worker dies meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from baton.core.limits import DAY_MS, Limits
from baton.core.log import events as ev
from baton.core.money import micro_dollars
from baton.errors import BudgetSpent
from baton.ports import Account
from baton.ports.models import ModelAnswer, ModelRequest
from tests.kit.faults import Crash
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, USER, World
from tests.runtime.test_agents import Desk, document

LIMIT = 12_345
AGENTS = 50


def script(deaths: list[int]) -> Scripted:
    """Three turns of different costs; the requests of these numbers take their worker along."""
    turns = by_turn(
        asks_for(("sum_add", {"a": 1, "b": 2}), read=101, written=7),
        asks_for(("sum_add", {"a": 2, "b": 2}), read=203, written=11),
        says("done", read=301, written=3),
    )

    def answer(request: ModelRequest, number: int) -> ModelAnswer:
        if number in deaths:
            raise Crash
        return turns(request, number)

    return Scripted(answer)


def logged(world: World) -> tuple[int, int]:
    """What the logs say was spent, and how much of it was assumed."""
    events = [event for head in world.log.heads() for event in world.events(head.ref.id)]
    paid = [
        event
        for event in events
        if isinstance(event, ev.StepSucceeded | ev.StepInterrupted | ev.AttemptFailed)
    ]
    dead = sum(sum(event.assumed.values()) for event in events if isinstance(event, ev.Revived))
    return sum(event.cost for event in paid) + dead, sum(event.assumed for event in paid) + dead


@pytest.mark.parametrize("deaths", [[], [5, 20, 33]])
async def test_fifty_agents_at_once_hold_the_limit_of_their_user_to_the_micro_dollar(
    deaths: list[int],
) -> None:
    world = World.start(limits=Limits(user_day_budget_usd=f"0.0{LIMIT}"), batch=10, timeout_s=20)
    Desk(world)
    world.models = model = script(deaths)
    await world.service().register(document(", max_output: 50"), json_only=False)

    async def begin(number: int) -> None:
        with suppress(BudgetSpent):
            await world.service().start("w", {"a": number}, f"k{number}")

    await asyncio.gather(*(begin(number) for number in range(AGENTS)))
    await world.settle(3_600)
    day = VirtualClock().now() // DAY_MS
    account = Account(TENANT, USER, day)
    sums = world.budgets.expire(account, 1 << 62).sums
    spent, assumed = logged(world)
    billed = micro_dollars([part for one in world.asked for part in one.bill])
    assert sums.spent == sums.held == billed, "the account has what the provider bills"
    # An answer that was settled dies with its worker before it is in the log.
    assert spent == billed if not deaths else billed - 10 * 313 <= spent <= billed
    assert bool(assumed) == bool(deaths)
    assert LIMIT - 2_000 < sums.spent <= LIMIT
    status = {head.status for head in world.log.heads()}
    assert "parked" in status
    codes = {
        event.code
        for head in world.log.heads()
        for event in world.events(head.ref.id)
        if isinstance(event, ev.Parked)
    }
    assert codes == {"budget_user_day"}
    assert len(model.requests) < 3 * AGENTS
