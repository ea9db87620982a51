"""What the engine adds to a step: CPU of this process, with memory adapters and with boto3's clients over loopback."""

from __future__ import annotations

import asyncio
import time

from baton.ports import Record, SagaRef
from benchmarks.calls import calls_of
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.stage import aws_engine, memory_engine, run_all, start

SAGAS, STEPS = 20, 50
HTTP_SAGAS = 4
CALLS = 200


async def _in_memory(sagas: int, steps: int) -> float:
    engine = memory_engine()
    refs = await start(engine, steps, sagas)
    before = time.process_time()
    await run_all(engine, refs)
    return (time.process_time() - before) * 1_000 / (sagas * steps)


async def _calls(sagas: int, steps: int) -> float:
    """Function calls per step; the first run leaves behind it what is worked out once in a process."""
    engine = memory_engine()
    await run_all(engine, await start(engine, steps, sagas))
    return await calls_of(run_all(engine, await start(engine, steps, sagas))) / (sagas * steps)


async def _over_http(sagas: int, steps: int, calls: int) -> tuple[float, float, float]:
    """CPU per step; of one log write alone, called directly; and of handing a call to a thread and back."""
    with aws_engine() as engine:
        refs = await start(engine, steps, sagas)
        before = time.process_time()
        await run_all(engine, refs)
        step = (time.process_time() - before) * 1_000 / (sagas * steps)
        ref, data = SagaRef("bench", "alone"), b'{"filler":"%s"}' % (b"x" * 500)
        before = time.process_time()
        for version in range(1, calls + 1):
            engine.log.append(ref, Record(0, version, data))
        write = (time.process_time() - before) * 1_000 / calls
        before = time.process_time()
        for _ in range(calls):
            await engine.offload(int)
        return step, write, (time.process_time() - before) * 1_000 / calls


def measure(
    sagas: int = SAGAS, http_sagas: int = HTTP_SAGAS, steps: int = STEPS, calls: int = CALLS
) -> Sample:
    # First: what boto3's clients leave on the heap, those of the set-up among them, is no part of it.
    memory = asyncio.run(_in_memory(sagas, steps))
    counted = asyncio.run(_calls(sagas, steps))
    step, write, thread = asyncio.run(_over_http(http_sagas, steps, calls))
    return {
        "memory": memory,
        "calls": counted,
        "boto3": step,
        "write": write,
        "thread": thread,
    }


BENCH = Bench(
    "overhead",
    "engine CPU per step",
    {
        "memory": Figure(
            "without AWS",
            "ms",
            0.1,
            peer="AWS durable SDK 0.32-0.56, LangGraph SQLite 1.4, DBOS SQLite 1.9, Restate 2.1",
            cpu=True,
        ),
        "calls": Figure("  function calls of Python for it", "", 470, digits=0),
        "boto3": Figure("with boto3 over loopback HTTP", "ms", peer="AWS durable SDK 3.5", cpu=True),
        "write": Figure("  of it: one log write, by boto3's client alone", "ms", cpu=True),
        "ratio": Figure("with boto3, against one log write", "×", 2.2, digits=2, ratio=("boto3", "write")),
        "thread": Figure("  of it: a call to a thread and back, with nothing in it", "ms", cpu=True),
    },
    measure,
    runs=9,
    as_shipped=True,
)
