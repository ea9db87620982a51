"""A child that is asked to undo what it has done: whenever it was asked to stop before, and what that costs its parent."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from baton import Context, StepFailure, tool
from baton.core.decide.decision import CancelChildren
from baton.core.limits import Limits
from baton.core.log.events import CancelRequested, ChildReported, ChildUndone, Forked
from baton.core.log.state import State
from baton.ports import Head
from baton.runtime.worker.children import ChildCanceller, _is_asked
from baton.runtime.worker.undo_children import _next
from tests.kit.world import World
from tests.runtime.test_undoing import WANTED, report
from tests.runtime.undoing import Ledger, add_ledger, view_of

STOP = CancelRequested(reason="", by="p", at=1, grace_ms=0)
UNDO = CancelRequested(reason="", by="p", at=1, grace_ms=0, undo=True)


@pytest.mark.parametrize(("cancel", "is_asked"), [(None, False), (STOP, False), (UNDO, True)])
def test_a_child_that_was_asked_to_stop_is_asked_again_to_undo(
    cancel: CancelRequested | None, is_asked: bool
) -> None:
    child = State(cancel=cancel)
    assert _is_asked(child, undo=True) is is_asked
    assert _is_asked(child, undo=False) is (cancel is not None)
    event: Any = _next(child, "p", "k", 7)
    assert (event is None) is is_asked
    assert is_asked or (isinstance(event, CancelRequested) and event.undo)


CHILD = "name: child\nnodes: {x: {tool: dear.rent}}"
PARENT = """
name: w
nodes:
  b: {workflow: child}
  c: {tool: trip.book, with: {what: hotel}, after: b}
"""


def add_dear(world: World, *, broken: Sequence[bool] = ()) -> None:
    """`dear.rent`, for 5 cents, and what undoes it, for 2, also where it is `broken`."""
    add_ledger(world, Ledger())

    @tool("dear.rent", undo="dear.back", cost_usd="0.05", registry=world.registry)
    async def rent(context: Context) -> None:
        context.spend("0.05")

    @tool("dear.back", effect="once", cost_usd="0.02", registry=world.registry)
    async def back(context: Context) -> None:
        context.spend("0.02")
        if broken:
            raise StepFailure("closed", "the office is closed", kind="permanent", happened=False)

    world.tools = world.registry.specs()


async def test_a_parent_pays_for_each_undoing_of_its_child_and_for_nothing_twice() -> None:
    world = World.start()
    add_dear(world, broken=(broken := [True]))
    await world.service().register(CHILD, json_only=False)
    saga = (await view_of(world, PARENT))["id"]
    spent = []
    for _ in range(2):
        await world.service().rollback(saga, WANTED)
        await world.settle(3_600)
        broken.clear()
        view = await world.queries().show(saga)
        spent.append((view["status"], view["spent_usd"]))
    costs = [event.cost for event in world.events(saga) if isinstance(event, ChildUndone)]
    assert (spent, costs) == (
        [("rollback_failed", 0.07), ("rolled_back", 0.09)],
        [20_000, 20_000],
    )
    child = world.entries(f"{saga}.0.b")
    traces = [one.traceparent for one in child if any(isinstance(event, Forked) for event in one.events)]
    assert len(traces) == 2, "each in a branch of its own"
    assert set(traces) == {child[0].traceparent} != {""}


@pytest.mark.parametrize(
    "first", ["tool: trip.book, with: {what: hotel}", "value: 1"], ids=["lists", "alone"]
)
async def test_a_parent_that_rolls_back_pays_for_all_that_a_child_at_work_has_spent(first: str) -> None:
    world = World.start()
    add_dear(world)
    await world.service().register(f"{CHILD[:-1]}, z: {{wait: {{for: 1h}}, after: x}}}}", json_only=False)
    nodes = f"a: {{{first}}}, b: {{workflow: child}}, c: {{tool: trip.fail, with: {{after: 5}}, after: a}}"
    view = await view_of(world, f"name: w\non_failure: rollback\nnodes: {{{nodes}}}")
    assert view["spent_usd"] == 0.07


POLLED = """
name: w
nodes:
  a: {tool: trip.book, with: {what: car}, poll: {until: "loop.iteration >= 2", every: 1s, tries: 5}}
"""


async def test_the_plan_of_a_rollback_counts_a_poll_once() -> None:
    world = World.start()
    add_ledger(world, Ledger())
    saga = (await view_of(world, POLLED))["id"]
    plan = (await world.service().rollback_plan(saga, 0))["plan"]
    assert (plan["undoable"], [one["step"] for one in plan["steps"]]) == (1, ["a@2"])


RACE = """
name: w
nodes:
  b: {workflow: child}
  a: {wait: {for: 5s}}
  j: {tool: trip.book, with: {what: hotel}, after: [a, b], join: {wait_for: any, rest: cancel}}
