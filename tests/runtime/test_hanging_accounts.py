"""An account that does not answer delays its own saga by a moment, and no other."""

from __future__ import annotations

import asyncio
from typing import Any

from baton import Context, tool
from baton.core.log.events import StepInterrupted
from baton.errors import Throttled
from baton.ports import Account, BudgetAnswer, Message, ReservationChange, SagaRef
from tests.kit.corpus import start
from tests.kit.world import TENANT, World
from tests.runtime.test_hanging_stores import ALONE, FOREVER, add_tools, end


def add_paid(world: World) -> None:
    """A tool that declares a cost, spends a part of it at once, and then takes its time."""

    @tool("paid", registry=world.registry, cost_usd="0.30", timeout="60s")
    async def paid(context: Context) -> None:
        context.spend("0.20")
        await asyncio.sleep(50)

    world.tools = world.registry.specs()


async def test_what_a_step_spent_that_was_cut_off_is_in_the_log_while_its_account_hangs() -> None:
    document = "name: w\nnodes:\n  long: {tool: paid}\n  quick: {tool: takes, with: {seconds: 5.31}}"
    world = World.start(**ALONE)
    began = add_tools(world)
    add_paid(world)
    saga = await start(world, document, {}, "w")
    work = asyncio.create_task(world.work([Message(str(SagaRef(TENANT, saga)), 1)]))
    await asyncio.sleep(2)  # what it may cost is held
    world.slow["move"] = FOREVER
    await work
    cuts = [event for event in world.events(saga) if isinstance(event, StepInterrupted)]
    assert [(cut.node, cut.cost) for cut in cuts if cut.cost] == [("long", 200_000)]
    head = world.log.read_head(SagaRef(TENANT, saga))
    assert head is not None
    assert head.owner == "", "there was time left to give the lease back"
    assert began["quick"] == 1


async def test_the_account_of_one_user_that_is_throttled_does_not_hold_up_the_saga_of_another() -> None:
    document = """
        name: w
        nodes:
          fast: {tool: takes, with: {seconds: 2}}
          slow: {tool: paid}
          first: {value: 1, after: [fast, slow], join: any}
          rest: {tool: takes, after: first, with: {seconds: 1}}
    """
    world = World.start(timeout_s=60, **ALONE)
    add_tools(world)
    add_paid(world)
    await world.service().register(document, json_only=False)
    real = world.budgets.move

    def move(account: Account, change: ReservationChange, now: int) -> BudgetAnswer:
        if account.user == "ann" and change.before is not None:
            raise Throttled("hot")
        return real(account, change, now)

    any_budgets: Any = world.budgets
    any_budgets.move = move
    sagas = [str((await world.service(user=user).start("w", {}, user))[0]["id"]) for user in ("ann", "bob")]
    work = asyncio.create_task(world.work([Message(str(SagaRef(TENANT, saga)), 1) for saga in sagas]))
    await asyncio.sleep(5)
    assert [end(world, saga) for saga in sagas] == ["completed", "completed"]
    await work
