"""Fifty agents of many users at once, under one limit of their tenant's day: to the micro-dollar, whichever worker dies meanwhile."""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import suppress

import pytest

from baton.core.limits import DAY_MS, Limits
from baton.core.log import events as ev
from baton.core.log.state import Origin, State
from baton.core.money import micro_dollars
from baton.errors import BudgetSpent, TenantBudgetSpent
from baton.ports import Account, NoRoom, SagaRef, Sums
from baton.runtime.money.halting import Halted
from tests.kit.documents import chain_of
from tests.kit.faults import Plan
from tests.kit.sentences import Says
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, World
from tests.runtime import desk
from tests.runtime.desk import DOLLAR, state, step
from tests.runtime.test_agents import Desk, document
from tests.runtime.test_many_agents import logged, script

LIMIT = 12_345
AGENTS = 50
USERS = 13
CENT = 10_000
SAGA = SagaRef("acme", "s1")


@pytest.mark.parametrize("deaths", [pytest.param([], marks=pytest.mark.soak), [5, 20, 33]])
async def test_fifty_agents_of_many_users_hold_the_limit_of_their_tenant_to_the_micro_dollar(
    deaths: list[int],
) -> None:
    limits = Limits(user_day_budget_usd="0", tenant_day_budget_usd=f"0.0{LIMIT}")
    world = World.start(limits=limits, batch=10, timeout_s=20)
    Desk(world)
    world.models = model = script(deaths)
    await world.service().register(document(", max_output: 50"), json_only=False)

    async def begin(number: int) -> None:
        with suppress(BudgetSpent):
            await world.service(user=f"u{number % USERS}").start("w", {"a": number}, f"k{number}")

    await asyncio.gather(*(begin(number) for number in range(AGENTS)))
    await world.settle(3_600)
    day = VirtualClock().now() // DAY_MS
    users = [world.budgets.expire(Account(TENANT, f"u{n}", day), 1 << 62).sums for n in range(USERS)]
    tenant = world.budgets.read(Account(TENANT, "", day))
    billed = micro_dollars([part for one in world.asked for part in one.bill])
    spent = sum(sums.spent for sums in users)
    assert spent == tenant.spent == tenant.held
    # A worker that dies just before its request is taken for one that has made it.
    assert spent == billed if not deaths else spent >= billed
    assert LIMIT - 2_000 < spent <= LIMIT, "the last money of the day was usable"
    assert bool(logged(world)[1]) == bool(deaths)
    statuses = Counter(head.status for head in world.log.heads())
    assert statuses["parked"] >= 1
    parked = [
        event
        for head in world.log.heads()
        for event in world.events(head.ref.id)
        if isinstance(event, ev.Parked)
    ]
    assert {event.code for event in parked} == {"budget_tenant_day"}
    assert all(event.until == (day + 1) * DAY_MS for event in parked)
    assert len(model.requests) < 3 * AGENTS


class Tenant(desk.Desk):
    """The desk with a limit of the tenant's day."""

    def __init__(self, limit: int, user_day: int = 0) -> None:
        super().__init__(user_day=user_day)
        self.cache.terms = type(self.cache.terms)(user_day=user_day, tenant_day=limit)

    def tenant(self) -> Sums:
        return self.budgets.read(Account("acme", "", desk.DAY))


def of(user: str, saga: str) -> State:
    return State(version=1, origin=Origin(tenant="acme", user=user, saga=saga))


async def test_slices_grow_with_what_a_user_spends_and_what_is_left_is_given_back() -> None:
    one = Tenant(100 * DOLLAR)
    ledger, before = one.ledger(), one.budgets.calls
    drawn = []
    for number in range(100):
        mine = step(CENT, f"a{number}")
        await ledger.reserve(state(), mine, [])
        await ledger.settle(state(), mine, CENT)
        drawn.append(one.sums().drawn)
    assert len(set(drawn)) <= 10, "a hundred calls drew a few times"
    assert one.sums().drawn >= one.sums().held
    await ledger.drain(SAGA)
    assert one.sums() == Sums(DOLLAR, DOLLAR, 0, DOLLAR, DOLLAR)
    assert one.tenant() == Sums(DOLLAR, DOLLAR)
    assert before == 0


async def test_who_finds_nothing_left_waits_while_others_may_give_back_and_is_parked_when_all_is_spent() -> (
    None
):
    one = Tenant(30 * CENT)
    ada, eve = one.ledger(), one.ledger()
    await ada.reserve(state(), step(20 * CENT), [])
    with pytest.raises(NoRoom) as busy:
        await eve.reserve(of("eve", "s2"), step(20 * CENT), [])
    assert not isinstance(busy.value, Halted)
    await ada.settle(state(), step(20 * CENT), 20 * CENT)
    await ada.drain(SAGA)
    with pytest.raises(Halted) as halted:
        await eve.reserve(of("eve", "s2"), step(20 * CENT), [])
    assert halted.value.halt.parked.code == "budget_tenant_day"
    assert [notice.to for notice in halted.value.halt.notices] == ["user"]
    await eve.reserve(of("eve", "s2"), step(10 * CENT), [])
    assert one.tenant().held == 30 * CENT, "the last money is drawn exactly"


async def test_a_users_limit_holds_beside_the_tenants() -> None:
    one = Tenant(100 * CENT, user_day=15 * CENT)
    ledger = one.ledger()
    await ledger.reserve(state(), step(10 * CENT), [])
    await ledger.settle(state(), step(10 * CENT), 10 * CENT)
    with pytest.raises(Halted) as halted:
        await ledger.reserve(state(), step(10 * CENT), [])
    assert halted.value.halt.parked.code == "budget_user_day"
    await ledger.drain(SAGA)
    assert one.tenant() == Sums(10 * CENT, 10 * CENT)


async def test_a_call_that_costs_more_than_the_tenants_whole_day_waits_for_an_operator() -> None:
    one = Tenant(10 * CENT)
    with pytest.raises(Halted) as halted:
        await one.ledger().reserve(state(), step(11 * CENT), [])
    assert halted.value.halt.parked.until == 0


async def test_without_a_limit_no_request_is_made_of_the_tenant() -> None:
    world = World.start(plan=Plan())
    await world.service().register(
        "name: w\nnodes: {a: {tool: purchase, with: {seconds: 0.1}}}", json_only=False
    )
    await world.service().start("w", {}, "k")
    await world.settle()
    assert {account.user for account in world.budgets._items} == {"ann"}
    assert "draw" not in world.plan.writes


async def test_a_tenant_that_has_spent_all_starts_nothing_that_day(says: Says) -> None:
    world = World.start(limits=Limits(tenant_day_budget_usd="1"))
    await world.service().register(chain_of(1, 0.1), json_only=False)
    day = VirtualClock().now() // DAY_MS
    world.budgets.draw(Account(TENANT, "bob", day), Sums(spent=DOLLAR), DOLLAR)
    with pytest.raises(TenantBudgetSpent) as refused:
        await world.service().start("chain", {"n": 1}, "k")
    says(str(refused.value))
    assert 0 < refused.value.retry_after_s <= 86_400
