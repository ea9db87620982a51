"""A saga is undone while children of it run: none is forgotten, whatever happens at any one write.

`make test` takes each write with one fate, `make soak` all fates.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache, partial
from typing import Any

import pytest

from baton.core.log import events as ev
from tests.kit.corpus import Scenario, patiently, shown, start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, EVERYTHING, NO_ANSWER, Plan, scripted
from tests.kit.function_scenarios import begins_another
from tests.kit.process import pause
from tests.kit.undo_bugs import (
    a_child_that_can_never_start_is_asked_for_ever,
    a_new_child_does_not_wait,
    a_new_child_is_given_what_was_undone,
    a_saga_that_goes_on_alone_is_taken_for_a_child,
    an_open_child_has_spent_nothing,
    an_open_child_is_only_stopped,
    children_that_are_asked_are_forgotten,
)
from tests.kit.undo_runs import Undone, run
from tests.kit.world import World

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
FATES = EVERYTHING if IS_ALL else (CRASH_AFTER, CRASH_BEFORE, NO_ANSWER)
CHILD = """
name: child
nodes:
  x: {tool: work, with: {n: 1}}
  y: {wait: {for: 20s}, after: x}
  z: {tool: work, with: {n: 2}, after: y}
"""
PARENT = """
name: parent
on_failure: [rollback]
nodes:
  a: {tool: work, with: {n: 0}}
  b: {workflow: child, after: a}
  c: {workflow: child, after: a}
  d: {workflow: child, after: a}
"""
FAILS = "  w: {wait: {for: 5s}, after: a}\n  e: {tool: refuse, after: w}\n"


async def _begun(world: World, document: str) -> str:
    await patiently(world, lambda service: service.register(CHILD, json_only=False))
    return await start(world, document, {}, "parent")


async def _fails(world: World) -> str:
    return await _begun(world, PARENT + FAILS)


async def _cancelled(world: World) -> str:
    saga = await _begun(world, PARENT)
    await pause(5)
    await patiently(world, lambda service: service.cancel(saga, "", 0, undo=True))
    return saga


SCENARIOS = (Scenario("a-parent-fails", _fails), Scenario("a-parent-is-cancelled", _cancelled))

FAILING = """
name: child
on_failure: [rollback]
nodes:
  x: {tool: work, with: {n: 1}}
  y: {tool: work, with: {n: 2}, after: x}
  z: {tool: refuse, after: y}
"""
STOPS = """
name: parent
on_failure: [rollback]
nodes:
  b: {workflow: child}
  w: {wait: {for: 5s}}
  e: {tool: refuse, after: w}
"""


async def _forked(world: World, child: str, parent: str) -> str:
    """It goes on from its start, as soon as it has failed."""
    await patiently(world, lambda service: service.register(child, json_only=False))
    saga = await start(world, parent, {}, "parent")
    while (await shown(world, saga))["error"] is None:
        await pause(0.1)
    await patiently(world, lambda service: service.fork(saga, 1, "once more", key="fork"))
    return saga


async def _failed(world: World) -> str:
    return await _forked(world, FAILING, "name: parent\nnodes: {b: {workflow: child}}")


async def _stopped(world: World) -> str:
    return await _forked(world, CHILD, STOPS)


FORKED = Scenario("a-parent-is-forked", _failed), Scenario("a-parent-is-forked-at-once", _stopped)


def forgotten(world: World) -> Iterator[str]:
    """Children of a saga that is rolled back of which it has not heard that they are."""
    for head in world.log.heads():
        events = world.events(head.ref.id)
        opened = {event.child for event in events if isinstance(event, ev.ChildOpened)}
        heard = {event.child for event in events if isinstance(event, ev.ChildUndone)}
        end = world.end(head.ref.id)
        if end is not None and end.status == "rolled_back":
            yield from (f"{child} is not heard of" for child in sorted(opened - heard))


def tried(scenario: Scenario, plan: Plan | None = None) -> Undone:
    return run(scenario, plan=plan, also=forgotten)


@cache
def whole(scenario: Scenario) -> Undone:
    return tried(scenario)


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_children_that_run_when_their_parent_is_undone_are_undone_first(scenario: Scenario) -> None:
    found = whole(scenario)
    assert found.broken == ()
    assert set(found.ends.values()) == {"rolled_back"}
    assert found.undone == 4, "what the parent and each of its children had done"


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_whatever_happens_at_any_one_write_none_is_forgotten(scenario: Scenario) -> None:
    # In `make test` every fourth write meets one fate, in `make soak` each of them all.
    for write in range(1, len(whole(scenario).writes) + 1, 1 if IS_ALL else 7):
        for fate in FATES if IS_ALL else (FATES[write % len(FATES)],):
            found = tried(scenario, scripted((("write", write, fate),)))
            assert found.broken == (), f"write {write} meets {fate}"


@pytest.mark.parametrize("bug", [children_that_are_asked_are_forgotten, an_open_child_is_only_stopped])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_child_that_is_forgotten_is_found(scenario: Scenario, bug: object) -> None:
    with bug():  # type: ignore[operator]
        assert tried(scenario).broken != ()


@pytest.mark.parametrize("scenario", FORKED, ids=lambda scenario: scenario.name)
def test_after_a_fork_a_child_does_anew_what_the_one_before_it_has_undone(scenario: Scenario) -> None:
    found = whole(scenario)
    assert found.broken == ()
    assert found.undone == 2 * (2 if scenario is FORKED[0] else 1), "what each child had done"
    for write in range(1, len(found.writes) + 1, 1 if IS_ALL else 10):
        for fate in FATES if IS_ALL else (FATES[write % len(FATES)],):
            told = tried(scenario, scripted((("write", write, fate),)))
            assert told.broken == (), f"write {write} meets {fate}"


def test_a_child_that_a_fork_leaves_behind_shares_its_effects_with_the_new_one() -> None:
    """Its parent dies before it asks it to stop, and is forked: the inverse in the new child is for both."""
    told = tried(FORKED[1], scripted((("write", 23, CRASH_AFTER),)))
    assert told.broken == ()
    assert sorted(told.ends.values()) == ["cancelled", "failed", "rolled_back"]


@pytest.mark.parametrize(
    ("scenario", "bug"),
    zip(FORKED, (a_new_child_is_given_what_was_undone, a_new_child_does_not_wait), strict=True),
    ids=["given", "waits"],
)
def test_a_child_that_is_given_what_was_undone_is_found(scenario: Scenario, bug: Any) -> None:
    with bug():
        assert any("taken back" in one for one in tried(scenario).broken)


ALONE = Scenario("begins-another", partial(begins_another, start=start, patiently=patiently), "rolled_back")


def disturbed(world: World) -> Iterator[str]:
    """Sagas without a parent that another saga has cancelled."""
    sagas = {str(head.ref) for head in world.log.heads()}
    for head in world.log.heads():
        events = world.events(head.ref.id)
        by = {event.by for event in events if isinstance(event, ev.CancelRequested)} & sagas
        if by and not any(isinstance(event, ev.SagaStarted) and event.parent for event in events):
            yield f"{head.ref.id} goes on alone, and is cancelled by {by}"


def alone(write: int, fate: str = CRASH_AFTER) -> list[str]:
    """Sentences of `disturbed`, where a write meets a fate."""
    broken = run(ALONE, plan=scripted((("write", write, fate),)), also=disturbed).broken
    return [text for text in broken if "goes on alone" in text]


WRITES = range(1, 30)


def test_a_saga_that_goes_on_alone_is_left_so_whatever_happens_at_any_one_write() -> None:
    for write in WRITES if IS_ALL else WRITES[4::5]:
        for fate in FATES if IS_ALL else (CRASH_AFTER,):
            assert alone(write, fate) == [], f"write {write} meets {fate}"


def test_that_it_is_taken_for_a_child_is_found() -> None:
    with a_saga_that_goes_on_alone_is_taken_for_a_child():
        assert any(map(alone, WRITES))


DEAR = """
name: child
nodes:
  x: {tool: purchase, with: {seconds: 0.1}}
  y: {wait: {for: 20s}, after: x}
