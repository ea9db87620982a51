"""A saga that fails takes back what it has done."""

from __future__ import annotations

import asyncio
from datetime import datetime
from typing import Any

import pytest
from msgspec.structs import replace

from baton.core.log.events import CancelRequested
from baton.errors import NotAllowedNow, UserError
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.undoing import Ledger, add_ledger, view_of

THREE = """
name: w
nodes:
  a: {tool: trip.book, with: {what: hotel}}
  b: {tool: trip.pay, with: {what: deposit}, after: a}
  c: {tool: trip.mail, with: {what: confirmation}, after: b}
  d: {tool: trip.fail, after: c}
on_failure: [rollback]
"""


async def undone(document: str, **broken: int) -> tuple[dict[str, Any], Ledger]:
    world, ledger = World.start(), Ledger(broken=broken)
    add_ledger(world, ledger)
    return await view_of(world, document), ledger


async def test_a_saga_that_fails_takes_back_what_it_has_done_the_last_first() -> None:
    view, ledger = await undone(THREE)
    assert view["status"] == "rolled_back"
    assert ledger.deeds == [
        "book hotel",
        "pay deposit",
        "mail confirmation",
        "refund deposit",
        "cancel hotel",
    ]
    assert ledger.in_force == {}


def report(view: dict[str, Any]) -> dict[str, Any]:
    done: dict[str, Any] = view["undo"]["done"]
    return done


async def test_what_nothing_undoes_is_named() -> None:
    view, _ = await undone(THREE)
    assert report(view) == {"undone": 2, "failed": 0, "lasting": 1, "stays": ["c"], "back_to": None}
    assert view["error"]["code"] == "sold_out"


async def test_a_saga_that_has_done_nothing_that_can_be_undone_is_failed() -> None:
    nothing = "name: w\nnodes: {a: {tool: trip.mail, with: {what: x}}, b: {tool: trip.fail, after: a}}"
    view, _ = await undone(nothing + "\non_failure: [rollback]")
    assert (view["status"], view["undo"]) == ("failed", None)
    first = "name: w\nnodes: {a: {tool: trip.fail}, b: {tool: trip.book, with: {what: x}, after: a}}"
    view, ledger = await undone(first + "\non_failure: [rollback]")
    assert (view["status"], ledger.deeds) == ("failed", [])


async def test_a_document_lets_a_saga_end_without_undoing_anything() -> None:
    for said in ("fail", "{sold_out: fail}", "{any: [retry]}"):
        view, ledger = await undone(THREE.replace("on_failure: [rollback]", f"on_failure: {said}"))
        assert (view["status"], len(ledger.in_force)) == ("failed", 2), said
        assert view["undo"]["undoable"] == 2
    view, ledger = await undone("compensate: none" + THREE)
    assert (view["status"], len(ledger.in_force)) == ("failed", 2)


async def test_an_undo_is_tried_again() -> None:
    view, ledger = await undone(THREE, cancel=4)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert ledger.deeds[4:] == ["cancel hotel"] * 5
    assert len(set(ledger.keys["cancel hotel"])) == 1


async def test_what_cannot_be_undone_is_told_and_the_rest_is_undone() -> None:
    view, ledger = await undone(THREE, refund=-1)
    assert view["status"] == "rollback_failed"
    assert list(ledger.in_force.values()) == ["deposit"]
    assert ledger.deeds.count("refund deposit") == 5
    assert report(view)["undone"] == 1
    [failed] = view["undo"]["failed"]
    assert (failed["step"], failed["tool"], failed["code"]) == ("b", "trip.refund", "unavailable")
    assert view["error"]["code"] == "sold_out"


async def test_each_round_of_a_loop_is_undone_the_last_first() -> None:
    view, ledger = await undone(
        """
name: w
on_failure: [rollback]
nodes:
  a: {tool: trip.book, with: {what: "room ${loop.iteration}"}, loop: {while: "loop.iteration < 2", max_iterations: 3}}
  b: {tool: trip.fail, after: a}
""",
    )
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert ledger.deeds[3:] == ["cancel room 2", "cancel room 1", "cancel room 0"]


