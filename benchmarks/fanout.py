"""50 branches in one saga: what settles together is written together, and no branch waits for another."""

from __future__ import annotations

import asyncio
import time

from baton.adapters.memory.log import MemoryLog
from baton.core.log.codec import decode_entry
from baton.ports import SagaRef
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.stage import memory_engine, run_all, sagas_of

BRANCHES = 50


def fan_of(branches: int) -> str:
    """One step, `branches` steps that read it, and one that waits for all of them."""
    lines = ["name: fan", "nodes:", "  first: {tool: step, with: {n: '${input.n}'}}"]
    lines += [
        f"  b{i}: {{tool: step, after: first, with: {{n: '${{ctx.first.output.n}}'}}}}"
        for i in range(branches)
    ]
    names = ", ".join(f"b{i}" for i in range(branches))
    lines.append(f"  last: {{tool: step, after: [{names}], with: {{n: '${{ctx.b0.output.n}}'}}}}")
    return "\n".join(lines)


async def _run(branches: int) -> tuple[float, int, int]:
    log = MemoryLog()
    engine = memory_engine(log)
    (warm,) = await sagas_of(engine, fan_of(branches), {"n": 0}, 1)
    await run_all(engine, [warm], "warm")
    (ref,) = await sagas_of(engine, fan_of(branches), {"n": 0}, 1)
    before = time.perf_counter()
    await run_all(engine, [ref])
    took = (time.perf_counter() - before) * 1_000
    sizes = _settled(log, ref)
    return took, len(sizes), max(sizes)


def _settled(log: MemoryLog, ref: SagaRef) -> list[int]:
    """How many steps each entry of the log holds."""
    entries = [decode_entry(record.data) for record in log.read_tail(ref, 0, 0)]
    return [sum(hasattr(event, "emits") for event in entry.events) for entry in entries]


def measure(branches: int = BRANCHES) -> Sample:
    took, writes, most = asyncio.run(_run(branches))
    return {"latency": took, "writes": writes, "together": most}


BENCH = Bench(
    "fanout",
    f"{BRANCHES} branches in one saga, on memory adapters",
    {
        "latency": Figure("from the wake to the end", "ms", 20, peer="Restate 28 ms"),
        "writes": Figure(
            "log writes, start and end included", "", 5, digits=0, peer="AWS durable SDK 1 call"
        ),
        "together": Figure("steps in the largest entry", "", BRANCHES, at_most=False, digits=0),
    },
    measure,
    runs=20,
)
