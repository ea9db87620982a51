"""Money that a tool holds itself, before a call whose price it knows only then."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from baton import Context, StepFailure, tool
from baton.core.limits import Limits
from baton.core.log.events import Parked
from baton.core.models.usage import Usage
from baton.core.money import micro_dollars
from baton.ports import HoldRequest
from tests.kit.process import RUNS_IN
from tests.kit.scripted import Scripted, says
from tests.kit.world import World
from tests.runtime.test_agents import of_kind, ran

DOCUMENT = (
    "name: w\n%snodes: {ask: {tool: ask, with: {usd: '%s'}, on_failure: fail}}\noutput: ${ctx.ask.output}"
)
NO_DAYS = Limits(user_day_budget_usd="0")


class Service:
    """A service that is paid for each call. `dies`: the worker does, in so many of the first calls."""

    def __init__(self, spends: str | None = "0.01", cost_usd: str = "0.000001", dies: int = 0) -> None:
        self.spends, self.cost_usd, self.dies = spends, cost_usd, dies
        self.calls = 0

    async def run(self, limits: Limits, usd: str, text: str = "") -> tuple[World, dict[str, Any]]:
        world = World.start(limits=limits)

        async def call(usd: str, context: Context) -> int:
            held = await context.hold(usd)
            self.calls += 1
            if self.calls <= self.dies and (process := RUNS_IN.get()) is not None:
                process.die()
            if self.spends is not None:
                held.spend(self.spends)
            return self.calls

        @tool("ask", cost_usd=self.cost_usd, registry=world.registry)
        async def ask(usd: str, context: Context) -> int:
            return await context.once("call", call, usd, context)

        world.tools = world.registry.specs()
        return world, await ran(world, DOCUMENT % (text, usd), {})


async def test_no_call_is_made_that_the_saga_has_no_money_for() -> None:
    world, view = await (service := Service()).run(Limits(saga_budget_usd="0.05"), "0.06")
    assert (view["status"], service.calls) == ("parked", 0)
    assert [one.code for one in of_kind(world, view["id"], Parked)] == ["budget_saga"]


async def test_a_limit_of_the_document_fails_the_step_before_the_call() -> None:
    _, view = await (service := Service()).run(Limits(), "0.06", "limits: {cost_usd: 0.05}\n")
    assert (view["status"], view["error"]["code"], service.calls) == ("failed", "limit_cost", 0)


@pytest.mark.parametrize(("spends", "cost"), [("0.01", "0.01"), ("0", "0"), (None, "0.04")])
async def test_what_the_call_has_cost_takes_the_place_of_what_is_held(spends: str | None, cost: str) -> None:
    world, view = await Service(spends).run(Limits(saga_budget_usd="0.05"), "0.04")
    assert (view["status"], view["spent_usd"]) == ("completed", float(cost))
    assert sum(world.budgets.spent().values()) == micro_dollars([Decimal(cost)])


@pytest.mark.parametrize("limits", [Limits(), NO_DAYS])
@pytest.mark.parametrize("deaths", [1, 2])
async def test_what_was_held_counts_if_the_worker_dies_in_the_call(deaths: int, limits: Limits) -> None:
    world, view = await (service := Service(dies=deaths)).run(limits, "0.04")
    assert (view["status"], service.calls) == ("completed", deaths + 1)
    assert view["spent_usd"] == pytest.approx(0.04 * deaths + 0.01)
    if limits is not NO_DAYS:
        assert sum(world.budgets.spent().values()) == 40_000 * deaths + 10_000


@pytest.mark.parametrize("limits", [Limits(), NO_DAYS])
async def test_a_limit_of_the_document_holds_with_what_a_dead_worker_may_have_spent(limits: Limits) -> None:
    _, view = await (service := Service(dies=1)).run(limits, "0.04", "limits: {cost_usd: 0.07}\n")
    assert (view["status"], view["error"]["code"], service.calls) == ("failed", "limit_cost", 1)


async def test_what_a_dead_worker_may_have_spent_is_kept_with_the_next_unit() -> None:
    world, calls = World.start(limits=NO_DAYS), list[int]()

    async def call(number: int, context: Context) -> None:
        held = await context.hold("0.04")
        calls.append(number)
        if calls in ([1], [1, 1, 2]) and (process := RUNS_IN.get()) is not None:
            process.die()
        held.spend("0.01")

    @tool("ask", cost_usd="0.000001", registry=world.registry)
    async def ask(usd: str, context: Context) -> None:
        await context.once("call 1", call, 1, context)
        await context.once("call 2", call, 2, context)

    world.tools = world.registry.specs()
    view = await ran(world, DOCUMENT % ("", "0"), {})
    assert (view["status"], calls, view["spent_usd"]) == ("completed", [1, 1, 2, 2], pytest.approx(0.1))


async def test_no_limit_of_tokens_keeps_an_inverse_from_its_request() -> None:
    world = World.start()
    world.models = Scripted(lambda *_: says("hello"))

    @tool("cancel", cost_usd="0.000001", registry=world.registry)
    async def cancel(context: Context) -> int:
        held = await context.hold_request(HoldRequest(model="m", size=500, output=2_000))
        held.count(Usage(model="m", input=100, output=10))
        return held.output

    @tool("ask", registry=world.registry)
    async def ask() -> int:
        return 1

    @tool("fails", registry=world.registry)
    async def fails() -> None:
        raise StepFailure("sold_out", "nothing is left", kind="permanent")

    world.tools = world.registry.specs()
    nodes = "ask: {tool: ask, compensate: {tool: cancel}}, fails: {tool: fails, after: ask}"
    view = await ran(world, f"name: w\nlimits: {{tokens: 600}}\non_failure: rollback\nnodes: {{{nodes}}}", {})
    assert (view["status"], view["spent_usd"]) == ("rolled_back", pytest.approx(0.0002)), view


async def test_a_tool_that_holds_declares_a_cost() -> None:
    _, view = await (service := Service(cost_usd="0")).run(Limits(), "0.01")
    assert (view["status"], service.calls) == ("parked", 0)
    assert "cost_usd" in view["parked"]["message"]


async def test_calls_at_once_hold_their_money_beside_each_other() -> None:
    world, most = World.start(limits=Limits(saga_budget_usd="0.1")), list[float]()

    async def call(number: int, context: Context) -> None:
        held = await context.hold("0.04")
        most.append(number)
        await asyncio.sleep(3 - number)
        held.spend("0.01")

    @tool("ask", cost_usd="0.000001", registry=world.registry)
    async def ask(usd: str, context: Context) -> int:
        await asyncio.gather(*(context.once(f"call {n}", call, n, context) for n in range(2)))
        await context.once("call 3", call, 2, context)
        return len(most)

    world.tools = world.registry.specs()
    view = await ran(world, DOCUMENT % ("", "0"), {})
    assert (view["status"], view["result"], view["spent_usd"]) == ("completed", 3, 0.03)
    assert sum(world.budgets.spent().values()) == 30_000


@pytest.mark.parametrize(("tokens", "status"), [(0, "completed"), (1_500, "completed"), (600, "failed")])
async def test_a_request_to_a_model_is_held_by_its_price_and_its_tokens(tokens: int, status: str) -> None:
    world, most = World.start(), list[int]()
    world.models = Scripted(lambda *_: says("hello"))

    @tool("ask", cost_usd="0.000001", registry=world.registry)
    async def ask(usd: str, context: Context) -> int:
        held = await context.hold_request(HoldRequest(model="m", size=500, output=2_000))
        most.append(held.output)
        held.count(Usage(model="m", input=100, output=10))
        return held.output

    world.tools = world.registry.specs()
    text = f"limits: {{tokens: {tokens}}}\n" if tokens else ""
    view = await ran(world, DOCUMENT % (text, "0"), {})
    assert view["status"] == status
    if tokens == 600:
        assert (view["error"]["code"], most) == ("limit_tokens", [])
    else:
        assert view["result"] == min(2_000, tokens - 500 if tokens else 2_000)
        assert view["spent_usd"] == pytest.approx(0.0002)
