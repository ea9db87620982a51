"""20 sagas of 50 steps in one process: steps per second on memory adapters and on the embedded AWS."""

from __future__ import annotations

import asyncio
import time

from benchmarks.figures import Bench, Figure, Sample
from benchmarks.stage import aws_engine, memory_engine, run_all, start

SAGAS, STEPS = 20, 50


def measure() -> Sample:
    async def in_memory() -> float:
        engine = memory_engine()
        refs = await start(engine, STEPS, SAGAS)
        before = time.perf_counter()
        await run_all(engine, refs)
        return SAGAS * STEPS / (time.perf_counter() - before)

    async def over_http() -> tuple[float, float]:
        with aws_engine() as (engine, _):
            refs = await start(engine, STEPS, SAGAS)
            before, cpu = time.perf_counter(), time.process_time()
            await run_all(engine, refs)
            wall = time.perf_counter() - before
            return SAGAS * STEPS / wall, 100 * (time.process_time() - cpu) / wall

    aws, own = asyncio.run(over_http())
    return {"memory": asyncio.run(in_memory()), "aws": aws, "own": own}


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
        "own": Figure("of that time, this process (the rest waits for the embedded AWS)", "%", digits=0),
    },
    measure,
)
