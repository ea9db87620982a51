"""A step goes on with another tool after a call that had no answer, and the saga is undone: a person is asked about that call, whatever happens at any one write.

`make test` takes some writes with one fate each, `make soak` all writes with all fates.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from baton import StepFailure, tool
from baton.core.log import events as ev
from baton.core.log.undos import undoes_left_call
from tests.kit.corpus import Scenario, start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, EVERYTHING, NO_ANSWER, Plan, scripted
from tests.kit.process import pause
from tests.kit.undo_bugs import another_way_forgets_the_first
from tests.kit.undo_runs import INVERSE, Undone, run
from tests.kit.world import World

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
FATES = EVERYTHING if IS_ALL else (CRASH_AFTER, CRASH_BEFORE, NO_ANSWER)
CHARGES = """
name: charges
on_failure: [rollback]
nodes:
  a: {tool: charge, failover: [{name: p, when: {code: service_unavailable}, then: {tool: charge_elsewhere}}]}
  b: {tool: refuse, after: a}
"""


async def _charged(world: World) -> str:
    @tool("charge", undo=INVERSE, registry=world.registry)
    async def charge() -> str:
        await pause(0.1)
        raise StepFailure("service_unavailable", "no answer", status=503)

    @tool("charge_elsewhere", undo=INVERSE, registry=world.registry)
    async def charge_elsewhere() -> str:
        await pause(0.1)
        return "done"

    world.tools = world.registry.specs()
    return await start(world, CHARGES, {}, "charges")


SCENARIO = Scenario("charges", _charged)


def unasked(world: World) -> Iterator[str]:
    """Sagas that are undone, and in which a call had no answer that no person was asked about."""
    for head in world.log.heads():
        events = world.events(head.ref.id)
        is_silent = any(isinstance(one, ev.AttemptFailed) and one.tool == "charge" for one in events)
        is_asked = any(
            isinstance(one, ev.StrategyChosen) and one.ask is not None and undoes_left_call(one.item)
            for one in events
        )
        if is_silent and not is_asked:
            yield f"{head.ref.id} has not asked about what it had tried first"


def tried(plan: Plan | None = None) -> Undone:
    return run(SCENARIO, plan=plan, also=unasked)


def test_a_person_is_asked_about_the_call_that_had_no_answer() -> None:
    whole = tried()
    assert (whole.broken, *whole.ends.values()) == ((), "rolled_back")
    for write in range(1, len(whole.writes) + 1, 1 if IS_ALL else 4):
        for fate in FATES if IS_ALL else (FATES[write % len(FATES)],):
            found = tried(scripted((("write", write, fate),)))
            assert found.broken == (), f"write {write} meets {fate}"


def test_a_way_that_forgets_the_one_before_is_found() -> None:
    with another_way_forgets_the_first():
        assert any("tried first" in one for one in tried().broken)
