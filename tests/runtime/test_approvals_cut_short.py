"""A worker dies with a step under way that has to be approved, and its saga stops: nothing goes round."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from baton import Context, tool
from baton.core.limits import Limits
from baton.core.log.codec import decode_entry
from baton.core.log.events import Event, QuestionOpened, StepSucceeded
from baton.ports import Appended, Record, SagaRef, Wake
from tests.kit.corpus import start
from tests.kit.faults import Crash
from tests.kit.undo_bugs import an_unapproved_look_says_nothing
from tests.kit.virtual_time import run_virtual
from tests.kit.world import World
from tests.runtime.test_undoing import WANTED
from tests.runtime.undoing import Ledger, add_ledger

BESIDE = """
name: w
nodes:
  a: {tool: trip.book, with: {what: hotel}}
  b: {tool: trip.book, with: {what: car}, after: a, requires_approval: {expires: 1h}}
  c: {tool: trip.fail, with: {after: 1}, after: a}
on_failure: [rollback]
"""
ALONE = BESIDE.replace("  c: {tool: trip.fail, with: {after: 1}, after: a}\n", "")


def dies_once(world: World, is_meant: Callable[[Event], bool]) -> None:
    """The worker that is about to append such an event dies."""
    append, left = world.log.append, [1]

    def die_or_append(ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        if left and any(map(is_meant, decode_entry(record.data).events)):
            left.clear()
            head = world.log.read_head(ref)
            assert head is not None
            world.processes[head.owner].is_dead = True
            raise Crash
        return append(ref, record, wake)

    any_log: Any = world.log
    any_log.append = die_or_append


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_it_has_not_happened_and_the_saga_is_undone(is_cancelled: bool) -> None:
    world = World.start()
    ledger = Ledger()
    add_ledger(world, ledger)
    dies_once(world, lambda event: isinstance(event, QuestionOpened))
    saga = await start(world, ALONE if is_cancelled else BESIDE, {}, "w")
    if is_cancelled:
        await asyncio.sleep(2)
        await world.service().rollback(saga, WANTED)
    await world.settle(600)
    view = await world.queries().show(saga)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert ledger.deeds == ["book hotel", "cancel hotel"]
    assert len(world.starts) < 12


async def test_nor_does_the_limit_of_its_money_keep_a_saga_that_stops_from_finding_out() -> None:
    world = World.start(limits=Limits(saga_budget_usd="0.50", user_day_budget_usd="0.50"))
    ledger = Ledger()
    add_ledger(world, ledger)

    @tool("trip.hire", cost_usd="0.40", undo="trip.cancel", registry=world.registry)
    async def hire(what: str, context: Context) -> dict[str, str]:
        ledger.in_force[f"b-{context.idempotency_key}"] = what
        context.spend("0.40")
        return {"id": f"b-{context.idempotency_key}"}

    world.tools = world.registry.specs()
    dies_once(world, lambda event: isinstance(event, StepSucceeded))
    saga = await start(world, "name: w\nnodes: {a: {tool: trip.hire, with: {what: car}}}", {}, "w")
    await asyncio.sleep(1)
    await world.service().rollback(saga, WANTED)
    await world.settle(600)
    view = await world.queries().show(saga)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})


def test_a_saga_that_would_decide_again_by_what_it_knows_is_left_with_a_pause() -> None:
    async def scenario() -> None:
        world = World.start()
        add_ledger(world, Ledger())
        dies_once(world, lambda event: isinstance(event, QuestionOpened))
        saga = await start(world, ALONE, {}, "w")
        await asyncio.sleep(2)
        await world.service().rollback(saga, WANTED)
        await world.settle(600)
        assert world.end(saga) is None
        assert len(world.starts) < 60

    with an_unapproved_look_says_nothing():
        run_virtual(scenario())
