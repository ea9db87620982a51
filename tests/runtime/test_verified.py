"""An idempotent call that may have acted: its `verify` looks before the step fails, is done another way or is undone."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from msgspec import Struct

from baton import Context, StepFailure, tool
from baton.core.log.events import CancelRequested, Revived, StepSucceeded
from tests.kit.corpus import start
from tests.kit.faults import Crash
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.undoing import Ledger, add_ledger

WHOLE = """
name: w
on_failure: [rollback]
nodes:
  a: {tool: trip.book, with: {what: hotel}}
  b: {tool: trip.rent, with: {what: car}, after: a, timeout: 5s}
"""
CANCEL = CancelRequested(reason="changed my mind", by="", at=0, grace_ms=0, undo=True)
SILENT = StepFailure("timeout", "no answer")


class Rentals(Struct):
    """What `rent` does besides renting, and what its `verify` says of it; the keys with which each was called."""

    says: Any = None
    error: Exception = SILENT
    acts: bool = True
    dies: bool = False
    looks_s: float = 0.0
    keys: list[str] = []
    looked: list[tuple[str, str]] = []


def add_rentals(world: World, ledger: Ledger, rentals: Rentals) -> None:
    @tool("trip.rent", undo="trip.cancel", verify="trip.rented", registry=world.registry)
    async def rent(what: str, context: Context) -> dict[str, str]:
        rentals.keys.append(context.idempotency_key)
        if rentals.acts:
            ledger.begin("rent", what, context.idempotency_key)
            ledger.in_force["r-1"] = what
        if rentals.dies:
            rentals.dies = False
            world.running[context.saga, context.node].is_dead = True
            raise Crash
        raise rentals.error

    @tool("trip.rented", effect="pure", registry=world.registry)
    async def rented(what: str, context: Context) -> Any:
        rentals.looked.append((what, context.idempotency_key))
        await asyncio.sleep(rentals.looks_s)
        if isinstance(rentals.says, Exception):
            raise rentals.says
        if rentals.says is not None:
            return rentals.says
        return {"happened": "r-1" in ledger.in_force, "result": {"id": "r-1"}}

    world.tools = world.registry.specs()


async def view_of(world: World, document: str = WHOLE) -> dict[str, Any]:
    saga = await start(world, document, {}, "w")
    await world.settle(600)
    return await world.queries().show(saga)


async def test_what_has_happened_is_the_output_of_its_step() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_rentals(world, ledger, rentals := Rentals())
    view = await view_of(world, f"{WHOLE}output: '${{ctx.b.output.id}}'")
    assert (view["status"], view["result"]) == ("completed", "r-1")
    assert rentals.looked == [("car", rentals.keys[0])]
    (b,) = (one for one in world.events(view["id"]) if isinstance(one, StepSucceeded) and one.node == "b")
    assert b.recorded
    assert len(rentals.keys) == 1


async def test_it_is_tried_again_before_anything_is_looked_at() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_rentals(world, ledger, rentals := Rentals())
    document = WHOLE.replace(
        "on_failure: [rollback]", "on_failure: rollback\nretry: {max_attempts: 3, base: 1s}"
    )
    view = await view_of(world, document)
    assert (view["status"], len(rentals.keys), len(rentals.looked)) == ("completed", 3, 1)


async def test_what_is_undone_later_is_undone_with_what_verify_has_found() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_rentals(world, ledger, Rentals())
    view = await view_of(world, f"{WHOLE}  c: {{tool: trip.gone, after: b}}\n")
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert ledger.deeds[-2:] == ["cancel car", "cancel hotel"]


@pytest.mark.parametrize("code", ["timeout", "result_invalid"])
async def test_what_has_not_happened_is_not_undone_and_its_failure_is_the_steps(code: str) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_rentals(world, ledger, rentals := Rentals(acts=False, error=StepFailure(code, "oh")))
    view = await view_of(world)
    assert (view["error"]["code"], len(rentals.looked)) == (code, 1)
    assert view["questions"] == []
    assert (view["status"], ledger.deeds[-1]) == ("rolled_back", "cancel hotel")


@pytest.mark.parametrize(
    ("told", "looks_s"),
    [
        ({"happened": None}, 0),
        ({"happened": True, "result": 5}, 0),
        ({}, 0),
        (StepFailure("forbidden", "not for you"), 0),
        ({"happened": True}, 10),
    ],
    ids=["null", "result", "empty", "fails", "slow"],
)
async def test_where_verify_cannot_tell_it_is_as_without_one(told: Any, looks_s: float, says: Says) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_rentals(world, ledger, rentals := Rentals(says=told, looks_s=looks_s))
    view = await view_of(world)
    assert (view["status"], view["error"]["code"], len(rentals.looked)) == ("suspended", "timeout", 1)
    (question,) = view["questions"]
    says(question["message"])


async def test_a_failure_that_says_that_nothing_was_done_is_not_looked_at() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    error = StepFailure("timeout", "not sent", happened=False)
    add_rentals(world, ledger, rentals := Rentals(acts=False, error=error))
    assert ((await view_of(world))["status"], rentals.looked) == ("rolled_back", [])


async def test_a_step_that_waits_for_its_next_attempt_when_its_saga_is_cancelled_is_looked_at() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_rentals(world, ledger, rentals := Rentals())
    document = WHOLE.replace("on_failure: [rollback]", "retry: {max_attempts: 3, base: 1h}")
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(60)
    await world.service().rollback(saga, CANCEL)
    await world.settle(600)
    view = await world.queries().show(saga)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert (len(rentals.keys), len(rentals.looked)) == (1, 1)


@pytest.mark.parametrize("acts", [True, False])
async def test_a_step_whose_worker_died_is_looked_at_and_not_called_again(*, acts: bool) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    add_rentals(world, ledger, rentals := Rentals(acts=acts, dies=True))
    saga = await start(world, WHOLE, {}, "w")
    await asyncio.sleep(0.5)
    assert len(rentals.keys) == 1
    await world.service().rollback(saga, CANCEL)
    await world.settle(7_200)
    assert any(isinstance(one, Revived) for one in world.events(saga))
    view = await world.queries().show(saga)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert (len(rentals.keys), len(rentals.looked)) == (1, 1)


@pytest.mark.parametrize("effect", ["idempotent", "once"])
async def test_a_defect_that_was_looked_at_is_a_defect_still(effect: str) -> None:
    world = World.start()

    @tool("trip.rent", effect=effect, verify="trip.rented", registry=world.registry)
    async def rent(what: str) -> int:
        return "a car"  # type: ignore[return-value]

    @tool("trip.rented", effect="pure", registry=world.registry)
    async def rented() -> dict[str, Any]:
        return {"happened": False}

    world.tools = world.registry.specs()
    view = await view_of(world, "name: w\nnodes:\n  b: {tool: trip.rent, with: {what: car}}\n")
    assert (view["status"], view["questions"][0]["type"], view["error"]) == ("parked", "error", None)


async def test_a_verify_that_hangs_in_every_invocation_of_a_stopping_saga_is_given_up() -> None:
    world = World.start()
    add_ledger(world, Ledger())
    looked: list[str] = []

    @tool("trip.wire", effect="once", verify="trip.wired", undo="trip.cancel", registry=world.registry)
    async def wire(what: str, context: Context) -> dict[str, str]:
        world.running[context.saga, context.node].is_dead = True
        raise Crash

    @tool("trip.wired", effect="pure", registry=world.registry)
    async def wired(context: Context) -> dict[str, Any]:
        looked.append(context.saga)
        await asyncio.sleep(3_600)
        return {"happened": True}

    world.tools = world.registry.specs()
    document = WHOLE.replace("tool: trip.rent", "tool: trip.wire").replace("timeout: 5s", "timeout: 5m")
    saga = await start(world, document, {}, "w")
    await asyncio.sleep(0.5)
    await world.service().rollback(saga, CANCEL)
    await world.settle(7_200)
    view = await world.queries().show(saga)
    assert (view["status"], len(looked)) == ("suspended", 3)
    assert [one["id"].partition(".")[2] for one in view["questions"]] == ["b#undo.0"]
