"""Forks beside rollbacks: from no version at which something is taken for done that is undone, whichever branch it was undone in."""

from __future__ import annotations

import asyncio
import os
import random
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.log.events import Forked, StepSucceeded
from baton.core.log.state import State
from baton.core.log.undos import Undoable
from baton.errors import NotAllowedNow, UserError
from baton.runtime.requests.forking import check_cut
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_undoing import WANTED
from tests.runtime.undoing import Ledger, add_ledger, view_of

TWO = """
name: w
nodes:
  a: {tool: trip.book, with: {what: hotel}}
  b: {tool: trip.book, with: {what: car}, after: a}
  c: {tool: trip.book, with: {what: tour}, after: b}
"""
WHAT = {"a": "hotel", "b": "car", "c": "tour"}
A, B, C = 2, 3, 4
"""The versions at which they are done first."""


async def forked(world: World, saga: str, cut: int) -> dict[str, Any]:
    await world.service().fork(saga, cut, "")
    await world.settle(600)
    return await world.queries().show(saga)


async def rolled_back(world: World, saga: str, back_to: int = 0) -> None:
    await world.service().rollback(saga, replace(WANTED, back_to=back_to))
    await world.settle(600)


async def test_a_fork_that_waits_while_a_rollback_ends_is_refused(says: Says) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    saga = (await view_of(world, TWO))["id"]
    world.slow["arm"] = 12
    fork = asyncio.ensure_future(world.service().fork(saga, B, ""))
    await asyncio.sleep(1)
    world.slow.clear()
    await world.service().rollback(saga, replace(WANTED, back_to=A))
    with says.raised(UserError):
        await fork
    await world.settle(600)
    assert sorted(ledger.in_force.values()) == ["hotel"]
    assert sum(isinstance(event, Forked) and not event.undo for event in world.events(saga)) == 0


async def test_a_fork_that_waits_while_a_rollback_begins_is_refused() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    saga = (await view_of(world, TWO))["id"]
    world.slow |= {"arm": 3}
    fork = asyncio.ensure_future(world.service().fork(saga, B, ""))
    await asyncio.sleep(2.9)
    world.slow.clear()
    await world.service().rollback(saga, WANTED)
    with pytest.raises((NotAllowedNow, UserError), match=r"undone|undoes"):
        await fork
    await world.settle(600)
    assert ledger.in_force == {}


@pytest.mark.parametrize("cut", [B, C])
async def test_a_version_of_a_branch_that_was_left_is_refused_once_the_branch_after_it_is_undone(
    cut: int, says: Says
) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    saga = (await view_of(world, TWO))["id"]
    view = await forked(world, saga, A)
    assert (view["branch"], len(ledger.in_force)) == (1, 3)
    first = next(e.version for e in world.entries(saga) if isinstance(e.events[-1], Forked))
    await rolled_back(world, saga, first)
    assert list(ledger.in_force.values()) == ["hotel"]
    with says.raised(UserError):
        await forked(world, saga, cut)
    view = await forked(world, saga, A)
    assert (view["status"], sorted(ledger.in_force.values())) == ("completed", ["car", "hotel", "tour"])


async def test_also_where_the_undone_branch_was_left_too(says: Says) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    saga = (await view_of(world, TWO))["id"]
    await forked(world, saga, A)
    second = next(e.version for e in world.entries(saga) if isinstance(e.events[-1], Forked)) + 1
    await rolled_back(world, saga, second)
    assert sorted(ledger.in_force.values()) == ["car", "hotel"]
    await forked(world, saga, second)
    with says.raised(UserError):
        await forked(world, saga, C)
    assert sorted(ledger.in_force.values()) == ["car", "hotel", "tour"]


async def test_a_version_of_a_branch_that_was_left_is_taken_where_nothing_was_undone_since() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    saga = (await view_of(world, TWO))["id"]
    await rolled_back(world, saga, B)
    view = await forked(world, saga, B)
    last = view["version"] - 1
    await forked(world, saga, A)
    view = await forked(world, saga, last)
    assert (view["status"], len(ledger.in_force)) == ("completed", 3)


def done_in(world: World, saga: str) -> set[str]:
    """The steps of the present history, undone or not."""
    done: dict[str, int] = {}
    for entry in world.entries(saga):
        for event in entry.events:
            if isinstance(event, Forked) and not event.undo:
                done = {node: version for node, version in done.items() if version <= event.cut}
            elif isinstance(event, StepSucceeded) and not event.item:
                done[event.node] = entry.version
    return set(done)


@pytest.mark.parametrize("seed", range(40 if os.environ.get("BATON_CRASH_POINTS") else 8))
async def test_forks_and_rollbacks_and_cancels_in_any_order_leave_what_the_log_says(seed: int) -> None:
    """Drawn: what is done at any moment, also while another request waits for the store. The books of the services are the judge."""
    world = World.start()
    draw = random.Random(f"forks {seed}")
    add_ledger(world, ledger := Ledger())
    saga = (await view_of(world, TWO))["id"]

    async def one() -> None:
        version = world.entries(saga)[-1].version
        what = draw.choice(["fork", "fork", "fork", "back", "back", "cancel"])
        with suppress(NotAllowedNow, UserError):
            if what == "fork":
                await world.service().fork(saga, draw.randint(1, version), "")
            elif what == "back":
                await world.service().rollback(
                    saga, replace(WANTED, back_to=draw.choice([0, draw.randrange(version)]))
                )
            else:
                await world.service().cancel(saga, "enough", 0, undo=draw.random() < 0.7)

    for _ in range(10):
        asked = []
        for _ in range(draw.choice([1, 1, 2, 3])):
            world.slow["arm"] = draw.choice([0, 0, 0.3, 4])
            asked.append(asyncio.ensure_future(one()))
            await asyncio.sleep(draw.choice([0.01, 0.2, 1, 5]))
        await asyncio.gather(*asked)
        await world.settle(600)
        view = await world.queries().show(saga)
        stands = sorted(ledger.in_force.values())
        if view["status"] == "completed":
            assert stands == ["car", "hotel", "tour"], view["version"]
        elif view["status"] == "rolled_back" and not view["undo"]["done"]["back_to"]:
            # What a branch did that a fork has left is not undone with the branch after it.
            assert {WHAT[slot] for slot in done_in(world, saga)}.isdisjoint(stands)
        assert len(stands) == len(set(stands)), "nothing is done twice"


@pytest.mark.parametrize("incarnation", [{"a/": 1}, {"a/": 1, "a": -1}])
def test_a_call_that_its_step_has_left_is_not_made_again_where_what_the_step_did_next_is_undone(
    incarnation: dict[str, int], says: Says
) -> None:
    """It would have another key, and may stand; nothing undoes it, so the step itself keeps its number."""
    left = Undoable(ways=(("a", "first", 5),))
    at_cut = State(version=2)
    check_cut(State(version=9, undo=left), at_cut)
    with says.raised(UserError):
        check_cut(State(version=9, undo=replace(left, incarnation=incarnation)), at_cut)