async def test_steps_are_undone_side_by_side_where_the_document_says_so() -> None:
    view, ledger = await undone("compensate: parallel" + THREE, refund=1)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert sorted(ledger.deeds[3:]) == ["cancel hotel", "refund deposit", "refund deposit"]


async def test_what_runs_beside_it_is_undone_too() -> None:
    view, ledger = await undone(
        """
name: w
on_failure: [rollback]
nodes:
  a: {tool: trip.book, with: {what: slow, seconds: 5}}
  b: {tool: trip.pay, with: {what: slow, seconds: 5}}
  c: {tool: trip.fail, with: {after: 1}}
""",
    )
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert sorted(ledger.deeds) == ["book slow", "cancel slow", "pay slow", "refund slow"]


async def test_a_saga_over_its_limit_is_undone() -> None:
    for limit in ("limits: {hops: 2}", "timeout: 30m", "limits: {wall_time: 30m}"):
        view, ledger = await undone(
            f"""
name: w
{limit}
nodes:
  a: {{tool: trip.book, with: {{what: hotel}}}}
  b: {{wait: {{for: 1h}}, after: a}}
  c: {{tool: trip.mail, with: {{what: x}}, after: b}}
""",
        )
        assert (view["status"], ledger.in_force) == ("rolled_back", {}), limit


async def test_an_output_that_cannot_be_made_undoes_the_saga() -> None:
    view, ledger = await undone(
        'name: w\nnodes: {a: {tool: trip.book, with: {what: x}}}\noutput: "${ctx.a.output.ticket}"'
    )
    assert view == {} or (view["status"], view["error"]["code"], ledger.in_force) == (
        "rolled_back",
        "output_unbound",
        {},
    )


async def test_a_step_of_another_tool_is_undone_by_the_inverse_of_that() -> None:
    view, ledger = await undone(
        """
name: w
on_failure: [rollback]
nodes:
  a: {tool: trip.fail, failover: [{name: p, when: {code: sold_out}, then: {tool: trip.pay, with: {what: instead}}}]}
  b: {tool: trip.fail, after: a}
""",
    )
    assert (view["status"], ledger.deeds) == ("rolled_back", ["pay instead", "refund instead"])


# ---- by hand -----------------------------------------------------------------------------------------------------------


DONE = """
name: w
nodes:
  a: {tool: trip.book, with: {what: hotel}}
  b: {tool: trip.pay, with: {what: deposit}, after: a}
  c: {tool: trip.mail, with: {what: confirmation}, after: b}
"""
WANTED = CancelRequested(reason="the guest has called", by="", at=0, grace_ms=0, undo=True)


async def test_a_saga_that_has_ended_is_undone_in_a_new_branch(says: Says) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    saga = (await view_of(world, DONE))["id"]
    plan = (await world.service().rollback_plan(saga, 0))["plan"]
    assert plan == {
        "parent": None,
        "undoable": 2,
        "doubtful": 0,
        "lasting": 1,
        "steps": [
            {"step": "c", "version": 4, "by": None, "doubtful": False},
            {"step": "b", "version": 3, "by": "trip.refund", "doubtful": False},
            {"step": "a", "version": 2, "by": "trip.cancel", "doubtful": False},
        ],
    }
    asked = await world.service().rollback(saga, WANTED, "key-1")
    assert (asked["changed"], asked["status"]) == (True, "running")
    again = await world.service().rollback(saga, WANTED, "key-1")
    assert again["changed"] is False
    await world.settle(600)
    view = await world.queries().show(saga)
    assert (view["status"], view["branch"], ledger.in_force) == ("rolled_back", 1, {})
    with says.raised(NotAllowedNow):
        await world.service().rollback(saga, WANTED)


def _ms(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1_000)


@pytest.mark.parametrize("again", ["rollback", "fork"])
async def test_a_saga_that_was_over_and_ends_again_has_changed_then(again: str) -> None:
    world = World.start()
    add_ledger(world, Ledger())
    saga = (await view_of(world, DONE))["id"]
    (before,) = (await world.queries().sagas())["sagas"]
    await asyncio.sleep(7_200)
    (still,) = (await world.queries().sagas())["sagas"]
    assert still["changed_at"] == before["changed_at"], "nothing has happened"
    await (world.service().fork(saga, 3, "") if again == "fork" else world.service().rollback(saga, WANTED))
    await world.settle(600)
    (row,) = (await world.queries().sagas())["sagas"]
    assert row["status"] == ("completed" if again == "fork" else "rolled_back")
    first, then = (_ms(one["changed_at"]) for one in (before, row))
    assert first + 7_200_000 <= then <= first + 7_300_000
    assert (await world.queries().sagas(since=then))["sagas"] == [row]


