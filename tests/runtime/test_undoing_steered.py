"""Forks and second rollbacks of a saga that is undone, or was."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from baton import StepFailure, tool
from baton.errors import KeyReused, NotAllowedNow, UserError
from baton.ports import Head
from tests.kit.corpus import start
from tests.kit.sentences import Says
from tests.kit.world import World
from tests.runtime.test_undoing import DONE, THREE, WANTED
from tests.runtime.test_undoing_children import PARENT
from tests.runtime.undoing import Ledger, add_ledger, view_of


async def test_no_fork_while_a_saga_is_undone_nor_into_the_middle_of_it(says: Says) -> None:
    """What is undone by then would count as done, and an effect under its old key would not be done again."""
    world = World.start()
    add_ledger(world, ledger := Ledger(broken={"cancel": 2}))
    saga = await start(world, THREE, {}, "w")
    while "refund deposit" not in ledger.deeds or "cancel hotel" not in ledger.deeds:
        await world.settle(1)
    assert (await world.queries().show(saga))["status"] == "compensating"
    with says.raised(NotAllowedNow):
        await world.service().fork(saga, 1, "")
    await world.settle(3_600)
    view = await world.queries().show(saga)
    assert view["status"] == "rolled_back"
    for cut in range(2, view["version"] + 1):
        with pytest.raises(UserError):
            await world.service().fork(saga, cut, "")
    await world.service().fork(saga, 1, "")
    await world.settle(3_600)
    assert len(set(ledger.keys["pay deposit"])) == 2


async def test_no_fork_into_an_undoing_of_which_nothing_has_come() -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger(broken={"refund": -1, "cancel": -1}))
    saga = (await view_of(world, DONE))["id"]
    end = (await world.queries().show(saga))["version"]
    await world.service().rollback(saga, WANTED)
    await world.settle(3_600)
    view = await world.queries().show(saga)
    assert (view["status"], len(ledger.in_force)) == ("rollback_failed", 2)
    for cut in range(end, view["version"] + 1):
        with pytest.raises(UserError):
            await world.service().fork(saga, cut, "")


IN_DOUBT = """
name: child
nodes:
  x: {tool: trip.book, with: {what: car}}
  y: {tool: trip.charge, after: x, on_failure: {unknown_outcome: fail}, catch: z}
  z: {tool: trip.mail, with: {what: sorry}}
