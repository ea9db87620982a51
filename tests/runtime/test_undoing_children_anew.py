"""A parent is forked to before a child that has undone what it had done: the new child acts anew, and what was not undone is not done twice."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from baton import Context, StepFailure, tool
from baton.errors import NotAllowedNow
from baton.runtime.starting import children
from tests.kit.bugs import replaced
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_undoing import WANTED
from tests.runtime.undoing import Ledger, add_ledger

CHILD = """
name: child
nodes:
  x: {tool: trip.pay, with: {what: car}}
  y: {tool: trip.pay, with: {what: fuel}, after: x}
  z: {tool: trip.open, after: y}
"""
PARENT = """
name: w
on_failure: [rollback]
nodes:
  a: {tool: trip.look}
  b: {workflow: child, after: a}
"""
BEFORE = 2
"""The version with the end of `a`."""
FULL = ["car", "fuel"]


class Door:
    """What the last step of a child meets."""

    is_shut = True
    seconds = 0.0


def add_door(world: World) -> Door:
    door = Door()

    @tool("trip.open", effect="pure", registry=world.registry)
    async def open_() -> None:
        await asyncio.sleep(door.seconds)
        if door.is_shut:
            raise StepFailure("sold_out", "nothing is left", kind="permanent")

    @tool("trip.look", effect="pure", registry=world.registry)
    async def look(context: Context) -> None:
        return None

    world.tools = world.registry.specs()
    return door


async def begun(world: World, parent: str = PARENT, child: str = CHILD) -> str:
    if child:
        await world.service().register(child, json_only=False)
    saga = await start(world, parent, {}, "w")
    await world.settle(600)
    return saga


async def forked(world: World, saga: str, cut: int = BEFORE) -> dict[str, Any]:
    await world.service().fork(saga, cut, "once more")
    await world.settle(600)
    return await world.queries().show(saga)


OTHERS = {
    "caught": PARENT.replace("after: a}", "after: a, catch: c}") + "  c: {tool: trip.look}\n",
    "tried again": PARENT.replace("after: a}", "after: a, retry: {max_attempts: 2, on: [sold_out]}}"),
    "in a map": PARENT.replace("after: a}", "after: a, map: {over: [1]}}"),
    "a graph": PARENT.replace("workflow: child", "graph: child")
    + "graphs:\n  child:\n    nodes:\n"
    + "".join(f"    {line}\n" for line in CHILD.splitlines()[3:]),
}


@pytest.mark.parametrize("parent", [PARENT, *OTHERS.values()], ids=["plain", *OTHERS])
async def test_what_a_child_that_failed_has_undone_is_done_anew(parent: str) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    door = add_door(world)
    saga = await begun(world, parent, "" if "graph:" in parent else CHILD)
    assert ledger.in_force == {}
    door.is_shut = False
    assert (await forked(world, saga))["status"] == "completed"
    assert sorted(ledger.in_force.values()) == FULL
    await world.service().rollback(saga, WANTED)
    await world.settle(600)
    assert ledger.in_force == {}


async def test_what_a_grandchild_has_undone_is_done_anew_also_where_its_parent_went_on() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    door = add_door(world)
    await world.service().register(CHILD.replace("child", "inner"), json_only=False)
    middle = "name: child\nnodes: {m: {workflow: inner, catch: n}, n: {tool: trip.look}}"
    saga = await begun(world, PARENT, middle)
    assert (ledger.in_force, len(ledger.deeds)) == ({}, 4)
    door.is_shut = False
    assert (await forked(world, saga))["status"] == "completed"
    assert sorted(ledger.in_force.values()) == FULL
    await forked(world, saga)
    assert ledger.deeds.count("pay car") == 2, "what stands is not done once more"


async def test_what_an_operator_has_undone_of_the_child_alone_is_done_anew() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_door(world).is_shut = False
    saga = await begun(world)
    await world.service().rollback(f"{saga}.0.b", WANTED)
    await world.settle(600)
    assert ledger.in_force == {}
    assert (await forked(world, saga))["status"] == "completed"
    assert sorted(ledger.in_force.values()) == FULL


async def test_what_could_not_be_undone_is_not_done_twice_and_the_rest_is_done_anew(says: Says) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger(broken={"refund car": -1}))
    add_door(world).is_shut = False
    saga = await begun(world)
    await world.service().rollback(saga, WANTED)
    await world.settle(3_600)
    assert list(ledger.in_force.values()) == ["car"]
    assert (await forked(world, saga))["status"] == "completed"
    assert sorted(ledger.in_force.values()) == FULL
    assert (ledger.deeds.count("pay car"), ledger.deeds.count("pay fuel")) == (1, 2)
    ledger.broken, ledger.deeds[:] = {}, []
    with says.raised(NotAllowedNow):
        await world.service().rollback(f"{saga}.0.b", WANTED)
    await world.service().rollback(saga, WANTED)
    await world.settle(3_600)
    assert (ledger.in_force, ledger.deeds) == ({}, ["refund fuel", "refund car"])


async def test_the_new_child_of_one_that_has_ended_its_undoing_is_rolled_back_beside_it() -> None:
    """The new one has nothing left, so the one before it may be rolled back by itself."""
    world = World.start()
    add_ledger(world, ledger := Ledger(broken={"refund car": -1}))
    door = add_door(world)
    saga = await begun(world)
    await world.settle(3_600)
    assert (await forked(world, saga))["status"] == "rollback_failed"
    door.is_shut = False
    ledger.broken = {}
    child = f"{saga}.1.b"
    await world.service().rollback(child, WANTED)
    await world.settle(3_600)
    await world.service().rollback(f"{saga}.0.b", WANTED)
    await world.settle(3_600)
    assert ledger.in_force == {}
    for one in (child, f"{saga}.0.b"):
        assert (await world.queries().show(one))["status"] == "rolled_back"


STOPPED = """
name: w
on_failure: [rollback]
nodes:
  a: {tool: trip.look}
  b: {workflow: child, after: a}
  w: {wait: {for: 5s}, after: a}
  c: {tool: trip.open, after: w}
