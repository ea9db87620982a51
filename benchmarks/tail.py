"""How long an invocation goes on after its last write: nothing may idle at the end of a one-step saga."""

from __future__ import annotations

import asyncio
import time
from typing import Any

from baton.adapters.memory.log import MemoryLog
from baton.ports import Release, SagaRef
from baton.runtime.worker.worker import Delivery, Worker
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.stage import invocation, memory_engine, start


class _Stamped(MemoryLog):
    """Notes when the last write was answered."""

    last = 0.0

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        done = super().release(ref, owner, epoch, release)
        self.last = time.perf_counter()
        return done


def _run(nothing: Any) -> tuple[float, float]:
    log = _Stamped()
    engine = memory_engine(log)
    (ref,) = asyncio.run(start(engine, 1, 1))
    worker = Worker(engine, nothing, nothing)
    deliveries = [Delivery("1", f'{{"saga":"{ref}","v":1}}')]
    with asyncio.Runner() as loop:  # as the handler has one for as long as its process lives
        loop.get_loop()
        before = time.perf_counter()
        failed = loop.run(worker.handle(deliveries, invocation(engine, "tail", 60_000).invocation))
        after = time.perf_counter()
    if failed:
        raise RuntimeError("the saga did not finish")
    return (after - log.last) * 1_000, (after - before) * 1_000


def measure() -> Sample:
    tail, whole = _run(None)
    return {"tail": tail, "whole": whole}


BENCH = Bench(
    "tail",
    "a one-step saga's invocation",
    {
        "tail": Figure("from its last write to its end", "ms", 5, peer="AWS durable SDK idles about 100 ms"),
        "whole": Figure("all of it, on memory adapters", "ms"),
    },
    measure,
    runs=20,
)
