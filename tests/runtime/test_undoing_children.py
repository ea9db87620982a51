"""Children of a saga that is undone: those that have ended, and those that run."""

from __future__ import annotations

import asyncio

import pytest

from baton import Context, StepFailure, tool
from baton.core.log.events import ChildReported, SagaEnded
from tests.kit.corpus import start
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World
from tests.runtime.test_undoing import WANTED, report
from tests.runtime.undoing import Ledger, add_ledger, view_of

CHILD = "name: child\nnodes: {x: {tool: trip.book, with: {what: car}}, y: {tool: trip.pay, with: {what: fuel}, after: x}}"
PARENT = """
name: w
on_failure: [rollback]
nodes:
  a: {tool: trip.book, with: {what: hotel}}
  b: {workflow: child, after: a}
  c: {tool: trip.fail, after: b}
"""


def takes_of(world: World, saga: str) -> int:
    """How often a worker has taken the saga."""
    [head] = [head for head in world.log.heads() if head.ref.id == saga]
    return head.epoch


async def test_a_child_that_has_ended_undoes_what_it_has_done_in_its_turn() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    await world.service().register(CHILD, json_only=False)
    view = await view_of(world, PARENT)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert ledger.deeds[3:] == ["refund fuel", "cancel car", "cancel hotel"]
    assert report(view)["undone"] == 2
    child = await world.queries().show(f"{view['id']}.0.b")
    assert (child["status"], child["branch"]) == ("rolled_back", 1)


async def test_a_child_that_cannot_undo_all_fails_the_rollback_and_is_asked_again() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger(broken={"refund": -1}))
    await world.service().register(CHILD, json_only=False)
    view = await view_of(world, PARENT)
    assert (view["status"], list(ledger.in_force.values())) == ("rollback_failed", ["fuel"])
    assert "takes it up again" in view["undo"]["failed"][0]["message"]
    ledger.broken = {}
    await world.service().rollback(view["id"], WANTED)
    await world.settle(600)
    assert ((await world.queries().show(view["id"]))["status"], ledger.in_force) == ("rolled_back", {})


async def test_a_child_may_stay_as_it_is() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    await world.service().register(CHILD, json_only=False)
    view = await view_of(world, PARENT.replace("workflow: child,", "workflow: child, compensate: none,"))
    assert (view["status"], sorted(ledger.in_force.values())) == ("rolled_back", ["car", "fuel"])
    assert report(view)["stays"] == ["b"]


async def test_a_child_that_runs_when_its_parent_fails_undoes_what_it_has_done() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    waits = CHILD.replace("after: x}}", "after: x}, z: {wait: {for: 1h}, after: y}}")
    await world.service().register(waits, json_only=False)
    failing = "  c: {tool: trip.fail, with: {after: 5}, after: a}\n"
    view = await view_of(world, PARENT[: PARENT.index("  c:")] + failing)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert (await world.queries().show(f"{view['id']}.0.b"))["status"] == "rolled_back"


@pytest.mark.parametrize(
    ("ends", "says", "status", "left"),
    [
        ("rollback", "", "rolled_back", []),
        ("rollback", ", compensate: none", "cancelled", ["car", "fuel"]),
        ("fail", "", "cancelled", ["car", "fuel"]),
    ],
)
async def test_a_child_that_runs_undoes_what_it_has_done_although_its_parent_has_done_nothing_itself(
    ends: str, says: str, status: str, left: list[str]
) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    waits = CHILD.replace("after: x}}", "after: x}, z: {wait: {for: 1h}, after: y}}")
    await world.service().register(waits, json_only=False)
    nodes = f"  b: {{workflow: child{says}}}\n  c: {{tool: trip.fail, with: {{after: 5}}}}\n"
    view = await view_of(world, f"name: w\non_failure: {ends}\nnodes:\n{nodes}")
    assert (view["status"], sorted(ledger.in_force.values())) == ("failed", left)
    assert (await world.queries().show(f"{view['id']}.0.b"))["status"] == status


def test_a_cancel_that_undoes_has_a_running_child_undo_too() -> None:
    for undo, left in ((True, []), (False, ["car", "fuel"])):

        async def cancelled(undo: bool, left: list[str]) -> None:
            world = World.start()
            add_ledger(world, ledger := Ledger())
            waits = CHILD.replace("after: x}}", "after: x}, z: {wait: {for: 1h}, after: y}}")
            await world.service().register(waits, json_only=False)
            saga = await start(world, "name: w\nnodes: {b: {workflow: child}}", {}, "w")
            await world.settle(30)
            await world.service().cancel(saga, "", 0, undo=undo)
            await world.settle(600)
            assert sorted(ledger.in_force.values()) == left

        run_virtual(cancelled(undo, left))


