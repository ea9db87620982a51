"""Pure steps between two that act: what they add to a saga, in log writes, dollars and CPU."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from baton.adapters.aws import Aws
from baton.core.read.costs import bill, total_of
from benchmarks.cost import SAGAS, metered, usage_of
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.lifetime import Deployment
from benchmarks.stage import chain_of, memory_engine, run_all, sagas_of
from tests.kit import ministack
from tests.kit.meter import TABLE, Meter

STEPS = 10
MANY = 1_000  # in one invocation


def _between(pure: int) -> str:
    """A step that acts, so many that do not, and one that acts."""
    document, last = chain_of(pure + 2, "look"), f"s{pure + 1}"
    for name in ("s0", last):
        document = document.replace(f"  {name}: {{tool: look", f"  {name}: {{tool: step")
    return document


async def _life(endpoint: str, pure: int) -> tuple[float, float]:
    """Log entries of a saga, and its dollars, all in."""
    plain, aws = Deployment(Aws(endpoint), f"plain{pure}"), Aws(endpoint)
    await plain.prepare_for(_between(pure))
    lives = [await plain.live(MANY) for _ in range(SAGAS)]
    watched, meter = Deployment(aws, TABLE), Meter(aws)
    await watched.prepare_for(_between(pure))
    found = await metered(watched, meter, MANY)
    return found.entries, total_of(bill(usage_of(found, lives)))


async def _in_memory(sagas: int, pure: int) -> float:
    engine = memory_engine()
    refs = await sagas_of(engine, chain_of(pure, "look"), {"n": 0}, sagas)
    before = time.process_time()
    await run_all(engine, refs)
    return (time.process_time() - before) * 1_000 / (sagas * pure)


def measure() -> Sample:
    memory = asyncio.run(_in_memory(20, 50))
    with tempfile.TemporaryDirectory() as folder, ministack.running(Path(folder)) as endpoint:
        entries, usd = asyncio.run(_life(endpoint, 0))
    with tempfile.TemporaryDirectory() as folder, ministack.running(Path(folder)) as endpoint:
        more_entries, more_usd = asyncio.run(_life(endpoint, STEPS))
    return {
        "writes": more_entries - entries,
        "usd": (more_usd - usd) / STEPS * 1_000_000,
        "memory": memory,
    }


BENCH = Bench(
    "pure",
    f"{STEPS} pure steps between two that act",
    {
        "writes": Figure("log writes that they add", "", 2, digits=0),
        "usd": Figure("all that they add", "$ / million", 0.5, digits=2),
        "memory": Figure("CPU per pure step in memory", "ms", cpu=True),
    },
    measure,
    runs=3,
)
