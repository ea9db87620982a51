"""A saga is undone while another system works at a step of it: a person is asked what has come of that, whatever happens at any one write.

`make test` takes some writes with one fate each, `make soak` all writes with all fates.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from baton.core.log import events as ev
from tests.kit.corpus import Scenario, patiently, start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, EVERYTHING, NO_ANSWER, Plan, scripted
from tests.kit.process import pause
from tests.kit.undo_bugs import work_elsewhere_is_looked_at
from tests.kit.undo_runs import Undone, run
from tests.kit.world import World

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
FATES = EVERYTHING if IS_ALL else (CRASH_AFTER, CRASH_BEFORE, NO_ANSWER)
ENTRUSTS = """
name: entrusts
nodes:
  a: {tool: work, with: {n: 0}}
  b: {tool: entrust, with: {job: x}, callback: {timeout: 1h}, after: a}
  c: {tool: hand_over, with: {job: y}, callback: {timeout: 1h}, after: a}
"""


async def _cancelled(world: World) -> str:
    saga = await start(world, ENTRUSTS, {}, "entrusts")
    while sum(isinstance(event, ev.CallbackOpened) for event in world.events(saga)) < 2:
        await pause(0.5)
    await patiently(world, lambda service: service.cancel(saga, "", 0, undo=True))
    return saga


SCENARIO = Scenario("entrusts", _cancelled)


def invented(world: World) -> Iterator[str]:
    """Steps that have succeeded although nothing was said of them."""
    for head in world.log.heads():
        for event in world.events(head.ref.id):
            if isinstance(event, ev.StepSucceeded) and event.node in {"b", "c"} and not event.item:
                yield f"{event.node} is taken for done"


def tried(plan: Plan | None = None) -> Undone:
    return run(SCENARIO, plan=plan, also=invented)


def test_a_person_is_asked_about_what_another_system_works_at() -> None:
    whole = tried()
    assert (whole.broken, whole.undone, *whole.ends.values()) == ((), 3, "rolled_back")
    for write in range(1, len(whole.writes) + 1, 1 if IS_ALL else 4):
        for fate in FATES if IS_ALL else (FATES[write % len(FATES)],):
            found = tried(scripted((("write", write, fate),)))
            assert found.broken == (), f"write {write} meets {fate}"


def test_a_handover_that_is_taken_for_its_work_is_found() -> None:
    with work_elsewhere_is_looked_at():
        assert "b is taken for done" in tried().broken
