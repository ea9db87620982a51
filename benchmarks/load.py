"""20 sagas of 50 steps in one process: steps per second on memory adapters and on the embedded AWS."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec, TypeVar

from baton.ports import Offload
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.stage import aws_engine, memory_engine, run_all, start

SAGAS, STEPS = 20, 50
P = ParamSpec("P")
T = TypeVar("T")


class _Timed:
    """An `Offload` that adds up what its calls take: wall and CPU inside, wall as the awaiting saga sees it."""

    def __init__(self, inner: Offload) -> None:
        self._inner = inner
        self._lock = threading.Lock()
        self.awaited = self.inside = self.cpu = 0.0

    async def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        before = time.perf_counter()
        try:
            return await self._inner(self._call, function, *args, **kwargs)
        finally:
            self.awaited += time.perf_counter() - before

    def _call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        wall, cpu = time.perf_counter(), time.thread_time()
        try:
            return function(*args, **kwargs)
        finally:
            wall, cpu = time.perf_counter() - wall, time.thread_time() - cpu
            with self._lock:
                self.inside += wall
                self.cpu += cpu


async def _in_memory(sagas: int, steps: int) -> float:
    engine = memory_engine()
    refs = await start(engine, steps, sagas)
    before = time.perf_counter()
    await run_all(engine, refs)
    return sagas * steps / (time.perf_counter() - before)


async def _over_http(sagas: int, steps: int) -> dict[str, float]:
    with aws_engine() as engine:
        refs = await start(engine, steps, sagas)
        timed = _Timed(engine.offload)
        wall, cpu = time.perf_counter(), time.process_time()
        await run_all(replace(engine, offload=timed), refs)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    # Of what a saga waits for its calls, as shares of all sagas' time together; the rest is the engine's.
    whole = sagas * wall
    return {
        "aws": sagas * steps / wall,
        "client": 100 * timed.cpu / cpu,
        "cpu": 100 * cpu / wall,
        "answer": 100 * (timed.inside - timed.cpu) / whole,
        "in client": 100 * timed.cpu / whole,
        "thread": 100 * (timed.awaited - timed.inside) / whole,
        "engine": 100 * (whole - timed.awaited) / whole,
    }


def measure(sagas: int = SAGAS, steps: int = STEPS) -> Sample:
    return {
        "memory": asyncio.run(_in_memory(sagas, steps)),
        **asyncio.run(_over_http(sagas, steps)),
    }


BENCH = Bench(
    "load",
    "20 sagas × 50 steps, one process",
    {
        "memory": Figure(
            "memory adapters",
            "steps/s",
            6_000,
            at_most=False,
            peer="AWS fork in memory 3,191, Restate on disk 880",
            digits=0,
        ),
        "aws": Figure("embedded AWS", "steps/s", at_most=False, digits=0),
        "cpu": Figure("  this process's CPU, of one core", "%", digits=0),
        "client": Figure("  of that CPU: boto3's clients", "%", digits=0),
        "answer": Figure("  a saga's time: waits for the answer, and for its turn in Python", "%", digits=0),
        "in client": Figure("  a saga's time: boto3's clients compute", "%", digits=0),
        "thread": Figure("  a saga's time: to a thread and back", "%", digits=0),
        "engine": Figure("  a saga's time: the engine, the tool, its turn in the event loop", "%", digits=0),
    },
    measure,
    runs=9,
    as_shipped=True,
)
