"""Chains of growing length with a yield every 5 steps: what a step and a resume cost must not grow."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from baton.adapters.memory.log import MemoryLog
from baton.ports import Message, Record, SagaRef
from baton.runtime.invocation.context import Deadline
from baton.runtime.worker.runner import YIELDED, Runner
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.stage import invocation, memory_engine, start

LENGTHS = (50, 100, 500, 1_000, 3_000)
EVERY = 5


class CountingLog(MemoryLog):
    """Counts what is read back, in entries and bytes, snapshots included."""

    def __init__(self) -> None:
        super().__init__()
        self.entries = self.bytes = 0

    def read_tail(self, ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        records = super().read_tail(ref, branch, after, limit)
        self.entries += len(records)
        self.bytes += sum(len(record.data) for record in records)
        return records

    def read_snapshot(self, ref: SagaRef, branch: int, at_most: int) -> Record | None:
        record = super().read_snapshot(ref, branch, at_most)
        self.bytes += len(record.data) if record else 0
        return record


class _FiveSteps(Deadline, frozen=True):
    """A deadline that is used up after five steps, whatever the time."""

    steps = 0

    def fits(self, now: int, expected: float) -> bool:
        _FiveSteps.steps += 1
        return _FiveSteps.steps <= EVERY

    def is_fresh(self, now: int) -> bool:
        return False


async def _run(length: int) -> tuple[float, float, float]:
    log = CountingLog()
    engine = memory_engine(log)
    (ref,) = await start(engine, length, 1)
    log.entries = log.bytes = 0
    resumes = 0
    before = time.process_time()
    ending = YIELDED
    while ending == YIELDED:
        resumes += 1
        parts = invocation(engine, f"i{resumes}")
        _FiveSteps.steps = 0
        deadline = _FiveSteps(parts.invocation.started, parts.invocation.deadline, 1_000)
        ending = await Runner(parts, deadline).run(Message(str(ref), 1), alone=True)
    cpu = (time.process_time() - before) * 1_000 / length
    return cpu, log.entries / resumes, log.bytes / resumes


def measure(lengths: Sequence[int] = LENGTHS) -> Sample:
    results = {length: asyncio.run(_run(length)) for length in lengths}
    sample: dict[str, float] = {}
    for length, (cpu, entries, size) in results.items():
        sample |= {f"cpu{length}": cpu, f"entries{length}": entries, f"bytes{length}": size}
    return sample


_PEER = {
    "cpu": "AWS durable SDK grows from 1.3 to 6.1 ms",
    "entries": "AWS durable SDK re-reads 120,801 at 1,000",
}
_UNITS = {
    "cpu": ("CPU per step", "ms", 3),
    "entries": ("entries read per resume", "", 1),
    "bytes": ("bytes read per resume", "B", 0),
}

BENCH = Bench(
    "growth",
    f"chains of {', '.join(f'{n:,}' for n in LENGTHS)} steps, a yield every {EVERY}",
    {
        **{
            f"{what}{length}": Figure(f"{name}, {length:,} steps", unit, digits=digits, cpu=what == "cpu")
            for what, (name, unit, digits) in _UNITS.items()
            for length in LENGTHS
        },
        **{
            f"{what} ratio": Figure(
                f"{name}: {LENGTHS[-1]:,} steps against {LENGTHS[0]}",
                "×",
                1.5,
                peer=_PEER.get(what, ""),
                digits=2,
                ratio=(f"{what}{LENGTHS[-1]}", f"{what}{LENGTHS[0]}"),
            )
            for what, (name, _, _) in _UNITS.items()
        },
    },
    measure,
    runs=3,
)
