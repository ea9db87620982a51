"""How long an invocation goes on after its last write: nothing may idle at the end of a one-step saga."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from baton.adapters.memory import MemoryLog
from baton.ports import Release, SagaRef
from baton.runtime.worker import Delivery, Worker
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.stage import invocation, memory_engine, start


class _Stamped(MemoryLog):
    """Notes when the last write was answered."""

    last = 0.0

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        done = super().release(ref, owner, epoch, release)
        self.last = time.perf_counter()
        return done


async def _run(nothing: Any) -> float:
    log = _Stamped()
    engine = memory_engine(log)
    (ref,) = await start(engine, 1, 1)
    worker = Worker(engine, nothing, nothing)
    parts = invocation(engine, "tail", 60_000)
    failed = await worker.handle([Delivery("1", f'{{"saga":"{ref}","v":1}}')], parts.invocation)
    if failed:
        raise RuntimeError("the saga did not finish")
    return (time.perf_counter() - log.last) * 1_000


def measure() -> Sample:
    return {"tail": asyncio.run(_run(None))}


BENCH = Bench(
    "tail",
    "a one-step saga's invocation",
    {"tail": Figure("from its last write to its end", "ms", 5, peer="AWS durable SDK idles about 100 ms")},
    measure,
    runs=20,
)
