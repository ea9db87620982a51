"""Children lose a race, the saga goes on without them and is undone later: what they have done is undone, whatever happens at any one write.

`make test` takes a few writes with one fate, `make soak` all writes with all fates.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import cache, partial

import pytest

from baton.core.log import events as ev
from baton.runtime.requests.service import Service
from tests.kit.corpus import Scenario, patiently, start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, EVERYTHING, NO_ANSWER, Plan, scripted
from tests.kit.undo_bugs import a_child_is_asked_anew_each_time, a_child_that_is_stopped_is_not_listed
from tests.kit.undo_runs import Undone, run
from tests.kit.world import World

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
FATES = EVERYTHING if IS_ALL else (CRASH_AFTER, CRASH_BEFORE, NO_ANSWER)
WAITS = """
name: waits
nodes:
  x: {tool: work, with: {n: 1}}
  y: {wait: {for: 60s}, after: x}
"""
ACTS = """
name: acts
nodes:
  x: {tool: work, with: {n: 2}}
  y: {tool: work, with: {n: 3, seconds: 25}, after: x}
"""
STARTS = """
name: starts
nodes:
  x: {workflow: waits}
"""
PARENT = """
name: parent
on_failure: [rollback]
nodes:
  a: {tool: work, with: {n: 0}}
  b: {workflow: waits, after: a}
  c: {workflow: acts, after: a}
  d: {workflow: starts, after: a}
  w: {wait: {for: 6s}, after: a}
  j: {value: 1, after: [b, c, d, w], join: {wait_for: any, rest: cancel}}
  y: {tool: work, with: {n: 4}, after: j}
  z: {tool: refuse, after: y}
"""


async def _register(document: str, service: Service) -> None:
    await service.register(document, json_only=False)


async def _loses(world: World) -> str:
    for document in (WAITS, ACTS, STARTS):
        await patiently(world, partial(_register, document))
    return await start(world, PARENT, {}, "parent")


SCENARIO = Scenario("children-lose-a-race", _loses)


def asked_twice(world: World) -> Iterator[str]:
    """Children that went on to undo what they have done more than once for one undoing of their parent."""
    for head in world.log.heads():
        times = sum(isinstance(event, ev.Forked) and event.undo for event in world.events(head.ref.id))
        if times > 1:
            yield f"{head.ref.id} was asked {times} times"


def tried(plan: Plan | None = None, closed: int = 0) -> Undone:
    return run(SCENARIO, closed=closed, plan=plan, also=asked_twice)


@cache
def whole() -> Undone:
    return tried()


def test_what_they_have_done_is_undone_with_their_parent() -> None:
    found = whole()
    assert found.broken == ()
    assert set(found.ends.values()) == {"rolled_back"}
    assert found.undone == 5, "what the parent and each of the children had done"


def test_whatever_happens_at_any_one_write_nothing_stays() -> None:
    for write in range(1, len(whole().writes) + 1, 1 if IS_ALL else 48):
        for fate in FATES if IS_ALL else (FATES[write // 48 % len(FATES)],):
            assert tried(scripted((("write", write, fate),))).broken == (), f"write {write} meets {fate}"


@pytest.mark.parametrize(
    ("bug", "closed"), [(a_child_that_is_stopped_is_not_listed, 0), (a_child_is_asked_anew_each_time, 25)]
)
def test_what_is_forgotten_or_asked_twice_is_found(
    bug: Callable[[], AbstractContextManager[None]], closed: int
) -> None:
    assert tried(closed=closed).broken == ()
    with bug():
        assert tried(closed=closed).broken != ()
