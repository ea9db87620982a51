"""Requests of dead workers to models where no day is limited: they count at the most in what their saga has spent."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from baton.core.limits import Limits
from baton.core.log.events import Parked, Revived
from baton.core.money import micro_dollars
from baton.ports.models import ModelAnswer, ModelRequest
from tests.kit.corpus import start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, Crash, scripted
from tests.kit.scripted import Scripted, says
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World
from tests.runtime.test_agents import of_kind, ran
from tests.runtime.test_money_of_trees import account, sagas

NO_DAYS = Limits(user_day_budget_usd="0")
MODEL = (
    "name: w\n%snodes: {ask: {model: {name: m, prompt: hi, max_output: 100}%s}}\noutput: ${ctx.ask.output}"
)
ABOVE = "name: w\nnodes: {kid: {graph: one}}\ngraphs: {one: {nodes: {ask: {model: {name: m, prompt: hi, max_output: 100}}}}}"


def dies(*numbers: int) -> Callable[[ModelRequest, int], ModelAnswer]:
    def script(_: ModelRequest, number: int) -> ModelAnswer:
        if number in numbers:
            raise Crash
        return says("hello")

    return script


@pytest.mark.parametrize("deaths", [1, 2, 3])
async def test_each_request_of_the_dead_counts_once_at_the_most(deaths: int) -> None:
    world = World.start(limits=NO_DAYS)
    world.models = Scripted(dies(*range(deaths)))
    shown = await ran(world, MODEL % ("", ""), {})
    if deaths == 3:
        assert shown["status"] == "parked", "three in a row are for a person"
        await world.service().resume(shown["id"])
        await world.settle()
        shown = await world.queries().show(shown["id"])
    assert shown["result"] == "hello"
    most = micro_dollars([world.asked[0].most])
    assert shown["spent_usd"] * 1_000_000 == pytest.approx(deaths * most + 200)
    assert not any(one.user for one in world.budgets.spent()), "no account knows of it"


async def test_a_saga_does_not_pass_its_limit_because_its_workers_die() -> None:
    world = World.start(limits=Limits(user_day_budget_usd="0", saga_budget_usd="0.0015"))
    world.models = Scripted(dies(0))
    shown = await ran(world, MODEL % ("", ""), {})
    assert [one.code for one in of_kind(world, shown["id"], Parked)] == ["budget_saga"]
    assert len(world.asked) == 1
    assert shown["spent_usd"] * 1_000_000 == pytest.approx(micro_dollars([world.asked[0].most]))


@pytest.mark.parametrize("limit", ["tokens: 250", "cost_usd: 0.0015"])
async def test_limits_of_a_document_have_what_the_dead_have_asked_for(limit: str) -> None:
    world = World.start(limits=NO_DAYS)
    world.models = Scripted(dies(0))
    shown = await ran(world, MODEL % (f"limits: {{{limit}}}\n", ", on_failure: fail"), {})
    assert shown["status"] == "failed"
    assert shown["error"]["code"] == f"limit_{limit.partition(':')[0].removesuffix('_usd')}"
    assert len(world.asked) == 1


async def test_a_saga_below_another_has_what_the_account_of_its_tree_has() -> None:
    world = World.start(limits=NO_DAYS)
    world.models = Scripted(dies(0))
    shown = await ran(world, ABOVE, {})
    assert shown["status"] == "completed"
    (kid,) = [saga for saga in sagas(world) if saga != shown["id"]]
    (revived,) = of_kind(world, kid, Revived)
    most = micro_dollars([world.asked[0].most])
    assert revived.assumed == {"ask": most}
    assert shown["spent_usd"] * 1_000_000 == pytest.approx(most + 200)
    assert account(world, shown["id"]).spent == most + 200


def test_wherever_its_worker_dies_a_saga_has_at_least_what_its_provider_bills() -> None:
    deaths = 0
    for number in range(1, 14):
        for fate in (CRASH_BEFORE, CRASH_AFTER):

            async def dies_at(number: int, fate: str) -> None:
                nonlocal deaths
                world = World.start(limits=NO_DAYS, plan=scripted((("read", number, fate),)))
                world.models = Scripted(dies())
                saga = await start(world, MODEL % ("", ""), {}, "w")
                await world.settle()
                shown = await world.queries_without_faults().show(saga)
                assert shown["result"] == "hello"
                billed = micro_dollars([part for one in world.asked for part in one.bill])
                assert shown["spent_usd"] * 1_000_000 + 0.5 > billed, world.faults
                deaths += len(world.asked) > 1

            run_virtual(dies_at(number, fate))
    assert deaths
