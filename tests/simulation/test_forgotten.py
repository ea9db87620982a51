"""What is done and then forgotten, or done although nothing may be done any more: each in a saga that stops while a worker is in trouble."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from baton import Context, tool
from baton.core.log.codec import decode_entry
from baton.core.log.events import CancelRequested, Event, Revived, StepSucceeded
from baton.errors import StoreUnavailable
from baton.ports import Appended, Head, Record, SagaRef, Wake
from tests.kit.corpus import start
from tests.kit.faults import Crash
from tests.kit.world import World
from tests.runtime.undoing import Ledger, add_ledger

pytestmark = pytest.mark.simulation


WANTED = CancelRequested(reason="the guest has called", by="", at=0, grace_ms=0, undo=True)


def at_appends(
    world: World, is_meant: Callable[[Event], bool], does: Callable[[SagaRef], None], times: int
) -> None:
    """Do something to the first appends of such an event, in their place."""
    append, left = world.log.append, [None] * times

    def done_or_append(ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        if left and any(map(is_meant, decode_entry(record.data).events)):
            left.pop()
            does(ref)
        return append(ref, record, wake)

    any_log: Any = world.log
    any_log.append = done_or_append


def without_puts(world: World, until_s: float) -> None:
    """The store of blobs takes none before that."""
    put = world.blobs.put

    def refused(*given: Any) -> Any:
        if asyncio.get_running_loop().time() < until_s:
            raise StoreUnavailable("no answer")
        return put(*given)

    any_blobs: Any = world.blobs
    any_blobs.put = refused


def add_large(world: World, ledger: Ledger) -> None:
    """A booking whose confirmation is so large that it is a blob."""

    @tool("trip.large", undo="trip.cancel", registry=world.registry)
    async def large(what: str, context: Context) -> dict[str, str]:
        await asyncio.sleep(1)
        ledger.in_force[f"b-{context.idempotency_key}"] = what
        return {"id": f"b-{context.idempotency_key}", "text": "x" * 100_000}

    world.tools = world.registry.specs()


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_what_is_done_and_could_not_be_recorded_is_undone_or_told_of(is_cancelled: bool) -> None:
    world = World.start()
    ledger = Ledger()
    add_ledger(world, ledger)
    add_large(world, ledger)
    fails = "" if is_cancelled else "\n  f: {tool: trip.fail, with: {after: 1.2}}"
    document = (
        f"name: w\non_failure: [rollback]\nnodes:\n  a: {{tool: trip.large, with: {{what: car}}}}{fails}"
    )
    saga = await start(world, document, {}, "w")
    without_puts(world, until_s=30)
    await asyncio.sleep(1.5)
    if is_cancelled:
        await world.service().cancel(saga, "", 0, undo=True)
    await world.settle(600)
    end = world.end(saga)
    assert end is not None
    assert not ledger.in_force or end.status == "rollback_failed" or world.notices.said


async def test_a_death_that_could_not_be_recorded_is_recorded_by_the_next_worker() -> None:
    world = World.start()
    ledger = Ledger()
    add_ledger(world, ledger)

    def die(ref: SagaRef) -> None:
        head = world.log.read_head(ref)
        assert head is not None
        world.processes[head.owner].is_dead = True
        at_appends(world, lambda event: isinstance(event, Revived), fail, 30)
        raise Crash

    def fail(ref: SagaRef) -> None:
        raise StoreUnavailable("no answer")

    at_appends(world, lambda event: isinstance(event, StepSucceeded), die, 1)
    saga = await start(world, "name: w\nnodes: {a: {tool: trip.book, with: {what: car}}}", {}, "w")
    await asyncio.sleep(1)
    await world.service().cancel(saga, "", 0, undo=True)
    await world.settle(600)
    end = world.end(saga)
    assert end is not None
    assert not ledger.in_force or end.status == "rollback_failed" or world.notices.said


async def test_a_death_is_not_given_back_with_a_lease_whose_take_had_no_answer() -> None:
    world = World.start()
    ledger = Ledger()
    add_ledger(world, ledger)
    take, calls = world.log.take, [0]

    def die(ref: SagaRef) -> None:
        head = world.log.read_head(ref)
        assert head is not None
        world.processes[head.owner].is_dead = True
        calls[0] = 12
        raise Crash

    def take_unheard(*given: Any) -> Any:
        before = take(*given)
        if calls[0]:
            calls[0] -= 1
            raise StoreUnavailable("no answer")
        return before

    any_log: Any = world.log
    any_log.take = take_unheard
    at_appends(world, lambda event: isinstance(event, StepSucceeded), die, 1)
    saga = await start(world, "name: w\nnodes: {a: {tool: trip.book, with: {what: car}}}", {}, "w")
    await asyncio.sleep(1)
    await world.service().cancel(saga, "", 0, undo=True)
    await world.settle(600)
    assert calls == [0]
    end = world.end(saga)
    assert end is not None
    assert not ledger.in_force or end.status == "rollback_failed" or world.notices.said


CHILD = """
name: child
on_failure: [rollback]
nodes:
  x: {tool: trip.book, with: {what: car}}
  m: {tool: trip.note, with: {what: confirmation}, after: x}
"""
INSIDE = CHILD.replace("name: child", "name: w") + "  f: {tool: trip.fail, after: m}\n"
OUTSIDE = """
name: w
on_failure: [rollback]
nodes:
  k: {workflow: child}
  f: {tool: trip.fail, after: k}
"""


def add_note(world: World, ledger: Ledger) -> None:
    """What nothing undoes, with a key that its service honours."""

    @tool("trip.note", registry=world.registry)
    async def note(what: str, context: Context) -> None:
        ledger.begin("note", what, context.idempotency_key)

    world.tools = world.registry.specs()


async def test_a_child_that_its_parent_no_longer_needs_is_not_made_to_be_cancelled() -> None:
    world = World.start()
    ledger = Ledger()
    add_ledger(world, ledger)
    add_note(world, ledger)
    create, left = world.log.create_head, [None]

    def die(ref: SagaRef) -> None:
        head = world.log.read_head(SagaRef(ref.tenant, ref.id.partition(".")[0]))
        assert head is not None
        world.processes[head.owner].is_dead = True
        raise Crash

    def die_or_create(head: Head, *more: Any) -> Any:
        if left and "." in head.ref.id:
            left.clear()
            die(head.ref)
        return create(head, *more)

    any_log: Any = world.log
    any_log.create_head = die_or_create
    await world.service().register(CHILD, json_only=False)
    saga = await start(world, "name: w\nnodes: {k: {workflow: child}}", {}, "w")
    await asyncio.sleep(1)
    await world.service().cancel(saga, "", 0)
    at_appends(world, lambda event: isinstance(event, CancelRequested), die, 1)
    await world.settle(600)
    assert world.end(saga) is not None
    assert ledger.deeds == []


@pytest.mark.parametrize(
    "document",
    [INSIDE, OUTSIDE],
    ids=["in-the-saga", "in-a-child"],
)
async def test_what_nothing_undoes_is_not_done_again_after_a_fork(document: str) -> None:
    world = World.start()
    ledger = Ledger()
    add_ledger(world, ledger)
    add_note(world, ledger)
    await world.service().register(CHILD, json_only=False)
    saga = await start(world, document, {}, "w")
    await world.settle(600)
    assert (await world.queries().show(saga))["status"] == "rolled_back"
    await world.service().fork(saga, 1, "")
    await world.settle(600)
    assert len(set(ledger.keys["book car"])) == 2, "what was undone is done anew"
    assert len(set(ledger.keys["note confirmation"])) == 1
