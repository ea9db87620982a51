"""What undoes a step has no answer that says whether it has done so: people are told, and nothing goes on from what may be undone."""

from __future__ import annotations

from typing import Any

from baton import Context, StepFailure, tool
from baton.errors import UserError
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_undoing import WANTED
from tests.runtime.undoing import Ledger, add_ledger

DOCUMENT = """
name: w
on_failure: [rollback]
nodes:
  a: {tool: trip.look}
  b: {tool: trip.rent, after: a}
  c: {tool: trip.open, after: b}
"""
CHILD = DOCUMENT.replace("name: w", "name: child")
PARENT = "name: w\non_failure: [rollback]\nnodes: {a: {tool: trip.look}, k: {workflow: child, after: a}}"


class Garage:
    """Rents a car for each key, and takes it back; its answers to that may be lost."""

    is_silent = True
    is_shut = True
    rented: set[str]
    calls: list[str]


def add_garage(world: World) -> Garage:
    garage = Garage()
    garage.rented, garage.calls = set(), []

    @tool("trip.rent", undo="trip.return", registry=world.registry)
    async def rent(context: Context) -> dict[str, str]:
        key = context.idempotency_key
        garage.calls.append(f"rent {key}")
        if f"return {key}" not in garage.calls:
            garage.rented.add(key)
        return {"id": key}

    @tool("trip.return", registry=world.registry)
    async def give_back(id: str) -> None:
        garage.calls.append(f"return {id}")
        garage.rented.discard(id)
        if garage.is_silent:
            raise StepFailure("timeout", "no answer")

    @tool("trip.look", effect="pure", registry=world.registry)
    async def look() -> None: ...

    @tool("trip.open", effect="pure", registry=world.registry)
    async def open_() -> None:
        if garage.is_shut:
            raise StepFailure("sold_out", "nothing is left", kind="permanent")

    world.tools = world.registry.specs()
    return garage


async def ended(world: World, document: str) -> dict[str, Any]:
    saga = await start(world, document, {}, "w")
    await world.settle(3_600)
    return await world.queries().show(saga)


async def test_people_are_told_and_the_saga_is_forked_once_it_is_known(says: Says) -> None:
    world = World.start()
    add_ledger(world, Ledger())
    garage = add_garage(world)
    view = await ended(world, DOCUMENT)
    assert (view["status"], garage.rented) == ("rollback_failed", set())
    [one] = view["undo"]["failed"]
    says(one["message"])
    says([notice.message for notice in world.notices.said if notice.to == "on_call"])
    for cut in (1, 2, 3):
        with says.raised(UserError):
            await world.service().fork(view["id"], cut, "")
    garage.is_silent = garage.is_shut = False
    await world.service().rollback(view["id"], WANTED)
    await world.settle(600)
    await world.service().fork(view["id"], 2, "")
    await world.settle(600)
    assert (await world.queries().show(view["id"]))["status"] == "completed"
    assert len(garage.rented) == 1


async def test_what_a_once_only_inverse_may_have_undone_is_not_gone_on_from_either(says: Says) -> None:
    world = World.start()
    add_ledger(world, Ledger())
    garage = add_garage(world)

    @tool("trip.give", effect="once", registry=world.registry)
    async def give(id: str) -> None:
        garage.rented.discard(id)
        raise StepFailure("timeout", "no answer")

    @tool("trip.lease", undo="trip.give", registry=world.registry)
    async def lease(context: Context) -> dict[str, str]:
        garage.rented.add(context.idempotency_key)
        return {"id": context.idempotency_key}

    world.tools = world.registry.specs()
    saga = (await ended(world, DOCUMENT.replace("trip.rent", "trip.lease")))["id"]
    await world.settle(90_000)  # no person answers
    view = await world.queries().show(saga)
    assert (view["status"], garage.rented) == ("rollback_failed", set())
    with says.raised(UserError):
        await world.service().fork(saga, 2, "")


async def test_a_new_child_is_not_given_what_may_be_undone(says: Says) -> None:
    world = World.start()
    add_ledger(world, Ledger())
    garage = add_garage(world)
    await world.service().register(CHILD, json_only=False)
    view = await ended(world, PARENT)
    garage.is_silent = garage.is_shut = False
    await world.service().fork(view["id"], 2, "")
    await world.settle(600)
    view = await world.queries().show(view["id"])
    assert view["status"] == "failed"
    child = f"{view['id']}.0.k"
    says.within(str(view["error"]))
    await world.service().rollback(child, WANTED)
    await world.settle(600)
    await world.service().fork(view["id"], 2, "")
    await world.settle(600)
    assert (await world.queries().show(view["id"]))["status"] == "completed"
    assert len(garage.rented) == 1
