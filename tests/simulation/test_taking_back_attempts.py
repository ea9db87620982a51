"""A step acts, its answer is lost, and its later attempts are refused: what the first has done is undone with the saga, whatever happens at any one write.

`make test` takes some writes with one fate each, `make soak` all writes with all fates.
"""

from __future__ import annotations

import os
from collections import Counter
from typing import Any

import pytest

from baton import Context, StepFailure, tool
from tests.kit.corpus import Scenario, start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, EVERYTHING, NO_ANSWER, Plan, scripted
from tests.kit.process import pause
from tests.kit.undo_bugs import only_the_last_attempt_counts
from tests.kit.undo_runs import INVERSE, Lost, Undone, run
from tests.kit.world import World

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
FATES = EVERYTHING if IS_ALL else (CRASH_AFTER, CRASH_BEFORE, NO_ANSWER)
RESERVES = """
name: reserves
on_failure: rollback
nodes:
  a:
    tool: reserve
    retry: {max_attempts: 3, base: 1s}
"""
WAYS = {"asked": "", "called": "    compensate: {with: {}, in_doubt: call}\n", "verified": ""}


def scenario(way: str) -> Scenario:
    """`way`: what is done about a step in doubt."""

    async def drive(world: World) -> str:
        calls = Counter[str]()

        @tool("reserved", effect="pure", registry=world.registry)
        async def reserved(context: Context) -> dict[str, Any]:
            return {"happened": context.idempotency_key in calls, "result": None}

        verify = "reserved" if way == "verified" else ""

        @tool("reserve", undo=INVERSE, verify=verify, registry=world.registry)
        async def reserve(context: Context) -> None:
            await pause(0.1)
            calls[context.idempotency_key] += 1
            if calls[context.idempotency_key] == 1:
                raise Lost("service_unavailable", "no answer", status=503)
            raise StepFailure("rate_limited", "too many requests", status=429)

        world.tools = world.registry.specs()
        return await start(world, RESERVES + WAYS[way], {}, "reserves")

    return Scenario(f"reserves-{way}", drive)


def tried(way: str, plan: Plan | None = None) -> Undone:
    return run(scenario(way), plan=plan)


@pytest.mark.parametrize("way", WAYS)
def test_what_an_attempt_before_the_last_has_done_is_undone(way: str) -> None:
    whole = tried(way)
    assert (whole.broken, whole.undone, *whole.ends.values()) == ((), 1, "rolled_back")
    for write in range(1, len(whole.writes) + 1, 1 if IS_ALL else 4):
        for fate in FATES if IS_ALL else (FATES[write % len(FATES)],):
            found = tried(way, scripted((("write", write, fate),)))
            assert found.broken == (), f"write {write} meets {fate}"


@pytest.mark.parametrize("way", ["asked", "called"])
def test_that_only_the_last_attempt_counts_is_found(way: str) -> None:
    with only_the_last_attempt_counts():
        assert any("still in force is a" in one for one in tried(way).broken)
