"""Forks, rollbacks, cancels, resumes and answers of a person, drawn in any order: the books of the services are the judge."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import suppress

import pytest
from msgspec import UNSET
from msgspec.structs import replace

from baton import Context, StepFailure, tool
from baton.core.log.questions import Answer
from baton.errors import NotAllowedNow, UserError
from tests.kit.world import World
from tests.runtime.test_undoing import WANTED
from tests.runtime.test_undoing_forked import WHAT, done_in
from tests.runtime.undoing import Ledger, add_ledger, view_of

ASKED = """
name: w
nodes:
  a: {tool: trip.book, with: {what: hotel}}
  b: {tool: trip.charge, with: {what: car}, after: a}
  c: {tool: trip.guide, with: {what: tour}, after: b}
"""
ENDS = {"completed", "cancelled", "rolled_back", "rollback_failed"}


def add_moody(world: World, ledger: Ledger, draw: random.Random) -> None:
    """`charge`, once only, may act or not, and answer or not; `guide` may not let in who calls it, which parks the saga."""

    @tool("trip.charge", effect="once", undo="trip.cancel", registry=world.registry)
    async def charge(what: str, context: Context) -> dict[str, str]:
        fate, booking = draw.choice(["acts", "acts", "silent", "lost"]), f"c-{context.idempotency_key}"
        ledger.begin("charge", what, context.idempotency_key)
        if fate != "lost":
            assert booking not in ledger.in_force, "what happens once is done twice"
            ledger.in_force[booking] = what
        await asyncio.sleep(draw.choice([0, 0.3]))
        if fate != "acts":
            raise StepFailure("timeout", "no answer")
        return {"id": booking}

    @tool("trip.guide", undo="trip.cancel", registry=world.registry)
    async def guide(what: str, context: Context) -> dict[str, str]:
        if draw.random() < 0.4:
            raise StepFailure("login_required", "who is it", happened=False)
        ledger.in_force[booking := f"g-{context.idempotency_key}"] = what
        return {"id": booking}

    world.tools = world.registry.specs()


async def look_and_answer(world: World, saga: str, ledger: Ledger, draw: random.Random) -> None:
    """A person who looks at the books before they say what has happened."""
    questions = (await world.queries().show(saga))["questions"]
    if not questions:
        return
    asked = draw.choice(questions)
    what = WHAT[asked["node"]]
    there = next((booking for booking, of in ledger.in_force.items() if of == what), "")
    said = Answer(
        ask=asked["id"],
        action="use" if there else draw.choice(["retry", "retry", "fail"]),
        output={"id": there} if there else UNSET,
    )
    await world.service().answer(saga, said, "")


@pytest.mark.parametrize("seed", range(60 if os.environ.get("BATON_CRASH_POINTS") else 10))
async def test_whatever_is_asked_for_in_any_order_the_books_are_what_the_log_says(seed: int) -> None:
    world = World.start()
    draw = random.Random(f"any order {seed}")
    add_ledger(world, ledger := Ledger())
    add_moody(world, ledger, draw)
    saga = (await view_of(world, ASKED, settle_s=600))["id"]

    async def one() -> None:
        version, service = world.entries(saga)[-1].version, world.service()
        what = draw.choice(["fork", "fork", "back", "cancel", "resume", "resume", *["answer"] * 4])
        with suppress(NotAllowedNow, UserError):
            if what == "fork":
                await service.fork(saga, draw.randint(1, version), "")
            elif what == "back":
                to = draw.choice([0, draw.randrange(version)])
                await service.rollback(saga, replace(WANTED, back_to=to))
            elif what == "cancel":
                await service.cancel(saga, "enough", 0, undo=draw.random() < 0.7)
            elif what == "resume":
                await service.resume(saga)
            else:
                await look_and_answer(world, saga, ledger, draw)

    for _ in range(14):
        asked = []
        for _ in range(draw.choice([1, 1, 2, 3])):
            world.slow["arm"] = draw.choice([0, 0, 0.3, 4])
            asked.append(asyncio.ensure_future(one()))
            await asyncio.sleep(draw.choice([0.01, 0.2, 1, 5]))
        await asyncio.gather(*asked)
        await world.settle(600)
        view = await world.queries().show(saga)
        stands = sorted(ledger.in_force.values())
        assert view["status"] in ENDS or view["questions"] or view["parked"], "it comes to rest"
        assert len(stands) == len(set(stands)), "nothing is done twice"
        if view["status"] == "completed":
            assert stands == ["car", "hotel", "tour"], view["version"]
        elif view["status"] == "rolled_back" and not view["undo"]["done"]["back_to"]:
            assert {WHAT[slot] for slot in done_in(world, saga)}.isdisjoint(stands), view["version"]
