"""Signals and cancels at every moment of a saga's life, so that conflict, pending wake and refusal really happen."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any, TypeVar

from baton.errors import NotAllowedNow
from baton.ports import Appended, Record, Release, SagaRef, Wake
from tests.kit.corpus import start
from tests.kit.oracles import LATENESS, LIVENESS, RESULT, of_world
from tests.kit.virtual_time import run_virtual, until_something_happens
from tests.kit.world import World

T = TypeVar("T")
RACE = """
name: race
nodes:
  one: {tool: work, with: {n: 1, seconds: 0.05}}
  answer: {wait: {signal: answer}}
  two: {tool: work, after: [one, answer], with: {n: 2, seconds: 0.05}}
output: '${ctx.answer.output}'
"""
YIELDING = """
name: race
nodes:
  one: {tool: work, with: {n: 1, seconds: 4.4}}
  two: {tool: work, after: one, with: {n: 2, seconds: 1.0}}
  answer: {wait: {signal: answer}}
  three: {tool: work, after: [two, answer], with: {n: 3, seconds: 0.05}}
output: '${ctx.answer.output}'
"""


@dataclass(frozen=True)
class Race:
    """How one race went: the saga's end, how long it took, and what the store refused."""

    status: str
    seconds: float
    refused: Counter[str]


def race(at_s: float, act: str, document: str = RACE) -> Race:
    """Do `act` (signal or cancel) `at_s` after the saga was started."""

    async def main() -> Race:
        world = World.start()
        refused = _watch(world)
        world.slow["release"] = 0.04  # long enough for a wake to find the lease held in between
        saga = await start(world, document, {}, "race")
        started = asyncio.get_running_loop().time()
        await asyncio.sleep(at_s)
        service = world.service()
        if act == "signal":
            await service.signal(saga, "answer", "yes", "k")
        else:
            try:
                await service.cancel(saga, "changed my mind", 0)
            except NotAllowedNow:
                refused["too late"] += 1
        while world.end(saga) is None and asyncio.get_running_loop().time() < started + 2_000:
            await until_something_happens(0.01)
        seconds = asyncio.get_running_loop().time() - started - at_s
        return Race((await world.queries().show(saga))["status"], seconds, refused)

    return run_virtual(main())


def fork_race(at_s: float) -> str:
    """Fork `at_s` after the saga was started, with all wakes of the fork lost; what is wrong afterwards, or nothing."""

    async def main() -> str:
        world = World.start()
        world.slow["release"] = 0.04  # long enough for a fork to come in between
        saga = await start(
            world, "name: race\nnodes: {one: {tool: work, with: {n: 1, seconds: 0.05}}}", {}, "race"
        )
        await asyncio.sleep(at_s)
        await world.service().fork(saga, 1, "once more", "f")
        world.queue_on = False
        forked_at = asyncio.get_running_loop().time()
        while (end := world.end(saga)) is None or world.entries(saga)[-1].branch != 1:
            await asyncio.sleep(1)
            if asyncio.get_running_loop().time() > forked_at + 1_000:
                return f"{LIVENESS}: a fork at {at_s} s was never carried on"
        ended_at = asyncio.get_running_loop().time()
        while any(head.owner for head in world.log.heads()):
            await asyncio.sleep(0.5)
            if asyncio.get_running_loop().time() > ended_at + 3:
                return f"{LATENESS}: a saga that was forked at {at_s} s is still held 3 s after its end"
        await world.settle()
        wrong = next(of_world(world), "")
        return wrong or ("" if end.status == "completed" else f"{RESULT}: {end.status}")

    return run_virtual(main())


def _watch(world: World) -> Counter[str]:
    """Count the refusals of the log's conditional writes."""
    refused: Counter[str] = Counter()
    log = world.log
    append, release, leave_wake = log.append, log.release, log.leave_wake

    def counted_append(ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        return _count(refused, "append", append(ref, record, wake))

    def counted_release(ref: SagaRef, owner: str, epoch: int, plan: Release) -> bool:
        return _count(refused, "release", release(ref, owner, epoch, plan))

    def counted_wake(ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        left = leave_wake(ref, owner, epoch, version)
        refused["nudges left"] += left
        return left

    watched: Any = log
    watched.append, watched.release, watched.leave_wake = counted_append, counted_release, counted_wake
    counted_append.__name__, counted_release.__name__, counted_wake.__name__ = (
        "append",
        "release",
        "leave_wake",
    )
    return refused


def _count(refused: Counter[str], what: str, ok: T) -> T:
    refused[what] += not ok
    return ok