@pytest.mark.parametrize("nodes", ["  a: {tool: trip.book, with: {what: hotel}}\n", ""])
async def test_a_child_that_ends_just_before_its_parent_stops_is_undone_too(nodes: str) -> None:
    """Its parent does not know of its end when it stops."""
    world = World.start()
    add_ledger(world, ledger := Ledger())

    @tool("trip.late", effect="pure", registry=world.registry)
    async def late(context: Context) -> None:
        while not any(isinstance(one, SagaEnded) for one in world.events(f"{context.saga}.0.b")):
            await asyncio.sleep(0.001)
        raise StepFailure("sold_out", "nothing is left", kind="permanent")

    world.tools = world.registry.specs()
    await world.service().register(CHILD, json_only=False)
    more = "  b: {workflow: child}\n  c: {tool: trip.late}\n"
    view = await view_of(world, f"name: w\non_failure: [rollback]\nnodes:\n{nodes}{more}")
    has_reported = any(isinstance(one, ChildReported) for one in world.events(view["id"]))
    assert has_reported == (not nodes), (
        "a parent that undoes something itself reads what the child has undone"
    )
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    child = await world.queries().show(f"{view['id']}.0.b")
    assert (child["status"], child["branch"]) == ("rolled_back", 1)


async def test_a_child_that_runs_and_cannot_undo_all_fails_the_rollback_of_its_parent() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger(broken={"refund": -1}))
    waits = CHILD.replace("after: x}}", "after: x}, z: {wait: {for: 1h}, after: y}}")
    await world.service().register(waits, json_only=False)
    failing = "  c: {tool: trip.fail, with: {after: 5}, after: a}\n"
    view = await view_of(world, PARENT[: PARENT.index("  c:")] + failing)
    assert (view["status"], sorted(ledger.in_force.values())) == ("rollback_failed", ["fuel"])
    assert "takes it up again" in view["undo"]["failed"][0]["message"]
    ledger.broken = {}
    await world.service().rollback(view["id"], WANTED)
    await world.settle(600)
    assert ((await world.queries().show(view["id"]))["status"], ledger.in_force) == ("rolled_back", {})


async def test_a_child_that_was_cancelled_without_is_asked_again_to_undo() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())

    @tool("trip.off", effect="pure", registry=world.registry)
    async def off(context: Context) -> None:
        while len(ledger.in_force) < 3:
            await asyncio.sleep(0.1)
        await world.service().cancel(f"{context.saga}.0.b", "", 60_000)
        raise StepFailure("sold_out", "nothing is left", kind="permanent")

    world.tools = world.registry.specs()
    more = "z: {tool: trip.book, with: {what: bus, seconds: 2}, after: y}"
    await world.service().register(CHILD.replace("after: x}}", f"after: x}}, {more}}}"), json_only=False)
    view = await view_of(world, PARENT[: PARENT.index("  c:")] + "  c: {tool: trip.off, after: a}\n")
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert (await world.queries().show(f"{view['id']}.0.b"))["status"] == "rolled_back"


async def test_a_child_that_is_rolled_back_alone_names_its_parent_which_goes_on_when_it_is_rolled_back_itself() -> (
    None
):
    world = World.start()
    add_ledger(world, ledger := Ledger())
    await world.service().register(CHILD, json_only=False)
    done = PARENT.replace("  c: {tool: trip.fail, after: b}\n", "")
    parent = (await view_of(world, done))["id"]
    child = f"{parent}.0.b"
    assert (await world.service().rollback(child, WANTED))["plan"]["parent"] == parent
    await world.settle(600)
    assert (await world.queries().show(parent))["status"] == "completed"
    await world.service().rollback(parent, WANTED)
    await world.settle(600)
    assert ((await world.queries().show(parent))["status"], ledger.in_force) == ("rolled_back", {})
    assert ledger.deeds.count("cancel car") == 1


async def test_a_parent_looks_at_a_child_that_asks_a_person_ever_less_often() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())

    @tool("trip.rent", undo="trip.cancel", registry=world.registry)
    async def rent(what: str) -> dict[str, str]:
        raise StepFailure("timeout", "no answer")

    world.tools = world.registry.specs()
    in_doubt = CHILD.replace(
        "nodes: {",
        "nodes: {z: {tool: trip.rent, with: {what: x}, after: y, catch: q, on_failure: [rollback]}, q: {value: 1}, ",
    )
    await world.service().register(in_doubt, json_only=False)
    saga = await start(world, PARENT, {}, "w")
    await world.settle(600)
    assert (await world.queries().show(f"{saga}.0.b"))["status"] == "suspended"
    before = takes_of(world, saga)
    await asyncio.sleep(20 * 3_600)
    assert takes_of(world, saga) - before < 20
    await asyncio.sleep(5 * 3_600)
    await world.settle(90_000)
    assert (await world.queries().show(saga))["status"] == "rollback_failed"
    assert list(ledger.in_force.values()) == []
