"""What models have cost a tenant on a day, as its agents go on: the same as their logs say."""

from __future__ import annotations

import asyncio

import pytest

from baton.core.money import MICRO
from baton.errors import UserError
from tests.kit.scripted import Scripted, asks_for, by_turn, says
from tests.kit.world import World
from tests.runtime.test_agents import Desk, document


async def test_the_costs_of_a_day_are_those_of_its_sagas() -> None:
    world = World.start()
    Desk(world)
    world.models = Scripted(by_turn(asks_for(("sum_add", {"a": 1, "b": 2})), says("done")))
    await world.service().register(document(), json_only=False)
    sagas = []
    for number in range(6):
        user = ("ann", "bob")[number % 2]
        view, _ = await world.service(user=user).start("w", {"a": number}, f"k{number}")
        sagas.append(view["id"])
    await world.settle()
    queries = world.queries()
    logged = [(await queries.cost(saga))["usd"]["models"] for saga in sagas]
    (of_workflow,) = (await queries.costs())["costs"]
    assert of_workflow == {
        "key": "w",
        "sagas": 6,
        "input": 1_200,
        "output": 120,
        "usd": pytest.approx(sum(logged)),
    }
    by_user = (await queries.costs(by="user"))["costs"]
    assert sorted((row["key"], row["sagas"]) for row in by_user) == [("ann", 3), ("bob", 3)]
    (of_model,) = (await queries.costs(by="model"))["costs"]
    assert of_model["key"] == "scripted"
    spent = sum(world.budgets.spent().values())
    assert round(of_model["usd"] * MICRO) == spent, "the accounts say the same"


async def test_no_write_is_made_for_it_and_a_day_without_sagas_is_empty() -> None:
    world = World.start()
    await world.service().register("name: w\nnodes: {a: {tool: work, with: {n: 1}}}", json_only=False)
    saga, _ = await world.service().start("w", {}, "k")
    await world.settle()
    before = len(world.plan.writes)
    page = await world.queries().costs(day=86_400_000)
    assert (page["day"], page["costs"], page["next"]) == ("1970-01-02", [], None)
    assert (await world.queries().costs())["costs"] == []
    assert len(world.plan.writes) == before
    with pytest.raises(UserError):
        await world.queries().costs(cursor="nonsense")
    await asyncio.sleep(0)
    assert saga["id"]