"""
PICKY = "name: child\ninput: {type: object, required: [n]}\nnodes: {x: {tool: work, with: {n: 1}}}"
PAYS = "name: parent\non_failure: [rollback]\nnodes: {a: {tool: work, with: {n: 0}}, b: {workflow: child, after: a}}"


async def _paid(world: World) -> str:
    """It is cancelled while its child waits, which has spent 10 cents by then."""
    await patiently(world, lambda service: service.register(DEAR, json_only=False))
    saga = await start(world, PAYS, {}, "parent")
    await pause(8)
    await patiently(world, lambda service: service.cancel(saga, "", 0, undo=True))
    return saga


async def _picky(world: World) -> str:
    """It is cancelled as soon as it has opened a child whose input is refused."""
    await patiently(world, lambda service: service.register(PICKY, json_only=False))
    saga = await start(world, PAYS, {}, "parent")
    while not any(isinstance(event, ev.ChildOpened) for event in world.events(saga)):
        await pause(0.002)
    await patiently(world, lambda service: service.cancel(saga, "", 0, undo=True))
    return saga


def unpaid(world: World) -> Iterator[str]:
    """Children with other costs in their parent's log than in their own."""
    for head in world.log.heads():
        for child in {
            event.child for event in world.events(head.ref.id) if isinstance(event, ev.ChildOpened)
        }:
            counted = [event for event in world.events(head.ref.id) if event.child == child]
            told = sum(getattr(event, "cost", 0) for event in counted)
            spent = sum(getattr(event, "cost", 0) for event in world.events(child) if not event.child)
            if told != spent:
                yield f"{child} has spent {spent}, and its parent has counted {told}"


def failing(world: World) -> Iterator[str]:
    """Rollbacks that have failed before an operator was asked."""
    for head in world.log.heads():
        if (end := world.end(head.ref.id)) is not None and end.status == "rollback_failed":
            yield f"the rollback of {head.ref.id} has failed"


ENDED = (
    (Scenario("a-child-has-spent", _paid), unpaid, an_open_child_has_spent_nothing),
    (Scenario("a-child-cannot-start", _picky), failing, a_child_that_can_never_start_is_asked_for_ever),
)


def ended(scenario: Scenario, also: Any, write: int, fate: str = CRASH_AFTER) -> list[str]:
    """Sentences of `also`, where a write meets a fate."""
    broken = run(scenario, plan=scripted((("write", write, fate),)), also=also).broken
    return [text for text in broken if "counted" in text or "has failed" in text]


@pytest.mark.parametrize(("scenario", "also", "bug"), ENDED, ids=[one.name for one, *_ in ENDED])
def test_a_rollback_ends_as_its_children_have_whatever_happens_at_any_one_write(
    scenario: Scenario, also: Any, bug: Any
) -> None:
    for write in WRITES if IS_ALL else WRITES[4::5]:
        for fate in FATES if IS_ALL else (CRASH_AFTER,):
            assert ended(scenario, also, write, fate) == [], f"write {write} meets {fate}"
    with bug():
        assert any(ended(scenario, also, write) for write in WRITES)
