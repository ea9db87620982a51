"""A workflow function: what a step of it costs in memory, and what it costs to run it again from its log."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import replace

from baton import WorkflowContext, workflow
from baton.adapters.memory.store import MemoryBlobs
from baton.ports import SagaRef
from baton.runtime.engine.parts import Engine
from baton.tools.define import Registry
from baton.tools.functions import ApplicationFunctions
from baton.tools.functions.define import workflow_documents
from benchmarks.calls import calls_of
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.stage import REGISTRY, memory_engine, run_all, sagas_of, step

SAGAS, STEPS, LONG = 20, 50, 3_000

FUNCTIONS = Registry()
FUNCTIONS.add(REGISTRY["step"])


@workflow("steps", registry=FUNCTIONS)
async def steps(n: int, length: int, context: WorkflowContext) -> int:
    """One step after the other."""
    for _ in range(length):
        n = (await context.step(step, n))["n"]
    return n


def _engine(blobs: MemoryBlobs | None = None) -> Engine:
    engine = memory_engine(registry=FUNCTIONS, blobs=blobs)
    return replace(engine, functions=ApplicationFunctions(FUNCTIONS))


async def _started(engine: Engine, sagas: int, length: int) -> list[SagaRef]:
    document = json.dumps(next(workflow_documents(FUNCTIONS)))
    return await sagas_of(engine, document, {"n": 0, "length": length}, sagas)


async def _in_memory(sagas: int, length: int) -> tuple[float, float, float]:
    """CPU per step, steps a second, and entries after the start for each step."""
    engine = _engine()
    refs = await _started(engine, sagas, length)
    before, began = time.process_time(), time.perf_counter()
    await run_all(engine, refs)
    spent, lasted = time.process_time() - before, time.perf_counter() - began
    entries = len(engine.log.read_tail(refs[0], 0, 0)) - 1
    return spent * 1_000 / (sagas * length), sagas * length / lasted, entries / length


async def _calls(sagas: int, length: int) -> float:
    engine = _engine()
    await run_all(engine, await _started(engine, sagas, length))
    return await calls_of(run_all(engine, await _started(engine, sagas, length))) / (sagas * length)


def measure(sagas: int = SAGAS, length: int = STEPS) -> Sample:
    memory, rate, entries = asyncio.run(_in_memory(sagas, length))
    return {"memory": memory, "rate": rate, "entries": entries, "calls": asyncio.run(_calls(sagas, length))}


BENCH = Bench(
    "function",
    "a workflow function",
    {
        "memory": Figure("CPU per step in memory", "ms", 0.15, cpu=True),
        "rate": Figure("steps a second", ""),
        "entries": Figure("entries for each step, after the start", "", 1.02, digits=2),
        "calls": Figure("function calls of Python for a step", "", digits=0),
    },
    measure,
    runs=5,
    as_shipped=True,
)
