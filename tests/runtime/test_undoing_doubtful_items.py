"""An item of a map that is in doubt: its map is not, so that a person's answer settles it."""

from __future__ import annotations

import pytest

from baton import Context, StepFailure, tool
from baton.core.log.questions import Answer
from tests.kit.corpus import start
from tests.kit.world import World
from tests.runtime.undoing import Ledger, add_ledger

DOCUMENT = """
name: w
on_failure: [rollback]
nodes:
  m: {map: [hotel, vague], tool: trip.%s, with: {what: '${item}'}}
"""


def add_vague(world: World, ledger: Ledger, code: str) -> None:
    """Bookings of which one has no answer; the second of them may happen only once."""
    add_ledger(world, ledger)

    @tool("trip.vague", undo="trip.cancel", registry=world.registry)
    async def vague(what: str, context: Context) -> dict[str, str]:
        if what == "vague":
            raise StepFailure(code, "no answer")
        booking = f"b-{context.idempotency_key}"
        ledger.in_force[booking] = what
        return {"id": booking}

    @tool("trip.once", undo="trip.cancel", effect="once", registry=world.registry)
    async def once(what: str, context: Context) -> dict[str, str]:
        return await vague(what, context)

    world.tools = world.registry.specs()


@pytest.mark.parametrize("name", ["vague", "once"])
@pytest.mark.parametrize(
    ("action", "status", "doubtful"),
    [("retry", "rolled_back", []), ("fail", "rollback_failed", ["m#1"])],
)
async def test_what_a_person_says_of_the_item_settles_its_map(
    name: str, action: str, status: str, doubtful: list[str]
) -> None:
    world = World.start()
    ledger = Ledger()
    add_vague(world, ledger, "timeout")
    saga = await start(world, DOCUMENT % name, {}, "w")
    for _ in range(3):
        await world.settle(900)
        for question in (await world.queries().show(saga))["questions"]:
            said = action if "undo" in question["id"] else "fail"
            await world.service().answer(saga, Answer(ask=question["id"], action=said), "")
    view = await world.queries().show(saga)
    assert (view["status"], view["undo"]["doubtful"]) == (status, doubtful)
    assert ledger.in_force == {}
