"""A workflow function: what a step of it costs in memory, and what it costs to run it again from its log."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections.abc import Sequence
from dataclasses import replace

from baton import WorkflowContext, workflow
from baton.adapters.clock import SystemClock
from baton.adapters.memory.log import MemoryLog
from baton.adapters.memory.store import MemoryBlobs
from baton.ports import Message, Record, SagaRef
from baton.runtime.engine.parts import Engine
from baton.runtime.worker.runner import Runner
from baton.tools.define import Registry
from baton.tools.functions import ApplicationFunctions
from baton.tools.functions.define import workflow_documents
from benchmarks.calls import calls_of
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.stage import HOUR_MS, REGISTRY, invocation, memory_engine, run_all, sagas_of, step

SAGAS, STEPS, LONG = 20, 50, 3_000
EPOCH = 1_767_225_600_000
"""A time, in milliseconds."""

FUNCTIONS = Registry()
FUNCTIONS.add(REGISTRY["step"])


@workflow("steps", registry=FUNCTIONS)
async def steps(n: int, length: int, context: WorkflowContext) -> int:
    """One step after the other."""
    for _ in range(length):
        n = (await context.step(step, n))["n"]
    return n


@workflow("interrupted", registry=FUNCTIONS)
async def interrupted(n: int, length: int, context: WorkflowContext) -> int:
    """The same, and a wait in which its worker leaves it."""
    for _ in range(length):
        n = (await context.step(step, n))["n"]
    await context.sleep("1h")
    return n


class _Blobs(MemoryBlobs):
    """Blobs that count what is read."""

    read = 0

    def get(self, tenant: str, ref: str) -> bytes:
        data = super().get(tenant, ref)
        self.read += len(data)
        return data


class _Log(MemoryLog):
    """A log that counts what is read of entries and snapshots."""

    read = 0

    def read_tail(self, ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        records = super().read_tail(ref, branch, after, limit)
        self.read += sum(len(record.data) for record in records)
        return records

    def read_snapshot(self, ref: SagaRef, branch: int, at_most: int) -> Record | None:
        record = super().read_snapshot(ref, branch, at_most)
        self.read += 0 if record is None else len(record.data)
        return record


def _aws_bytes(number: int) -> int:
    """Bytes of a step that is done as AWS's durable SDK reads it, in the list of an invocation's operations.

    Of aws-durable-execution-sdk-python 3.0.0: `Operation.to_json_dict` (lambda_service.py), the id of identifier.py and
    the result as serdes.py writes it; without the spaces.
    """
    result = {"t": "m", "v": {"n": {"t": "i", "v": number}}}
    operation = {
        "Id": hashlib.blake2b(str(number).encode()).hexdigest()[:64],
        "Type": "STEP",
        "Status": "SUCCEEDED",
        "Name": "step",
        "StartTimestamp": EPOCH,
        "EndTimestamp": EPOCH,
        "SubType": "Step",
        "StepDetails": {"Attempt": 1, "Result": json.dumps(result, separators=(",", ":"))},
    }
    return len(json.dumps(operation, separators=(",", ":"))) + len(",")


class _Later(SystemClock):
    """A clock that can be put forward."""

    later = 0

    def now(self) -> int:
        return super().now() + self.later


def _engine(
    log: MemoryLog | None = None, blobs: MemoryBlobs | None = None, clock: SystemClock | None = None
) -> Engine:
    engine = memory_engine(log, registry=FUNCTIONS, blobs=blobs, clock=clock)
    return replace(engine, functions=ApplicationFunctions(FUNCTIONS))


async def _started(engine: Engine, sagas: int, length: int, name: str = "steps") -> list[SagaRef]:
    document = json.dumps(next(one for one in workflow_documents(FUNCTIONS) if one["name"] == name))
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


async def _resumed(length: int) -> tuple[float, float, float]:
    """CPU of the invocation that goes on after so many steps, and of each step that is run again; all bytes that it
    reads, for one.
    """
    log, blobs, clock = _Log(), _Blobs(), _Later()
    engine = _engine(log, blobs, clock)
    (ref,) = await _started(engine, 1, length, "interrupted")
    await Runner(invocation(engine, "first")).run(Message(str(ref), 1), alone=True)
    clock.later, blobs.read, log.read = 2 * HOUR_MS, 0, 0
    before = time.process_time()
    if await Runner(invocation(engine, "second")).run(Message(str(ref), length**2), alone=True) != "finished":
        raise RuntimeError("the saga has not gone on")
    spent = time.process_time() - before
    return spent * 1_000, spent * 1e6 / length, (blobs.read + log.read) / length


def measure(sagas: int = SAGAS, length: int = STEPS, long: int = LONG) -> Sample:
    memory, rate, entries = asyncio.run(_in_memory(sagas, length))
    calls = asyncio.run(_calls(sagas, length))
    resumed, each, read = asyncio.run(_resumed(long))
    return {
        "memory": memory,
        "rate": rate,
        "entries": entries,
        "calls": calls,
        "resumed": resumed,
        "each": each,
        "read": read,
        "aws": sum(map(_aws_bytes, range(1, long + 1))) / long,
    }


BENCH = Bench(
    "function",
    "a workflow function",
    {
        "memory": Figure("CPU per step in memory", "ms", 0.15, cpu=True),
        "rate": Figure("steps a second", ""),
        "entries": Figure("entries for each step, after the start", "", 1.02, digits=2),
        "calls": Figure("  function calls of Python for it", "", digits=0),
        "resumed": Figure(f"going on after {LONG:,} steps without a checkpoint", "ms", digits=0, cpu=True),
        "each": Figure("  of it: each step that is run again", "µs", 20, digits=1, cpu=True),
        "read": Figure("  bytes read for it", "", digits=0),
        "aws": Figure("  bytes that AWS's durable SDK reads for it", "", digits=0),
        "share": Figure("  of these, read here", "×", 0.33, digits=2, ratio=("read", "aws")),
    },
    measure,
    runs=5,
    as_shipped=True,
)