"""
SLOW = "name: child\nnodes: {x: {tool: trip.book, with: {what: car}}, z: {wait: {for: 1h}, after: x}}"
ENDED = "name: w\nnodes: {b: {workflow: child}, j: {tool: trip.book, with: {what: hotel}, after: b}}"


@pytest.mark.parametrize(
    ("parent", "child", "is_gone", "status", "undone"),
    [
        (RACE, SLOW, False, "rolled_back", 2),
        # A child that was stopped may never have begun, so that nothing is missed.
        (RACE, SLOW, True, "rolled_back", 1),
        (ENDED, SLOW.replace("1h", "1s"), False, "rolled_back", 2),
        (ENDED, SLOW.replace("1h", "1s"), True, "rollback_failed", 1),
    ],
)
async def test_a_child_that_is_not_there_any_more_is_missed_unless_it_was_stopped(
    parent: str, child: str, is_gone: bool, status: str, undone: int
) -> None:
    world = World.start()
    add_ledger(world, Ledger())
    await world.service().register(child, json_only=False)
    saga = (await view_of(world, parent))["id"]
    if is_gone:
        [ref] = [head.ref for head in world.log.heads() if head.ref.id == f"{saga}.0.b"]
        del world.log._heads[ref]
    await world.service().rollback(saga, WANTED)
    await world.settle(600)
    view = await world.queries().show(saga)
    assert (view["status"], report(view)["undone"]) == (status, undone)


@pytest.mark.parametrize(
    ("child", "undone"), [(SLOW, 2), (SLOW.replace("tool: trip.book", "tool: trip.mail"), 1)]
)
async def test_a_child_counts_as_undone_if_it_has_undone_something(child: str, undone: int) -> None:
    world = World.start()
    add_ledger(world, Ledger())
    await world.service().register(child, json_only=False)
    nodes = "a: {tool: trip.book, with: {what: hotel}}, b: {workflow: child}, c: {tool: trip.fail, with: {after: 5}, after: a}"
    view = await view_of(world, f"name: w\non_failure: rollback\nnodes: {{{nodes}}}")
    assert (view["status"], report(view)["undone"]) == ("rolled_back", undone)


PICKY = "name: child\ninput: {type: object, required: [n]}\nnodes: {x: {tool: trip.book, with: {what: car}}}"


async def test_a_child_that_can_never_start_has_nothing_to_undo() -> None:
    """Its tenant is full when it is opened, so that nothing has refused its input before the saga fails."""
    world = World.start(limits=Limits(tenant_sagas=1))
    add_ledger(world, ledger := Ledger())
    await world.service().register(PICKY, json_only=False)
    nodes = "a: {tool: trip.book, with: {what: hotel}}, b: {workflow: child, after: a}, c: {tool: trip.fail, with: {after: 1}, after: a}"
    view = await view_of(world, f"name: w\non_failure: rollback\nnodes: {{{nodes}}}")
    assert (view["status"], report(view)["undone"], ledger.in_force) == ("rolled_back", 1, {})
    reports = [event for event in world.events(view["id"]) if isinstance(event, ChildReported)]
    assert [(one.status, one.failure is not None) for one in reports] == [("failed", True)]


async def test_a_child_whose_head_another_changes_meanwhile_is_armed_all_the_same() -> None:
    world = World.start()
    add_dear(world)
    await world.service().register(CHILD, json_only=False)
    saga = (await view_of(world, PARENT))["id"]
    arm, seen = world.log.arm, list[Head]()

    def contended(head: Head, until: int) -> bool:
        if head.ref.id != f"{saga}.0.b":
            return arm(head, until)
        seen.append(head)
        assert len(seen) < 3, "it is read again"
        return arm(head, until) and len(seen) > 1

    any_log: Any = world.log
    any_log.arm = contended
    await world.service().rollback(saga, WANTED)
    await world.settle(600)
    assert ((await world.queries().show(saga))["status"], len(seen)) == ("rolled_back", 2)
    assert seen[0] != seen[1]


async def test_an_invocation_without_time_for_any_child_leaves_all_to_the_next() -> None:
    no_time: Any = SimpleNamespace(children=SimpleNamespace(groups=lambda *_: iter(())))
    saga = SimpleNamespace(ref=None, state=None)
    run: Any = SimpleNamespace(lease=saga, history=saga, end=0, wants_more=False, cancelled=set())
    canceller: Any = ChildCanceller(no_time, run)
    assert not await canceller.perform(run, CancelChildren(()))
    assert run.wants_more
