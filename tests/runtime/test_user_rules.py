"""An operator lists users, blocks one, unblocks one, and gives one a limit: what that does to sagas that start and that run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import Context, tool
from baton.core.decide.spending import day_of
from baton.core.limits import Limits
from baton.core.log.events import NoticeDue
from baton.core.money import NO_RULE, UserRule, blocked_rule, limited_rule, unblocked_rule
from baton.errors import BudgetSpent, NotAllowedNow, UserBlocked, UserError
from baton.ports import Account, Sums
from baton.runtime.engine.request import write_cursor
from baton.runtime.money.halting import Halted
from tests.kit.sentences import Says
from tests.kit.views import JsonAnswers
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import TENANT, USER, World
from tests.runtime.desk import DAY, DOLLAR, Desk, run, state, step
from tests.runtime.test_events import did, register, take
from tests.runtime.test_events_of_users import CARE, asked, spend
from tests.runtime.test_money import (
    CENT,
    ONE_STEP,
    add_tools,
    parked,
    start,
    status,
    sums,
    until_the_day_turns,
)
from tests.runtime.test_tenant_day import SAGA, Tenant

TWICE = "name: w\nnodes: {a: {tool: think}, b: {tool: think, after: a}}"
TICKS = "name: t\nnodes: {a: {wait: {for: 1s}}}\nschedule: {rate: 5m}"
FREE = "name: free\nnodes: {a: {wait: {for: 5s}}}"


def users(world: World) -> Any:
    return JsonAnswers(world.service().users)


def today() -> int:
    return day_of(VirtualClock().now())


async def test_no_saga_of_a_blocked_user_starts_until_the_user_is_unblocked(says: Says) -> None:
    world = World.start()
    add_tools(world)
    first = await start(world, ONE_STEP)
    await world.settle()
    assert (await users(world).block(USER, "a loop"))["state"] == "blocked"
    with says.raised(UserBlocked):
        await start(world, ONE_STEP)
    with pytest.raises(UserBlocked):
        await start(world, FREE)
    assert len(world.log.heads()) == 1
    assert await status(world, first) == "completed"
    assert (await users(world).unblock(USER, ""))["state"] == "open"
    saga = await start(world, ONE_STEP)
    await world.settle()
    assert await status(world, saga) == "completed"


async def test_a_start_that_was_made_before_finds_its_saga() -> None:
    world = World.start()
    await world.service().register(FREE, json_only=False)
    first, _ = await world.service().start("free", {}, "key")
    await users(world).block(USER, "")
    again, is_new = await world.service().start("free", {}, "key")
    assert (again["id"], is_new) == (first["id"], False)


async def test_a_running_saga_parks_before_its_next_paid_call_and_goes_on_once_it_is_unblocked() -> None:
    world = World.start()
    paid = add_tools(world)
    saga = await start(world, TWICE)
    await asyncio.sleep(0.5)
    await users(world).block(USER, "")
    await world.settle()
    assert len(paid) == 1, "the call under way is not stopped"
    assert await status(world, saga) == "parked"
    (event,) = parked(world, saga)
    assert (event.code, event.until) == ("user_blocked", (today() + 1) * 86_400_000)
    assert sums(world).spent == sums(world).held == 25 * CENT
    await until_the_day_turns()
    assert [one.code for one in parked(world, saga)] == ["user_blocked"] * 2
    assert len(paid) == 1
    told = [e.notice.key for e in world.events(saga) if isinstance(e, NoticeDue)]
    assert told == [f"blocked/user/{USER}/1"], "once, however many days it lasts"
    await users(world).unblock(USER, "")
    await world.service().resume(saga)
    await asyncio.sleep(30)
    assert await status(world, saga) == "completed"


async def test_one_that_is_unblocked_goes_on_by_itself_when_the_day_turns() -> None:
    world = World.start()
    add_tools(world)
    saga = await start(world, TWICE)
    await asyncio.sleep(0.5)
    await users(world).block(USER, "")
    await world.settle()
    await users(world).unblock(USER, "")
    await until_the_day_turns()
    assert await status(world, saga) == "completed"


async def test_what_costs_nothing_goes_on() -> None:
    world = World.start()
    saga = await start(world, FREE)
    await asyncio.sleep(1)
    await users(world).block(USER, "")
    await world.settle()
    assert await status(world, saga) == "completed"


async def test_a_limit_of_one_user_takes_the_place_of_that_of_all_and_is_taken_back() -> None:
    world = World.start()
    paid = add_tools(world)
    shown = await users(world).limit(USER, 60 * CENT, "on trial")
    assert (shown["limit_usd"], shown["own_limit_usd"], shown["note"]) == (0.6, 0.6, "on trial")
    sagas = [await start(world, ONE_STEP) for _ in range(4)]
    await world.settle()
    assert len(paid) == 2
    waiting = [saga for saga in sagas if await status(world, saga) == "parked"]
    assert [one.code for saga in waiting for one in parked(world, saga)] == ["budget_user_day"] * 2
    assert "a user may spend" not in parked(world, waiting[0])[0].message
    assert (await world.queries().budget())["left_usd"] == pytest.approx(0.1)
    await users(world).limit(USER, None, "")
    for saga in waiting:
        await world.service().resume(saga)
    await asyncio.sleep(30)
    assert len(paid) == 4
    assert (await world.queries().budget())["limit_usd"] == 5


async def test_a_limit_above_that_of_all_lets_one_user_spend_more() -> None:
    world = World.start()
    add_tools(world)
    spend(world, USER, 500 * CENT)
    with pytest.raises(BudgetSpent):
        await start(world, ONE_STEP)
    await users(world).limit(USER, 600 * CENT, "")
    saga = await start(world, ONE_STEP)
    await world.settle()
    assert await status(world, saga) == "completed"


async def test_an_event_of_a_blocked_user_is_refused() -> None:
    world = World.start()
    await register(world, CARE)
    await users(world).block("ada", "")
    assert did(await take(world, asked(customer="ada"))) == [("care", "refused")]
    assert did(await take(world, asked("e2", customer="bob"))) == [("care", "started")]


async def test_nothing_is_decided_where_no_day_is_counted() -> None:
    world = World.start(limits=Limits(user_day_budget_usd="0"))
    with pytest.raises(NotAllowedNow, match="UserDayBudgetUsd"):
        await users(world).block(USER, "")
    assert (await users(world).page("", ""))["users"] == []
    assert not world.budgets.calls


async def test_users_are_listed_with_what_they_have_spent_today_and_what_was_decided() -> None:
    world = World.start()
    add_tools(world)
    await register(world, CARE)
    await take(world, asked(customer="bob"))
    await start(world, "name: w\nnodes: {hold: {wait: {for: 30h}}, a: {tool: think}}")
    await world.settle()
    await users(world).block("eve", "")
    found = await listed(world)
    assert found == {
        "bob": ("open", 0.0),
        USER: ("open", 0.25),
        "eve": ("blocked", 0.0),
    }
    await until_the_day_turns()
    assert await listed(world) == {USER: ("open", 0.0), "eve": ("blocked", 0.0)}, "bob's ended yesterday"
    (row,) = (await users(world).page("bob", ""))["users"]
    assert (row["user"], row["state"]) == ("bob", "open")


async def listed(world: World) -> dict[str, tuple[str, float]]:
    found, cursor = dict[str, tuple[str, float]](), ""
    while True:
        page = await users(world).page("", cursor)
        found |= {row["user"]: (row["state"], row["spent_usd"]) for row in page["users"]}
        cursor = page["next"]
        if not cursor:
            return found


async def test_a_cursor_of_another_list_is_refused() -> None:
    world = World.start()
    for place in (b"x", b"\xff", b"u a b", b"s[1]"):
        with pytest.raises(UserError):
            await users(world).page("", write_cursor(place))


async def test_many_users_with_a_rule_are_listed_in_pages() -> None:
    world = World.start()
    for number in range(101):
        world.budgets.write_rule(TENANT, f"u{number:03d}", UserRule(1, True))
    await start(world, FREE)
    first = await users(world).page("", "")
    assert len(first["users"]) == 100
    assert set(await listed(world)) == {USER, *(f"u{number:03d}" for number in range(101))}


async def test_a_saga_that_is_resumed_while_its_user_is_blocked_is_parked_again() -> None:
    world = World.start()
    paid = add_tools(world)
    saga = await start(world, TWICE)
    await asyncio.sleep(0.5)
    await users(world).block(USER, "")
    await world.settle()
    await world.service().resume(saga)
    await asyncio.sleep(30)
    assert await status(world, saga) == "parked"
    assert len(paid) == 1


async def test_a_child_of_a_blocked_users_saga_starts_and_is_parked_itself() -> None:
    world = World.start()
    paid = add_tools(world)
    await world.service().register(ONE_STEP, json_only=False)
    parent = await start(world, "name: p\nnodes: {hold: {wait: {for: 5s}}, c: {workflow: w, after: hold}}")
    await asyncio.sleep(1)
    await users(world).block(USER, "")
    await world.settle()
    (child,) = (head.ref.id for head in world.log.heads() if head.ref.id != parent)
    assert await status(world, child) == "parked"
    assert not paid
    await users(world).unblock(USER, "")
    await world.service().resume(child)
    await asyncio.sleep(30)
    assert await status(world, parent) == "completed"


@pytest.mark.parametrize("cost", ["0", "0.10"])
async def test_what_a_blocked_users_saga_has_done_is_undone(cost: str) -> None:
    world = World.start(is_warm=True)
    left = list[str]()

    @tool("shop.release", registry=world.registry, cost_usd=cost)
    async def release(context: Context) -> None:
        context.spend(cost)
        left.clear()

    @tool("shop.hold", registry=world.registry, undo="shop.release", cost_usd=cost)
    async def hold(context: Context) -> None:
        context.spend(cost)
        left.append(context.saga)

    world.tools = world.registry.specs()
    saga = await start(world, "name: w\nnodes: {a: {tool: shop.hold}, b: {wait: {for: 1h}, after: a}}")
    await asyncio.sleep(5)
    assert left == [saga]
    other = await start(world, "name: o\nnodes: {b: {wait: {for: 5s}}, a: {tool: shop.hold, after: b}}")
    await asyncio.sleep(1)
    await users(world).block(USER, "")
    await asyncio.sleep(30)
    assert await status(world, other) == ("parked" if cost != "0" else "completed")
    left[:] = [saga]
    await world.service().cancel(saga, "", 0, undo=True)
    await asyncio.sleep(60)
    assert (left, await status(world, saga)) == ([], "rolled_back")


async def test_a_schedule_of_a_blocked_user_gives_its_ticks_up() -> None:
    world = World.start()
    await world.service().register(TICKS, json_only=False)
    await users(world).block(USER, "")
    await asyncio.sleep(700)
    assert world.log.heads() == []
    await users(world).unblock(USER, "")
    await asyncio.sleep(400)
    assert len(world.log.heads()) == 1


async def test_of_two_operators_neither_loses_what_the_other_has_decided() -> None:
    world = World.start()
    await asyncio.gather(
        users(world).block(USER, ""), *(users(world).limit(USER, n * DOLLAR, "") for n in range(1, 6))
    )
    rule = world.budgets.read_rule(TENANT, USER)
    assert rule.is_blocked
    assert (rule.version, rule.limit is not None) == (6, True)
    assert world.budgets.read(Account(TENANT, USER, today())).rule.version == 6


# ---- one invocation


def decide(desk: Desk, rule: UserRule, day: int = DAY, *, is_told: bool = True) -> None:
    assert desk.budgets.write_rule("acme", "ada", rule) is None
    if is_told:
        desk.budgets.tell_rule(Account("acme", "ada", day), rule)


def test_a_block_is_heard_by_the_next_request_of_an_invocation_under_way() -> None:
    desk = Desk()
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(5), []))
    decide(desk, blocked_rule(NO_RULE, "op", "", 0))
    run(ledger.settle(state(), step(5), 3))
    asked = desk.budgets.calls
    with pytest.raises(Halted) as refused:
        run(ledger.reserve(state(), step(5, "b"), []))
    assert refused.value.halt.parked.code == "user_blocked"
    assert desk.budgets.calls == asked, "it knows already"
    assert (desk.sums().spent, desk.sums().held) == (3, 3)


def test_the_first_reservation_after_a_lower_limit_heeds_it() -> None:
    desk = Desk()
    desk.spend(2 * DOLLAR)
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(5), []))
    decide(desk, limited_rule(NO_RULE, 2 * DOLLAR + 9, "op", "", 0))
    run(ledger.reserve(state(), step(4, "b"), []))
    with pytest.raises(Halted) as refused:
        run(ledger.reserve(state(), step(10, "c"), []))
    assert refused.value.halt.parked.code == "budget_user_day"
    assert desk.sums().held == 2 * DOLLAR + 9, "to the millionth"


def test_a_higher_limit_is_heard_where_the_day_was_known_to_be_spent() -> None:
    desk = Desk()
    desk.spend(5 * DOLLAR)
    with pytest.raises(Halted):
        run(desk.ledger().reserve(state(), step(5), []))
    decide(desk, limited_rule(NO_RULE, 6 * DOLLAR, "op", "", 0), is_told=False)
    assert run(desk.cache.parked(desk.call(), Account("acme", "ada", DAY))) is None
    run(desk.ledger().reserve(state(), step(5), []))


def test_an_older_rule_that_is_read_late_does_not_undo_a_later_one() -> None:
    desk = Desk()
    account = Account("acme", "ada", DAY)
    first = blocked_rule(NO_RULE, "op", "", 0)
    desk.cache.learn(account, desk.sums())
    decide(desk, first)
    decide(desk, unblocked_rule(first, "op", "", 0))
    assert run(desk.cache.parked(desk.call(), account)) is None
    late = desk.sums()
    desk.cache.learn(account, type(late)(rule=first))
    assert desk.cache.rule(account).version == 2
    run(desk.ledger().reserve(state(), step(5), []))


def test_a_limit_that_is_put_on_while_much_is_held_lets_that_be_spent_and_no_more() -> None:
    desk = Desk()
    one, other = desk.ledger(), desk.ledger()
    run(one.reserve(state(), step(3 * DOLLAR), []))
    decide(desk, limited_rule(NO_RULE, DOLLAR, "op", "", 0))
    with pytest.raises(Halted):
        run(other.reserve(state("s2"), step(2 * DOLLAR), []))
    run(one.settle(state(), step(3 * DOLLAR), 3 * DOLLAR))
    assert desk.sums().spent == 3 * DOLLAR
    with pytest.raises(Halted) as refused:
        run(other.reserve(state("s2"), step(1), []))
    assert "of the user's 1 dollars" in refused.value.halt.parked.message


def test_a_deployment_without_rules_makes_the_requests_that_it_made_before() -> None:
    desk = Desk()
    asked = desk.budgets.calls
    ledger = desk.ledger()
    run(desk.cache.parked(desk.call(), Account("acme", "ada", DAY)))
    run(ledger.reserve(state(), step(5), []))
    run(ledger.settle(state(), step(5), 3))
    assert desk.budgets.calls == asked + 3
    assert not desk.cache.rules


async def test_a_block_is_heard_beside_the_tenants_day_and_what_was_drawn_is_given_back() -> None:
    desk = Tenant(100 * CENT, user_day=50 * CENT)
    ledger = desk.ledger()
    await ledger.reserve(state(), step(10 * CENT), [])
    decide(desk, blocked_rule(NO_RULE, "op", "", 0))
    with pytest.raises(Halted) as refused:
        await ledger.reserve(state(), step(10 * CENT, "b"), [])
    assert refused.value.halt.parked.code == "user_blocked"
    await ledger.settle(state(), step(10 * CENT), 10 * CENT)
    await ledger.drain(SAGA)
    assert desk.tenant() == Sums(10 * CENT, 10 * CENT)


async def test_without_a_limit_for_all_a_rule_from_before_counts_nothing() -> None:
    desk = Tenant(100 * CENT)
    decide(desk, blocked_rule(NO_RULE, "op", "", 0))
    ledger = desk.ledger()
    assert await desk.cache.parked(desk.call(), Account("acme", "ada", DAY)) is None
    await ledger.reserve(state(), step(10 * CENT), [])
    await ledger.settle(state(), step(10 * CENT), 10 * CENT)
    await ledger.drain(SAGA)
    assert desk.tenant() == Sums(10 * CENT, 10 * CENT)


def test_an_invocation_that_passes_midnight_heeds_what_was_decided_the_day_before() -> None:
    desk = Desk()
    ledger = desk.ledger()
    run(ledger.reserve(state(), step(5), []))
    decide(desk, blocked_rule(NO_RULE, "op", "", 0), DAY + 1)
    desk.clock.at = (DAY + 1) * 86_400_000
    with pytest.raises(Halted) as refused:
        run(ledger.reserve(state(), step(5, "b"), []))
    assert refused.value.halt.parked.code == "user_blocked"
