"""A saga's limits of money are those of its tree: children, graphs and mapped agents draw from the account of their root."""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Sequence

import pytest

from baton import Context, tool
from baton.core.decide.spending import kept_until
from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.folding.fold import fold
from baton.core.log.state import State
from baton.core.money import micro_dollars
from baton.errors import StoreUnavailable, Throttled
from baton.ports import Account, BudgetAnswer, ReservationChange, StepFailure, Sums
from baton.runtime.money.holds import PREFIX
from tests.kit.faults import EVERYTHING, Crash, Plan, scripted
from tests.kit.virtual_time import run_virtual
from tests.kit.world import TENANT, World
from tests.runtime.test_agents import Desk, document
from tests.runtime.test_many_agents import logged, script

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
DOLLAR, CENT, FOREVER = 1_000_000, 10_000, 1 << 62
TEAMS = """
name: teams
nodes:
  teams:
    map: {over: [1, 2, 3, 4, 5], concurrency: 5}
    workflow: team
"""
TEAM = """
name: team
nodes:
  all:
    map: {over: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], concurrency: 10}
    workflow: w
    with: {a: "${item}"}
"""
LEAF = "name: leaf\nnodes: {a: {tool: think}}"


def state_of(world: World, saga: str) -> State:
    of = State()
    for entry in world.entries(saga):
        of = fold(of, entry)
    return of


def account(world: World, saga: str, node: str | None = None) -> Sums:
    """Sums of the tree of a saga, once what the dead held is free."""
    name = saga if node is None else f"{saga}/{node}"
    day = kept_until(state_of(world, saga))
    return world.budgets.expire(Account(TENANT, PREFIX + name, day), FOREVER).sums


async def start(world: World, *documents: str, given: object = None) -> str:
    names = [(await world.service().register(text, json_only=False)).definition.name for text in documents]
    view, _ = await world.service().start(names[-1], given or {}, "")
    return str(view["id"])


def sagas(world: World) -> list[str]:
    return [head.ref.id for head in world.log.heads()]


def of_kind(world: World, kind: type[ev.Event]) -> list[ev.Event]:
    return [event for saga in sagas(world) for event in world.events(saga) if isinstance(event, kind)]


def add_think(world: World) -> list[str]:
    """A tool that costs up to 30 cents, and 25 in the end. Returns the sagas that have paid."""
    paid: list[str] = []

    @tool("think", registry=world.registry, cost_usd="0.30")
    async def think(context: Context, seconds: float = 1) -> None:
        await asyncio.sleep(seconds)
        context.spend("0.25")
        paid.append(context.saga)

    world.tools = world.registry.specs()
    return paid


@pytest.mark.parametrize("deaths", [pytest.param([], marks=pytest.mark.soak), [5, 20, 33]])
async def test_fifty_agents_in_three_levels_hold_the_limit_of_their_root_to_the_micro_dollar(
    deaths: list[int],
) -> None:
    world = World.start(limits=Limits(saga_budget_usd="0.012345"))
    Desk(world)
    world.models = script(deaths)
    root = await start(world, document(", max_output: 50"), TEAM, TEAMS)
    await world.settle(3_600)
    billed = micro_dollars([part for one in world.asked for part in one.bill])
    sums = account(world, root)
    assert sums.spent == sums.held == billed, "the account has what the provider bills"
    assert 12_345 - 2_000 < billed <= 12_345
    spent, assumed = logged(world)
    assert spent == billed if not deaths else billed - 10 * 313 <= spent <= billed
    assert bool(assumed) == bool(deaths)
    codes = {event.code for event in of_kind(world, ev.Parked) if isinstance(event, ev.Parked)}
    assert codes == {"budget_saga"}


@pytest.mark.parametrize("user_day", ["0", "5"])
async def test_children_side_by_side_do_not_overspend_their_root_and_wait_for_each_other(
    user_day: str,
) -> None:
    world = World.start(limits=Limits(user_day_budget_usd=user_day))
    paid = add_think(world)
    root = await start(
        world,
        LEAF,
        "name: w\nnodes: {kids: {map: {over: [1, 2, 3, 4, 5, 6], concurrency: 6}, workflow: leaf}}",
    )
    await world.settle(3_600)
    assert len(paid) == 3, "75 cents are spent, and 30 more would be too much"
    assert account(world, root) == Sums(75 * CENT, 75 * CENT, 0)
    parked = [event for event in of_kind(world, ev.Parked) if isinstance(event, ev.Parked)]
    assert len(parked) == 3
    assert f"0.75 of the 1 dollars of saga {root} and those below it are spent" in parked[0].message
    assert [told.code for told in world.notices.said].count("budget_saga") == 1, "one for the tree"


