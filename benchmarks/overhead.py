"""What the engine adds to a step: CPU of this process, with memory adapters and with boto3 over loopback."""

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
        before = time.process_time()
        await run_all(engine, refs)
        return (time.process_time() - before) * 1_000 / (SAGAS * STEPS)

    async def over_http() -> float:
        with aws_engine() as (engine, _):
            refs = await start(engine, STEPS, 4)
            before = time.process_time()
            await run_all(engine, refs)
            return (time.process_time() - before) * 1_000 / (4 * STEPS)

    return {"memory": asyncio.run(in_memory()), "boto3": asyncio.run(over_http())}


BENCH = Bench(
    "overhead",
    "engine CPU per step",
    {
        "memory": Figure(
            "without AWS",
            "ms",
            0.15,
            peer="AWS durable SDK 0.32-0.56, LangGraph SQLite 1.4, DBOS SQLite 1.9, Restate 2.1",
        ),
        "boto3": Figure("with boto3 over loopback HTTP", "ms", 1.5, peer="AWS durable SDK 3.5"),
    },
    measure,
)
