"""Workers, relays and reconcilers that are killed at random: how long a saga stands still, and what its log has lost.

In virtual time at three time limits of the worker, with the engine's own code in every role; then on the local AWS with SIGKILL.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

from baton.core.limits import Limits
from baton.core.log.events import Entry, Revived
from baton.errors import NotAllowedNow
from baton.local.processes import LocalRunError
from benchmarks.figures import Bench, Figure, Sample
from tests.e2e.deployment import Deployment, chain
from tests.kit.corpus import patiently
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, FINE, WRITES, Plan
from tests.kit.oracles import of_saga, of_world
from tests.kit.toolbox import Books, make_registry
from tests.kit.virtual_time import EPOCH, run_virtual
from tests.kit.world import TENANT, World

LIMITS_S = (60, 300, 900)
SAGAS, STEPS, STEP_S = 60, 20, 20
KILL_EVERY_S, KILLS_END_S = 7, 600
OTHERS_DIE = 0.02  # of their calls: one run of the reconciler in five comes to no end
DOCUMENT = "\n".join(
    [
        "name: long",
        "nodes:",
        *(
            f"  s{n}: {{tool: work, with: {{n: '${{input.n}}', seconds: {STEP_S}}}"
            + (f", after: s{n - 1}}}" if n else "}")
            for n in range(STEPS)
        ),
    ]
)
REAL_S, REAL_SAGAS, REAL_STEPS, REAL_STEP_S, REAL_KILL_EVERY_S = 60, 8, 16, 3.0, 6.0
REAL = {
    "WorkerTimeout": "900",
    "WakeVisibility": "905",
    "LeaseMs": "15000",
    "ClockSkewMs": "200",  # one machine, one clock
    "Shards": "1",
    "TenantRateLimit": "0",
}
REAL_PERIOD_S = 20


@dataclass
class Mortal(Plan):
    """A plan in which every other process than a worker may die at any call."""

    seed: int = 0
    until_s: float = KILLS_END_S
    rate: float = 0
    _draw: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self._draw.seed(self.seed)

    def draw(self, call: str, worker: bool) -> str:
        is_over = asyncio.get_running_loop().time() > self.until_s
        if worker or is_over or self._draw.random() >= self.rate:
            return FINE
        return self._draw.choice([CRASH_BEFORE, CRASH_AFTER]) if call in WRITES else CRASH_BEFORE


@dataclass(frozen=True)
class Course:
    """Seconds from each death of a worker to the next entry, for each saga that it held; and what was lost."""

    pauses: Sequence[float]
    lost: int
    broken: Sequence[str] = ()

    def quantile(self, share: float) -> float:
        ordered = sorted(self.pauses)
        return ordered[min(int(share * len(ordered)), len(ordered) - 1)] if ordered else 0.0


async def _start(service: Any, number: int) -> str:
    view, _ = await service.start("long", {"n": number * 1_000}, f"key-{number}")
    return str(view["id"])


async def _virtual(timeout_s: int, limits: Limits, sagas: int, until_s: float, rate: float) -> Course:
    world = World(
        make_registry(Books()),
        plan=Mortal(seed=timeout_s, until_s=until_s, rate=rate),
        limits=limits,
        timeout_s=timeout_s,
        batch=3,
        reconciler_first_s=31,
        runaway=10_000_000,
    )
    world.switch_on()
    draw, loop = random.Random(timeout_s), asyncio.get_running_loop()
    await patiently(world, lambda service: service.register(DOCUMENT, json_only=False))
    ids = []
    for number in range(sagas):
        ids.append(await patiently(world, partial(_start, number=number)))
        await asyncio.sleep(draw.random())
    while loop.time() < until_s:
        await asyncio.sleep(KILL_EVERY_S * 2 * draw.random())
        if at_work := sorted({head.owner for head in world.log.heads() if head.owner}):
            holder = world.processes[draw.choice(at_work)]
            if holder.is_at_work:
                holder.kill()
    while heads := [head for head in world.log.heads() if head.group != "done"]:
        await asyncio.sleep(60)
        for head in heads:
            if head.status == "parked":  # three deaths in a row: that is what a person is for
                with suppress(NotAllowedNow):
                    await world.service_without_faults().resume(head.ref.id)
    logs = {saga: world.entries(saga) for saga in ids}
    there = {(f"T#{TENANT}#SAGA#{saga}", entry.version) for saga, log in logs.items() for entry in log}
    lost = sum(written not in there for written in world.written)
    broken = [*of_world(world), *(text for saga in ids for text in of_saga(world, saga))]
    return Course([pause for log in logs.values() for pause in _pauses(world, log)], lost, broken)


def _pauses(world: World, log: Sequence[Entry]) -> list[float]:
    deaths = ((entry, event) for entry in log for event in entry.events if isinstance(event, Revived))
    ends = ((entry.at, world.processes[event.dead].ended_at) for entry, event in deaths)
    return [(at - EPOCH) / 1_000 - end for at, end in ends if end is not None]


def virtual(
    timeout_s: int,
    limits: Limits | None = None,
    sagas: int = SAGAS,
    until_s: float = KILLS_END_S,
    rate: float = 0,
) -> Course:
    """A course in virtual time. `rate`: of the calls of other processes than workers, those at which one dies."""
    return run_virtual(_virtual(timeout_s, limits or Limits(), sagas, until_s, rate))


def real(sagas: int = REAL_SAGAS, steps: int = REAL_STEPS, seconds: float = REAL_S) -> Course:
    """A course on the local AWS: processes of all three functions are killed, those that are at work."""
    draw, killed = random.Random(1), dict[str, int]()
    with (
        tempfile.TemporaryDirectory() as folder,
        Deployment(Path(folder), REAL, schedule_period_s=REAL_PERIOD_S) as deployment,
    ):
        deployment.register(chain("slow", steps, REAL_STEP_S))
        ids = [deployment.start("slow") for _ in range(sagas)]
        known = dict[tuple[str, int], Any]()
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            time.sleep(REAL_KILL_EVERY_S * 2 * draw.random())
            for saga in ids:
                known |= {(saga, one["version"]): one for one in deployment.log(saga)}
            busy = [
                one
                for function in ("WorkerFunction", "RelayFunction", "ReconcilerFunction")
                for one in deployment.run.processes(function)
                if one.request_id
            ]
            if busy:
                one = draw.choice(busy)
                killed[one.request_id] = round(time.time() * 1_000)
                with suppress(LocalRunError):  # it has ended in the meantime
                    deployment.run.kill(one.pid)
        for saga in ids:
            deployment.wait_for(saga)
        logs = {saga: deployment.log(saga) for saga in ids}
    final = {(saga, one["version"]): one for saga, log in logs.items() for one in log}
    lost = sum(final.get(place) != one for place, one in known.items())
    pauses = [
        _ms(entry["at"]) - killed[request]
        for log in logs.values()
        for entry in log
        for event in entry["events"]
        if event["kind"] == "revived" and (request := event["dead"].rpartition(".")[0]) in killed
    ]
    return Course([pause / 1_000 for pause in pauses], lost)


def _ms(moment: str) -> int:
    return round(datetime.fromisoformat(moment).timestamp() * 1_000)


def measure(sagas: int = SAGAS, until_s: float = KILLS_END_S, on_aws: bool = True) -> Sample:
    found: dict[str, float] = {}
    courses = {str(limit): virtual(limit, None, sagas, until_s) for limit in LIMITS_S}
    courses["others"] = virtual(LIMITS_S[-1], None, sagas, until_s, OTHERS_DIE)
    courses["held"] = virtual(LIMITS_S[-1], Limits(lease_ms=901_000), sagas, until_s)
    courses["real"] = real() if on_aws else Course([0.0], 0)
    for name, course in courses.items():
        found |= {f"{name} p50": course.quantile(0.5), f"{name} p95": course.quantile(0.95)}
        found[f"{name} longest"] = max(course.pauses, default=0.0)
    found["deaths"] = sum(len(course.pauses) for course in courses.values())
    found["lost"] = sum(course.lost for course in courses.values())
    found["broken"] = sum(len(course.broken) for course in courses.values())
    return found


def _of(name: str, title: str, longest: float | None = None) -> dict[str, Figure]:
    return {
        f"{name} p50": Figure(f"{title}: from a death to the next entry, half of them", "s", digits=1),
        f"{name} p95": Figure("  95 of 100", "s", digits=1),
        f"{name} longest": Figure("  the longest", "s", longest, digits=1),
    }


BENCH = Bench(
    "recovery",
    "workers, relays and reconcilers killed at random; 60 sagas of 20 steps of 20 s in virtual time, 8 of 16 steps of 3 s with SIGKILL",
    {
        **_of("60", "WorkerTimeout 60", 61),
        **_of("300", "WorkerTimeout 300", 61),
        **_of("900", "WorkerTimeout 900", 61),
        **_of("others", "WorkerTimeout 900, relays and reconcilers die, too"),
        **_of("held", "WorkerTimeout 900, leases of 901 s"),
        **_of("real", "local AWS, leases of 15 s, a run each 20 s"),
        "deaths": Figure("deaths, counted once for each saga that was held", "", digits=0),
        "lost": Figure("recorded entries that are not in the log", "", 0, digits=0),
        "broken": Figure("promises of the simulation that were broken", "", 0, digits=0),
    },
    measure,
    runs=1,
)
