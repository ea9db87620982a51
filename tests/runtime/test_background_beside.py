"""Requests in the background beside the limit of a tenant's day."""

from __future__ import annotations

from baton.core.limits import Limits
from baton.ports import Account, Sums
from tests.kit.scripted import Scripted, in_turn, says
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, USER, World
from tests.runtime.test_agents import ran
from tests.runtime.test_background import ASK


async def test_the_tenants_day_gets_back_what_was_held_and_not_used() -> None:
    world = World.start(limits=Limits(user_day_budget_usd="0", tenant_day_budget_usd="1"))
    world.models = Scripted(in_turn(says("hello")), thinks_s=100)
    shown = await ran(world, ASK % "", {})
    assert shown["result"] == "hello"
    today = VirtualClock().now() // 86_400_000
    user = world.budgets.read(Account(TENANT, USER, today))
    assert (user.spent, user.held, user.drawn, user.told) == (200, 200, 200, 200)
    assert world.budgets.read(Account(TENANT, "", today)) == Sums(200, 200, 0)