"""
WAITS = CHILD.replace("  z: {tool: trip.open, after: y}", "  z: {wait: {for: 60s}, after: y}")


async def test_the_new_child_waits_until_the_one_before_it_has_undone_what_it_had_done() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger(broken={"refund fuel": 3}))
    door = add_door(world)
    await world.service().register(WAITS, json_only=False)
    saga = await start(world, STOPPED, {}, "w")
    child = f"{saga}.0.b"
    while not world.entries(child) or (await world.queries().show(child))["status"] != "compensating":
        await asyncio.sleep(0.1)
    assert (await world.queries().show(saga))["status"] == "running", "it stops, and waits for its child"
    door.is_shut = False
    assert (await forked(world, saga))["status"] == "completed"
    assert sorted(ledger.in_force.values()) == FULL
    assert ledger.deeds[-4:] == ["refund fuel", "refund car", "pay car", "pay fuel"]


async def test_what_a_child_has_undone_because_its_time_was_over_is_undone_once_more_under_another_key() -> (
    None
):
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_door(world)
    saga = await begun(world, PARENT.replace("after: a}", "after: a, timeout: 10s}"), WAITS)
    assert (await forked(world, saga))["status"] == "failed"
    assert ledger.in_force == {}
    for what in FULL:
        assert len(set(ledger.keys[f"refund {what}"])) == len(ledger.keys[f"refund {what}"]) == 2


async def test_what_an_earlier_child_has_undone_is_done_anew_though_another_one_came_between() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_door(world).is_shut = False
    waits = CHILD.replace("nodes:", "nodes:\n  w: {wait: {for: 1m}}").replace("car}}", "car}, after: w}")
    saga = await begun(world, PARENT, waits)
    assert sorted(ledger.in_force.values()) == FULL
    await world.service().fork(saga, BEFORE, "once more")
    await asyncio.sleep(30)
    await world.service().cancel(saga, "not now", 0)  # the second child has done nothing yet
    await world.settle(600)
    await world.service().rollback(f"{saga}.0.b", WANTED)
    await world.settle(600)
    assert ledger.in_force == {}
    assert (await forked(world, saga))["status"] == "completed"
    assert sorted(ledger.in_force.values()) == FULL


async def test_a_child_keeps_the_place_that_an_earlier_version_has_given_to_the_one_before_it() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_door(world).is_shut = False
    with replaced(children, "_scope", lambda state, slot: f"{state.origin.saga}/{slot}~1"):
        saga = await begun(world)
    assert (await forked(world, saga))["status"] == "completed"
    assert (sorted(ledger.in_force.values()), ledger.deeds.count("pay car")) == (FULL, 1)


async def test_what_was_undone_in_the_place_before_says_nothing_of_what_stands_in_this_one() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_door(world).is_shut = False
    saga = await begun(world)
    await world.service().rollback(saga, WANTED)
    await world.settle(600)

    async def moved(*_: object) -> children.EarlierChildren:
        return children.EarlierChildren(scope=f"{saga}/b~1")

    with replaced(children, "left_to", moved):  # as an earlier version did
        await forked(world, saga, 1)
    assert ledger.deeds.count("pay car") == 2
    assert (await forked(world, saga, 1))["status"] == "completed"
    assert (sorted(ledger.in_force.values()), ledger.deeds.count("pay car")) == (FULL, 2)


async def test_a_child_that_is_made_only_to_be_cancelled_does_not_hide_the_one_before_it() -> None:
    world = World.start()
    door, paid = add_door(world), list[str]()

    @tool("slow.pay", undo="slow.refund", registry=world.registry)
    async def pay(context: Context) -> dict[str, str]:
        paid.append(context.idempotency_key)
        return {"id": context.idempotency_key}

    @tool("slow.refund", registry=world.registry)
    async def refund(id: str) -> None:
        await asyncio.sleep(3)
        paid[:] = [one for one in paid if one != id]

    world.tools = world.registry.specs()
    child = "name: child\nnodes: {x: {tool: slow.pay}, z: {tool: trip.open, after: x}}"
    await world.service().register(child, json_only=False)
    saga = await start(world, PARENT, {}, "w")
    await asyncio.sleep(1)  # the first child undoes what it has done
    door.is_shut = False
    await world.service().fork(saga, 1, "once more")
    await asyncio.sleep(1)  # the second one waits for it
    assert len(paid) == 1
    assert (await forked(world, saga, 1))["status"] == "completed"
    assert len(paid) == 1


async def test_a_saga_whose_stopped_child_had_done_nothing_has_nothing_to_roll_back(says: Says) -> None:
    world = World.start()
    add_ledger(world, Ledger())
    add_door(world)
    race = (
        "name: w\nnodes:\n  b: {workflow: child}\n  a: {wait: {for: 5s}}\n"
        "  j: {tool: trip.look, after: [a, b], join: {wait_for: any, rest: cancel}}\n"
    )
    saga = await begun(
        world, race, "name: child\nnodes: {w: {wait: {for: 1h}}, x: {tool: trip.look, after: w}}"
    )
    assert (await world.queries().show(saga))["status"] == "completed"
    with says.raised(NotAllowedNow):
        await world.service().rollback(saga, WANTED)
    plan = (await world.service().rollback_plan(saga, 0))["plan"]
    assert (plan["undoable"], plan["steps"]) == (0, [])