"""


async def test_a_child_that_may_have_done_something_is_not_said_to_be_undone(says: Says) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())

    @tool("trip.charge", effect="once", registry=world.registry)
    async def charge() -> None:
        raise StepFailure("timeout", "no answer", happened=True)

    world.tools = world.registry.specs()
    await world.service().register(IN_DOUBT, json_only=False)
    view = await view_of(world, PARENT)
    child = await world.queries().show(f"{view['id']}.0.b")
    assert (child["status"], child["undo"]["doubtful"]) == ("rollback_failed", ["y"])
    assert (view["status"], ledger.in_force) == ("rollback_failed", {})
    says(view["undo"]["failed"][0]["message"])


async def test_a_second_rollback_that_wants_something_else_is_refused(says: Says) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    saga = (await view_of(world, DONE))["id"]
    await world.service().rollback(saga, replace(WANTED, back_to=2), "one")
    assert (await world.service().rollback(saga, replace(WANTED, back_to=2)))["changed"] is False
    with says.raised(NotAllowedNow):
        await world.service().rollback(saga, WANTED)
    with says.raised(KeyReused):
        await world.service().rollback(saga, WANTED, "one")
    await world.settle(3_600)
    assert list(ledger.in_force.values()) == ["hotel"]
    await world.service().rollback(saga, WANTED, "two")
    await world.settle(3_600)
    assert ledger.in_force == {}
    again = await world.service().rollback(saga, replace(WANTED, back_to=2), "one")
    assert again["changed"] is False
    await world.service().fork(saga, 1, "", "three")
    await world.service().cancel(saga, "", 0)
    with pytest.raises(KeyReused, match="used for a fork"):
        await world.service().rollback(saga, WANTED, "three")


RUNS = DONE + "  z: {wait: {for: 1h}, after: c}\n"


@pytest.mark.parametrize("broken", [0, -1])
async def test_a_repeated_key_of_a_rollback_of_a_running_saga_changes_nothing_after_its_end_either(
    broken: int, says: Says
) -> None:
    world = World.start()
    add_ledger(world, Ledger(broken={"refund": broken}))
    saga = await start(world, RUNS, {}, "w")
    await world.settle(30)
    assert (await world.service().rollback(saga, WANTED, "one"))["changed"] is True
    assert (await world.service().rollback(saga, WANTED, "one"))["changed"] is False
    await world.settle(3_600)
    before = await world.queries().show(saga)
    assert before["status"] == ("rollback_failed" if broken else "rolled_back")
    assert (await world.service().rollback(saga, WANTED, "one"))["changed"] is False
    assert (await world.queries().show(saga))["version"] == before["version"]
    with says.raised(KeyReused):
        await world.service().rollback(saga, replace(WANTED, back_to=2), "one")
    with pytest.raises(KeyReused):
        await world.service().fork(saga, 1, "", "one")
    await world.service().fork(saga, 1, "")
    with pytest.raises(KeyReused, match="forked since"):
        await world.service().rollback(saga, WANTED, "one")


async def test_a_rollback_that_another_one_has_overtaken_as_a_whole_does_nothing(says: Says) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    saga = (await view_of(world, DONE))["id"]
    service, other = world.service(), world.service()
    arm, was_overtaken = service._request.arm, list[bool]()

    async def slow(head: Head) -> int:
        if not was_overtaken:
            was_overtaken.append(True)
            await other.rollback(saga, WANTED)
            await world.settle(1)
        return await arm(head)

    service._request.arm = slow  # type: ignore[method-assign]
    with says.raised(NotAllowedNow):
        await service.rollback(saga, WANTED)
    await world.settle(600)
    assert was_overtaken
    assert ((await world.queries().show(saga))["status"], ledger.in_force) == ("rolled_back", {})


LOOP = """
name: w
nodes:
  a: {tool: trip.book, with: {what: "room ${loop.iteration}"}, loop: {while: "loop.iteration < 2", max_iterations: 3}}
  b: {tool: trip.pay, with: {what: deposit}, after: a}
"""


@pytest.mark.parametrize(
    ("step", "left"),
    [("a", 3), ("a@2", 3), ("a@0", 1)],
)
async def test_a_rollback_goes_back_to_a_step_by_its_name(step: str, left: int) -> None:
    world = World.start()
    add_ledger(world, ledger := Ledger())
    saga = (await view_of(world, LOOP))["id"]
    plan = (await world.service().rollback_plan(saga, 0, step))["plan"]
    assert plan["undoable"] == 4 - left
    await world.service().rollback(saga, WANTED, "k", step)
    again = await world.service().rollback(saga, WANTED, "k", step)
    assert again["changed"] is False
    await world.settle(3_600)
    assert len(ledger.in_force) == left
    again = await world.service().rollback(saga, WANTED, "k", step)
    assert again["changed"] is False, "also when it is over"


async def test_a_step_that_is_not_there_is_refused_with_those_that_are(says: Says) -> None:
    world = World.start()
    add_ledger(world, Ledger())
    saga = (await view_of(world, LOOP))["id"]
    with says.raised(UserError):
        await world.service().rollback_plan(saga, 0, "c")


async def test_a_plan_reads_only_the_entries_of_the_steps_that_it_names() -> None:
    world = World.start()
    add_ledger(world, Ledger())
    many = LOOP.replace("< 2", "< 299").replace("max_iterations: 3", "max_iterations: 300")
    saga = (await view_of(world, many, settle_s=90_000))["id"]
    read: list[int] = []
    real = world.log.read_tail

    def read_tail(*place: Any) -> Any:
        records = real(*place)
        read.append(len(records))
        return records

    world.log.read_tail = read_tail  # type: ignore[method-assign,assignment]
    plan = (await world.service().rollback_plan(saga, 0))["plan"]
    assert (plan["undoable"], len(plan["steps"])) == (301, 100)
    assert sum(read[1:]) == 200, "one page behind those that its state is made of"