async def test_a_child_that_is_resumed_may_spend_as_much_again_of_its_tree() -> None:
    world = World.start()
    paid = add_think(world)
    root = await start(
        world,
        LEAF,
        "name: w\nnodes: {kids: {map: {over: [1, 2, 3, 4, 5], concurrency: 5}, workflow: leaf}}",
    )
    await world.settle(3_600)
    waiting = [saga for saga in sagas(world) if state_of(world, saga).parked is not None]
    assert len(waiting) == 2
    for saga in waiting:
        await world.service().resume(saga)
    await world.settle(3_600)
    assert len(paid) == 5
    assert state_of(world, root).ended is not None
    assert account(world, root) == Sums(125 * CENT, 125 * CENT, 0)


async def test_what_the_root_has_spent_before_its_first_child_counts() -> None:
    world = World.start()
    paid = add_think(world)
    nodes = "a: {tool: think}, b: {tool: think, after: a}, kid: {workflow: leaf, after: b}"
    root = await start(world, LEAF, f"name: w\nnodes: {{{nodes}, kid2: {{workflow: leaf, after: kid}}}}")
    await world.settle(3_600)
    assert len(paid) == 3
    assert account(world, root).spent == 75 * CENT


@pytest.mark.parametrize("where", ["node", "saga"])
async def test_a_limit_of_a_document_holds_for_the_sagas_below_it(where: str) -> None:
    world = World.start(limits=Limits(on_failure="fail"))
    paid = add_think(world)
    cap = "limits: {cost_usd: 0.50}"
    node, top = (f", {cap}", "") if where == "node" else ("", f"{cap}\n")
    text = f"name: w\n{top}nodes: {{kids: {{map: {{over: [1, 2, 3, 4], concurrency: 4}}, workflow: leaf{node}}}}}"
    root = await start(world, LEAF, text)
    await world.settle(3_600)
    assert len(paid) == 1, "25 cents are spent, and 30 more would be too much"
    assert account(world, root, "kids" if where == "node" else "").spent == 25 * CENT
    ended = state_of(world, root).ended
    assert ended is not None
    assert ended.status == "failed"
    assert "limits.cost_usd" in str(ended.failure)


async def test_what_a_dead_worker_held_counts_as_spent() -> None:
    """Its call may have spent that, and no entry says so."""
    world = World.start()
    deaths: list[str] = []

    @tool("dies", registry=world.registry, cost_usd="0.40")
    async def dies(context: Context) -> None:
        context.spend("0.40")
        if not deaths:
            deaths.append(context.saga)
            world.running[context.saga, context.node].is_dead = True
            raise Crash

    world.tools = world.registry.specs()
    root = await start(
        world,
        LEAF.replace("think", "dies"),
        "name: w\nnodes: {kids: {map: {over: [1, 2], concurrency: 2}, workflow: leaf}}",
    )
    await world.settle(3_600)
    assert account(world, root) == Sums(80 * CENT, 80 * CENT, 0)
    assert [one.code for one in of_kind(world, ev.Parked) if isinstance(one, ev.Parked)] == ["budget_saga"]


