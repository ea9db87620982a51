"""A step acts, its answer is lost, and its later attempts are refused: what the first has done is undone with the saga, whatever happens at any one write.

`make test` takes some writes with one fate each, `make soak` all writes with all fates.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from typing import Any

import pytest

from baton import Context, StepFailure, tool
from baton.core.decide.undoing import MOST_INTERRUPTIONS
from tests.kit.corpus import Scenario, patiently, start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, EVERYTHING, NO_ANSWER, Plan, scripted
from tests.kit.process import pause
from tests.kit.undo_bugs import (
    a_look_that_is_cut_off_is_repeated_for_ever,
    only_the_last_attempt_counts,
)
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


HANGS = "name: w\non_failure: rollback\nnodes: {a: {tool: work, with: {n: 0}}, b: {tool: insure, after: a, timeout: 5m}}"
WRITES = range(4, 14)


def looks(write: int, fate: str = CRASH_AFTER) -> int:
    """Number of calls of a `verify` that hangs, in a saga that is cancelled, where a write meets a fate."""
    called = Counter[str]()

    async def drive(world: World) -> str:
        @tool("insured", effect="pure", registry=world.registry)
        async def insured(context: Context) -> dict[str, Any]:
            called[context.saga] += 1
            await asyncio.sleep(0 if called[context.saga] > MOST_INTERRUPTIONS else 3_600)
            return {"happened": True}

        @tool("insure", effect="once", verify="insured", undo=INVERSE, registry=world.registry)
        async def insure(context: Context) -> dict[str, int]:
            await pause(0.3)
            return {"n": 1}

        world.tools = world.registry.specs()
        saga = await start(world, HANGS, {}, "w")
        await pause(3)
        await patiently(world, lambda service: service.cancel(saga, "", 0, undo=True))
        return saga

    run(Scenario("hangs", drive), plan=scripted((("write", write, fate),)))
    return called.total()


def test_a_verify_that_hangs_is_given_up_whatever_happens_at_any_one_write() -> None:
    for write in WRITES if IS_ALL else (9,):
        for fate in FATES if IS_ALL else (CRASH_AFTER,):
            assert looks(write, fate) <= MOST_INTERRUPTIONS, f"write {write} meets {fate}"


def test_that_a_verify_is_called_for_ever_is_found() -> None:
    with a_look_that_is_cut_off_is_repeated_for_ever():
        assert looks(9) > MOST_INTERRUPTIONS
