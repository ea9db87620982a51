"""A step that kills its worker, or needs more than a full budget, is parked after three tries; others are unharmed."""

from __future__ import annotations

import asyncio

import pytest

from baton.core.log.events import Parked, Revived, StepInterrupted, StepSucceeded
from tests.kit.corpus import start
from tests.kit.documents import chain_of
from tests.kit.world import TENANT, World

KILLER = "name: killer\nnodes:\n  fine: {tool: work, with: {n: 1}}\n  bad: {tool: kill, after: fine}\n"
SIBLINGS = """
name: siblings
nodes:
  bad: {tool: kill}
  one: {tool: work, with: {n: 1}}
  two: {tool: work, with: {n: 2}}
  three: {tool: work, with: {n: 3}}
"""
HANGING = "name: hanging\nnodes:\n  fine: {tool: work, with: {n: 1}}\n  slow: {tool: hang, after: fine}\n"
STUBBORN = "name: stubborn\nnodes:\n  slow: {tool: stubborn}\n"


def parked(world: World, saga: str) -> Parked:
    (event,) = (event for event in world.events(saga) if isinstance(event, Parked))
    return event


async def test_a_step_that_always_kills_its_worker_is_parked_after_three_tries() -> None:
    world = World.start()
    saga = await start(world, KILLER, {}, "killer")
    await world.settle()
    view = await world.queries().show(saga)
    assert view["status"] == "parked"
    assert view["revivals"] == 3
    assert parked(world, saga).code == "worker_killed"
    assert parked(world, saga).node == "bad"
    deaths = [event for event in world.events(saga) if isinstance(event, Revived)]
    assert all(event.at >= event.dead_until for event in deaths)


async def test_the_sagas_that_shared_a_batch_with_a_killer_finish() -> None:
    world = World.start()
    world.batch = 10
    await world.service().register(KILLER, json_only=False)
    await world.service().register(chain_of(6, 0.9), json_only=False)
    killers = [(await world.service().start("killer", {}, f"k{i}"))[0]["id"] for i in range(2)]
    others = [(await world.service().start("chain", {"n": i}, f"c{i}"))[0]["id"] for i in range(8)]
    await world.settle()
    assert {(await world.queries().show(saga))["status"] for saga in killers} == {"parked"}
    assert {(await world.queries().show(saga))["status"] for saga in others} == {"completed"}


async def test_siblings_of_a_killer_are_done_before_it_is_parked() -> None:
    world = World.start()
    saga = await start(world, SIBLINGS, {}, "siblings")
    await world.settle()
    done = {event.node for event in world.events(saga) if isinstance(event, StepSucceeded)}
    assert done == {"one", "two", "three"}
    assert parked(world, saga).node == "bad"


async def test_a_step_that_needs_more_than_a_full_budget_is_parked_after_three_tries() -> None:
    world = World.start()
    saga = await start(world, HANGING, {}, "hanging")
    await world.settle()
    assert parked(world, saga).code == "over_budget"
    cuts = [event for event in world.events(saga) if isinstance(event, StepInterrupted)]
    assert len(cuts) == 3
    lasts = [event.ended_at - event.started_at for event in cuts]
    assert lasts[-1] > 0.8 * cuts[-1].budget_ms, "the last try had nearly the whole budget"


async def test_a_step_that_ignores_its_cancellation_does_not_hold_the_saga() -> None:
    world = World.start()
    saga = await start(world, STUBBORN, {}, "stubborn")
    await world.settle()
    assert parked(world, saga).code in {"over_budget", "worker_killed"}


@pytest.mark.parametrize(("document", "code"), [(KILLER, "worker_killed"), (HANGING, "over_budget")])
async def test_a_parked_saga_is_an_incident_of_on_call_until_a_person_resumes_it(
    document: str, code: str
) -> None:
    world = World.start()
    saga = await start(world, document, {}, "killer" if document == KILLER else "hanging")
    await world.settle()
    (told,) = world.notices.said
    assert (told.to, told.code, told.severity, told.node) == (
        "on_call",
        code,
        "high",
        parked(world, saga).node,
    )
    assert f"`baton resume {saga}`" in told.message
    (incident,), _ = world.store.notice_record.listed(TENANT, status="open", limit=10)
    assert (incident.saga, incident.code) == (saga, code)
    await world.service().resume(saga)
    assert world.store.notice_record.listed(TENANT, status="open", limit=10)[0] == []
    await asyncio.sleep(400)
    await world.settle()
    assert len(world.notices.told) == 2, "parked again is told again"
    (again,), _ = world.store.notice_record.listed(TENANT, status="open", limit=10)
    assert again.id != incident.id
    await world.service().cancel(saga, "enough", 0)
    assert world.store.notice_record.listed(TENANT, status="open", limit=10)[0] == []


async def test_a_parked_saga_that_a_person_resumes_tries_again() -> None:
    world = World.start()
    saga = await start(world, KILLER, {}, "killer")
    await world.settle()
    await world.service().resume(saga)
    await asyncio.sleep(400)
    await world.settle()
    deaths = [event for event in world.events(saga) if isinstance(event, Revived)]
    assert len(deaths) == 6
    await world.service().cancel(saga, "enough", 0)
    await asyncio.sleep(10)
    assert (await world.queries().show(saga))["status"] == "cancelled"