@pytest.mark.parametrize("how", ["refuses", "hangs", "lands late"])
async def test_a_tree_whose_account_takes_no_settlement_spends_no_more_than_its_limit(
    monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    world = World.start()
    paid, real = add_think(world), world.budgets.move
    last, late = asyncio.get_running_loop().time() + 30, list[tuple[Account, ReservationChange, int]]()

    def move(account: Account, change: ReservationChange, now: int) -> BudgetAnswer:
        is_settled = change.before is not None and change.limit is None and account.user[:5] == PREFIX
        if is_settled and asyncio.get_running_loop().time() < last:
            late.append((account, change, now))
            raise Throttled("not now") if how == "refuses" else StoreUnavailable("no answer in time")
        while how == "lands late" and late:
            real(*late.pop(0))
        return real(account, change, now)

    monkeypatch.setattr(world.budgets, "move", move)
    root = await start(
        world,
        LEAF,
        "name: w\nnodes: {kids: {map: {over: [1, 2, 3, 4, 5, 6, 7, 8], concurrency: 8}, workflow: leaf}}",
    )
    await world.settle(3_600)
    assert late or how == "lands late"
    spent = account(world, root)
    assert spent.spent == spent.held
    assert len(paid) * 25 * CENT <= spent.spent <= DOLLAR
    parked = [one.code for one in of_kind(world, ev.Parked) if isinstance(one, ev.Parked)]
    assert parked == ["budget_saga"] * (8 - len(paid))


async def test_a_saga_without_children_writes_nothing_of_it() -> None:
    world = World.start()
    add_think(world)
    root = await start(world, "name: w\nnodes: {a: {tool: think}}")
    await world.settle(600)
    assert not any(one.user.startswith(PREFIX) for one in world.budgets.spent())
    assert account(world, root) == Sums()


# ---- waiting for money that others hold


def waits(world: World) -> list[ev.StepHeld]:
    return [event for event in of_kind(world, ev.StepHeld) if isinstance(event, ev.StepHeld)]


async def test_who_waits_for_money_holds_no_invocation_and_all_come_to_their_turn() -> None:
    world = World.start(timeout_s=300, batch=1)
    calls: list[str] = []

    @tool("slow", registry=world.registry, cost_usd="0.30", timeout="2m")
    async def slow(context: Context) -> None:
        calls.append(context.saga)
        await asyncio.sleep(60)
        context.spend("0.01")

    world.tools = world.registry.specs()
    eight = "map: {over: [1, 2, 3, 4, 5, 6, 7, 8], concurrency: 8}, workflow: leaf"
    root = await start(world, LEAF.replace("think", "slow"), f"name: w\nnodes: {{kids: {{{eight}}}}}")
    await asyncio.sleep(50)
    assert len(calls) == 3, "a dollar has room for three at a time"
    waiting = [saga for saga in sagas(world) if state_of(world, saga).held]
    assert len(waiting) == 5
    assert {one.owner for one in world.log.heads() if one.ref.id in waiting} == {""}
    day = kept_until(state_of(world, root))
    held = world.budgets.read(Account(TENANT, PREFIX + root, day)).held
    assert held == 90 * CENT, "nothing is held while they wait"
    await world.settle(3_600)
    assert len(calls) == 8
    ended = state_of(world, root).ended
    assert ended is not None
    assert ended.status == "completed"
    assert world.billed_s < 1.02 * 8 * 60
    assert {(wait.limit, wait.amount) for wait in waits(world)} == {("budget_saga", 30 * CENT)}
    assert len(waits(world)) < 8 * 10, "pauses grow"
    assert account(world, root) == Sums(8 * CENT, 8 * CENT, 0)


async def test_a_saga_that_needs_more_has_its_turn_when_the_others_are_done() -> None:
    world = World.start(timeout_s=300)
    order: list[str] = []

    @tool("some", registry=world.registry, cost_usd="0.20")
    async def some(context: Context) -> None:
        await asyncio.sleep(20)
        order.append("some")

    @tool("most", registry=world.registry, cost_usd="1")
    async def most(context: Context) -> None:
        order.append("most")

    world.tools = world.registry.specs()
    kids = ", ".join(f"k{number}: {{workflow: leaf}}" for number in range(12))
    big = "name: big\nnodes: {a: {tool: most}}"
    root = await start(
        world, LEAF.replace("think", "some"), big, f"name: w\nnodes: {{{kids}, big: {{workflow: big}}}}"
    )
    await world.settle(3_600)
    assert sorted(order) == ["most"] + ["some"] * 12
    assert order.index("most") >= 5, "while five of them hold their part, there is no room for all of it"
    assert state_of(world, root).ended is not None


async def test_what_can_never_fit_does_not_wait() -> None:
    world = World.start()
    add_think(world)

    @tool("dear", registry=world.registry, cost_usd="1.01")
    async def dear(context: Context) -> None:
        raise AssertionError("it is not called")

    world.tools = world.registry.specs()
    nodes = "kid: {workflow: leaf}, dear: {workflow: dear}"
    await start(world, LEAF, "name: dear\nnodes: {a: {tool: dear}}", f"name: w\nnodes: {{{nodes}}}")
    await world.settle(3_600)
    assert waits(world) == []
    assert [one.code for one in of_kind(world, ev.Parked) if isinstance(one, ev.Parked)] == ["budget_saga"]


@pytest.mark.parametrize("limits", [{"user_day_budget_usd": "0.50"}, {"tenant_day_budget_usd": "0.50"}])
async def test_sagas_that_share_a_day_wait_without_an_invocation_too(limits: dict[str, str]) -> None:
    world = World.start(limits=Limits(**limits), timeout_s=300, batch=1)  # type: ignore[arg-type]
    add_think(world)
    document = "name: one\nnodes: {a: {tool: think, with: {seconds: 60}, timeout: 90s}}"
    await world.service().register(document, json_only=False)
    for number in range(2):
        await world.service().start("one", {}, f"k{number}")
    await world.settle(7_200)
    (code,) = {wait.limit for wait in waits(world)}
    assert code == ("budget_user_day" if "user_day_budget_usd" in limits else "budget_tenant_day")
    assert world.billed_s < 62
    parked = [one.code for one in of_kind(world, ev.Parked) if isinstance(one, ev.Parked)]
    assert parked == [code], "a quarter is spent, and another would be too much"


async def test_steps_of_one_saga_that_hold_the_rest_themselves_wait_in_the_invocation_that_they_keep() -> (
    None
):
    world = World.start(timeout_s=300, limits=Limits(user_day_budget_usd="0.70", saga_budget_usd="0"))
    paid = add_think(world)
    think = "tool: think, with: {seconds: 20}"
    saga = await start(world, f"name: w\nnodes: {{a: {{{think}}}, b: {{{think}}}, c: {{{think}}}}}")
    await world.settle(600)
    assert len(paid) == 2
    assert waits(world) == []
    parked = state_of(world, saga).parked
    assert parked is not None
    assert parked.code == "budget_user_day"


async def ask_beside_a_hog(plan: Plan) -> tuple[World, str, list[int]]:
    """A child pays for calls whose next one has to wait, because another child holds the rest.
    Returns the root, and the length of the text in each call.
    """
    world = World.start(timeout_s=60, batch=1, limits=Limits(saga_budget_usd="0.60"))
    calls: list[int] = []

    @tool("hog", registry=world.registry, cost_usd="0.40", timeout="50s")
    async def hog(context: Context) -> None:
        await asyncio.sleep(40)

    @tool("llm", registry=world.registry, cost_usd="0.10", context="text")
    async def llm(text: str, context: Context) -> str:
        calls.append(len(text))
        context.spend("0.10")
        if len(text) > 4:
            raise StepFailure("context_exceeded", "too long")
        return text[:1]

    world.tools = world.registry.specs()
    hints = "on_failure: {context_exceeded: {hints: [truncate_context]}}"
    ask = f"name: ask\nnodes: {{p: {{tool: llm, with: {{text: {'abcd ' * 8}}}, {hints}}}}}"
    kids = "hog: {workflow: leaf}, ask: {workflow: ask}"
    root = await start(world, LEAF.replace("think", "hog"), ask, f"name: w\nnodes: {{{kids}}}")
    world.plan = plan
    await world.settle(7_200)
    return world, root, calls


async def test_the_next_invocation_begins_with_what_an_attempt_lacked_after_it_had_paid() -> None:
    world, root, calls = await ask_beside_a_hog(Plan())
    found = waits(world)
    assert len(found) > 2
    assert {(wait.amount, wait.first) for wait in found} == {(20 * CENT, True)}, "two calls"
    (cut,) = of_kind(world, ev.StepInterrupted)
    assert isinstance(cut, ev.StepInterrupted)
    assert (cut.why, cut.cost) == ("money", 10 * CENT)
    assert calls == [39, 19, 19, 9, 4], "what was paid for is paid for once more, and not with each look"
    assert account(world, root).spent == 50 * CENT


def test_whatever_happens_at_a_write_around_such_a_wait_no_money_is_lost() -> None:
    """Every sixth write meets a fate, in turn; with `BATON_CRASH_POINTS` each of them meets all."""

    async def ending(plan: Plan) -> tuple[Sequence[str], str, set[str], int, Sums]:
        world, root, calls = await ask_beside_a_hog(plan)
        await asyncio.sleep(2 * max(world.stall_s, world.late_s))
        ended = state_of(world, root).ended
        parked = {one.code for one in of_kind(world, ev.Parked) if isinstance(one, ev.Parked)}
        return plan.writes, ended.status if ended else "", parked, len(calls), account(world, root)

    writes, *_ = run_virtual(ending(Plan()))
    places = itertools.product(enumerate(writes, 1), EVERYTHING)
    for (number, write), fate in itertools.islice(places, 0, None, 1 if IS_ALL else 6 * len(EVERYTHING) + 1):
        _, end, parked, calls, sums = run_virtual(ending(scripted([("write", number, fate)])))
        at = f"{fate} at write {number}, {write}"
        assert (end, parked) in (("completed", set()), ("", {"budget_saga"})), at
        assert calls * 10 * CENT <= sums.spent == sums.held <= 60 * CENT, at