async def test_what_was_done_up_to_a_version_stays_and_the_saga_can_go_on_from_there(says: Says) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    saga = (await view_of(world, DONE))["id"]
    await world.service().rollback(saga, replace(WANTED, back_to=2))
    await world.settle(600)
    assert list(ledger.in_force.values()) == ["hotel"]
    assert (await world.queries().show(saga))["undo"]["done"]["back_to"] == 2
    with says.raised(UserError):
        await world.service().fork(saga, 3, "")
    await world.service().fork(saga, 2, "")
    await world.settle(600)
    view = await world.queries().show(saga)
    assert (view["status"], sorted(ledger.in_force.values())) == ("completed", ["deposit", "hotel"])
    assert len(set(ledger.keys["pay deposit"])) == 2, "an undone effect is done again under another key"
    await world.service().rollback(saga, WANTED)
    await world.settle(600)
    assert ledger.in_force == {}
    assert len(set(ledger.keys["refund deposit"])) == 2


async def test_a_rollback_that_failed_is_taken_up_again() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger(broken={"refund": -1}))
    view = await view_of(world, THREE)
    assert view["status"] == "rollback_failed"
    ledger.broken = {}
    await world.service().rollback(view["id"], WANTED)
    await world.settle(600)
    view = await world.queries().show(view["id"])
    assert (view["status"], ledger.in_force, view["undo"]["failed"]) == ("rolled_back", {}, [])
    assert view["error"]["code"] == "sold_out"
    assert ledger.deeds.count("cancel hotel") == 1


async def test_a_saga_that_runs_is_stopped_and_undone() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    saga = await start(world, f"{DONE}  d: {{wait: {{for: 1h}}, after: c}}", {}, "w")
    await world.settle(60)
    assert len(ledger.in_force) == 2
    await world.service().rollback(saga, WANTED)
    await world.settle(600)
    view = await world.queries().show(saga)
    assert (view["status"], ledger.in_force) == ("rolled_back", {})
    assert (view["error"]["code"], view["error"]["message"]) == ("cancelled", "the guest has called")


@pytest.mark.parametrize(("undo", "status", "left"), [(False, "cancelled", 2), (True, "rolled_back", 0)])
async def test_a_cancel_undoes_what_was_done_if_it_is_asked_for(undo: bool, status: str, left: int) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    saga = await start(world, f"{DONE}  d: {{wait: {{for: 1h}}, after: c}}", {}, "w")
    await world.settle(60)
    await world.service().cancel(saga, "", 0, undo=undo)
    await world.settle(600)
    assert (await world.queries().show(saga))["status"] == status
    assert len(ledger.in_force) == left


async def test_a_cancel_does_not_stop_an_undoing(says: Says) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger(broken={"refund": 3}))
    saga = await start(world, THREE, {}, "w")
    for _ in range(100):
        await asyncio.sleep(0.1)
        if (await world.queries().show(saga))["status"] == "compensating":
            break
    with says.raised(NotAllowedNow):
        await world.service().cancel(saga, "", 0)
    with says.raised(NotAllowedNow):
        await world.service().rollback(saga, WANTED)
    await world.settle(600)
    assert ((await world.queries().show(saga))["status"], ledger.in_force) == ("rolled_back", {})


async def test_a_step_that_may_have_happened_is_looked_at_before_it_is_undone() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    document = "name: w\nnodes: {a: {tool: trip.pay, with: {what: slow, seconds: 20}}}"
    saga = await start(world, document, {}, "w")
    await world.settle(2)
    await world.service().rollback(saga, WANTED)
    await world.settle(600)
    view = await world.queries().show(saga)
    assert (view["status"], ledger.deeds, ledger.in_force) == (
        "rolled_back",
        ["pay slow", "refund slow"],
        {},
    )
