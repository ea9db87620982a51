"""Undoing what a model has had done; inverses that a person has to approve; and inverses whose target is down."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from msgspec.structs import replace

from baton import Context, Risk, tool
from baton.core.log.events import AttemptFailed, StepSucceeded, UndoStepBegan
from tests.kit.corpus import start
from tests.kit.scripted import Scripted, asks_for, by_turn, in_turn, says
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World
from tests.runtime.banking import asked, say
from tests.runtime.test_undoing import WANTED
from tests.runtime.undoing import Ledger, add_ledger, view_of

AGENT = """
name: w
on_failure: [rollback]
nodes:
  plan: {agent: {model: m, prompt: Go., tools: [trip.book, trip.pay]}}
  end: {tool: trip.fail, after: plan}
"""
BOOK = ("trip_book", {"what": "hotel"})
PAY = ("trip_pay", {"what": "deposit"})


def begun(world: World, saga: str) -> list[str]:
    """The items of the steps that were undone, in their order."""
    return [event.item for event in world.events(saga) if isinstance(event, UndoStepBegan)]


async def test_what_an_agent_has_called_is_undone_the_last_first() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    world.models = Scripted(by_turn(asks_for(BOOK), asks_for(PAY), says("done")))
    view = await view_of(world, AGENT)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert ledger.deeds == ["book hotel", "pay deposit", "refund deposit", "cancel hotel"]
    assert all(item.startswith("undo-") for item in begun(world, view["id"]))
    assert view["undo"]["done"]["undone"] == 2


async def test_a_call_that_an_agent_has_repeated_is_undone_once() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    world.models = Scripted(by_turn(asks_for(BOOK), asks_for(BOOK, PAY), asks_for(BOOK), says("done")))
    view = await view_of(world, AGENT)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert ledger.deeds == ["book hotel", "pay deposit", "refund deposit", "cancel hotel"]


async def test_calls_of_an_agent_that_has_not_ended_are_undone_too() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger(broken={"refund": 1}))
    world.models = Scripted(by_turn(asks_for(BOOK), asks_for(PAY), says("done")))
    beside = AGENT.replace("after: plan", "with: {after: 2.5}")
    view = await view_of(world, beside)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert ledger.deeds.count("cancel hotel") == 1


async def test_after_a_partial_rollback_a_call_that_stands_keeps_its_key_and_one_that_was_undone_has_another() -> (
    None
):
    world = World.start()
    add_ledger(world, ledger := Ledger())
    car = ("trip_book", {"what": "car"})
    world.models = Scripted(by_turn(asks_for(BOOK), asks_for(car), says("done")))
    saga = (await view_of(world, AGENT.replace("  end: {tool: trip.fail, after: plan}\n", "")))["id"]
    first = next(
        entry.version
        for entry in world.entries(saga)
        for event in entry.events
        if isinstance(event, StepSucceeded) and event.prior is not None
    )
    await world.service().rollback(saga, replace(WANTED, back_to=first))
    await world.settle(600)
    assert list(ledger.in_force.values()) == ["hotel"]
    await world.service().fork(saga, 1, "")
    world.models = Scripted(by_turn(asks_for(BOOK), asks_for(car), says("done")))
    await world.settle(600)
    assert (await world.queries().show(saga))["status"] == "completed"
    assert sorted(ledger.in_force.values()) == ["car", "hotel"]
    assert (len(set(ledger.keys["book hotel"])), len(set(ledger.keys["book car"]))) == (1, 2)
    await world.service().rollback(saga, WANTED)
    await world.settle(600)
    assert ledger.in_force == {}


async def test_what_a_plan_has_put_in_the_place_of_a_step_is_undone() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    calls = [
        {"tool": name, "arguments": {"what": what}}
        for name, what in (("trip.book", "bus"), ("trip.pay", "fare"))
    ]
    merits = {"reliability": 0.9, "cost": 1, "latency": 1, "fit": 0.9, "preference": 0.5}
    way = {"steps": calls, "why": "it goes", "trade_offs": "slower", **merits}
    world.models = Scripted(in_turn(says(json.dumps({"alternatives": [way]}))))
    view = await view_of(
        world,
        """
name: w
on_failure: [rollback]
nodes:
  a: {tool: trip.gone, replan: {model: m, tools: [trip.book, trip.pay], steps: 2}, on_failure: {not_found: [replan, rollback]}}
  b: {tool: trip.fail, after: a}
""",
    )
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert ledger.deeds == ["book bus", "pay fare", "refund fare", "cancel bus"]


# ---- approvals, and targets that are down ---------------------------------------------------------------------------------


def add_deposit(world: World, **inverse: Any) -> list[str]:
    """`lock` and its inverse `unlock`, which is as `inverse` says. What was done."""
    deeds: list[str] = []

    @tool("vault.lock", undo="vault.unlock", registry=world.registry)
    async def lock(amount: int) -> dict[str, int]:
        deeds.append(f"lock {amount}")
        return {"amount": amount}

    @tool("vault.unlock", registry=world.registry, **inverse)
    async def unlock(amount: int, context: Context) -> None:
        deeds.append(f"unlock {amount}")

    world.tools = world.registry.specs()
    return deeds


VAULT = """
name: w
on_failure: [rollback]
nodes:
  a: {tool: vault.lock, with: {amount: 600}}
  b: {tool: trip.fail, after: a}
"""
RISKY = Risk(action="payment", amount="amount", currency_is="USD")


def test_an_inverse_that_is_risky_waits_for_its_approval() -> None:
    for action, status, deeds in (
        ("approve", "rolled_back", ["lock 600", "unlock 600"]),
        ("reject", "rollback_failed", ["lock 600"]),
    ):

        async def answered(action: str, status: str, deeds: list[str]) -> None:
            world = World.start()
            add_ledger(world, Ledger())
            done = add_deposit(world, risk=RISKY)
            saga = await start(world, VAULT, {}, "w")
            question = await asked(world, saga)
            assert question["details"]["arguments"] == {"amount": 600}
            assert (await world.queries().show(saga))["status"] == "suspended"
            assert done == ["lock 600"]
            await say(world, saga, action)
            await world.settle()
            view = await world.queries().show(saga)
            assert (view["status"], done) == (status, deeds)
            failed = [one["code"] for one in view["undo"]["failed"]]
            assert failed == ([] if action == "approve" else ["rejected"])

        run_virtual(answered(action, status, deeds))


async def test_an_inverse_whose_target_is_down_waits_without_an_attempt_however_long() -> None:
    world = World.start(is_warm=True, slots=1, runaway=100_000)
    add_ledger(world, Ledger())
    done = add_deposit(world, breaker="vault")
    primer = "name: primer\nnodes: {a: {tool: vault.unlock, with: {amount: 1}}}"
    await world.service().breakers.open("vault", 0)
    await world.service().register(primer, json_only=False)
    await world.service().start("primer", {}, "key-0")  # by its call the process learns of the breaker
    await asyncio.sleep(61)
    done.clear()
    saga = await start(world, VAULT, {}, "w")
    await asyncio.sleep(4 * 3_600)
    view = await world.queries().show(saga)
    assert (view["status"], view["undo"]["failed"], done) == ("compensating", [], ["lock 600"])
    assert not [event for event in world.events(saga) if isinstance(event, AttemptFailed)]
    await world.service().breakers.reset("vault")
    await world.settle()
    view = await world.queries().show(saga)
    assert (view["status"], done) == ("rolled_back", ["lock 600", "unlock 600"])
