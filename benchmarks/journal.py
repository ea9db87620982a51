"""Units of a tool's work: what each costs in memory and in the log, and what a further attempt pays for those before."""

from __future__ import annotations

import asyncio
import time

from baton import Context, StepFailure, tool
from baton.adapters.clock import SystemClock
from baton.ports import Message, SagaRef
from baton.runtime.engine.parts import Engine
from baton.runtime.worker.runner import Runner
from baton.tools.define import Registry
from benchmarks.calls import calls_of
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.stage import HOUR_MS, invocation, memory_engine, run_all, sagas_of

SAGAS, UNITS, LONG = 20, 50, 1_000
TOOLS = Registry()


@tool("units", registry=TOOLS, timeout="10m")
async def units(count: int, fails: bool, context: Context) -> int:
    """Do so many units; in the first attempt fail behind them, if that is asked for."""
    for number in range(count):
        await context.once(f"unit {number}", str, number)
    if fails and context.attempt == 1:
        raise StepFailure("service_unavailable", "try again")
    return count


class _Later(SystemClock):
    """A clock that can be put forward."""

    later = 0

    def now(self) -> int:
        return super().now() + self.later


def _engine(clock: SystemClock | None = None) -> Engine:
    return memory_engine(registry=TOOLS, clock=clock)


async def _started(engine: Engine, sagas: int, count: int, *, fails: bool = False) -> list[SagaRef]:
    step = f"{{tool: units, with: {{count: {count}, fails: {str(fails).lower()}}}, retry: {{base: 1h}}}}"
    return await sagas_of(engine, f"name: w\nnodes: {{a: {step}}}", {}, sagas)


async def _in_memory(sagas: int, count: int) -> tuple[float, float, float]:
    """CPU per unit, units a second, and entries for each."""
    engine = _engine()
    refs, nothing = await _started(engine, sagas, count), await _started(engine, sagas, 0)
    before = time.process_time()
    await run_all(engine, nothing)
    step = time.process_time() - before
    before, began = time.process_time(), time.perf_counter()
    await run_all(engine, refs)
    spent, lasted = time.process_time() - before - step, time.perf_counter() - began
    entries = len(engine.log.read_tail(refs[0], 0, 0)) - 2
    return spent * 1_000 / (sagas * count), sagas * count / lasted, entries / count


async def _calls(sagas: int, count: int) -> float:
    engine = _engine()
    await run_all(engine, await _started(engine, sagas, count))
    some = await calls_of(run_all(engine, await _started(engine, sagas, count)))
    none = await calls_of(run_all(engine, await _started(engine, sagas, 0)))
    return (some - none) / (sagas * count)


async def _again(count: int) -> float:
    """CPU of a further attempt for each unit that the log has: its worker has not seen them."""
    spent = []
    for number in (count, 0):
        clock = _Later()
        engine = _engine(clock)
        (ref,) = await _started(engine, 1, number, fails=True)
        await Runner(invocation(engine, "first")).run(Message(str(ref), 1), alone=True)
        clock.later = 2 * HOUR_MS
        before = time.process_time()
        how = await Runner(invocation(engine, "second")).run(Message(str(ref), 10**6), alone=True)
        spent.append(time.process_time() - before)
        if how != "finished":
            raise RuntimeError("the saga has not gone on")
    return (spent[0] - spent[1]) * 1e6 / count


def measure(sagas: int = SAGAS, count: int = UNITS, long: int = LONG) -> Sample:
    memory, rate, entries = asyncio.run(_in_memory(sagas, count))
    return {
        "memory": memory,
        "rate": rate,
        "entries": entries,
        "calls": asyncio.run(_calls(sagas, count)),
        "again": asyncio.run(_again(long)),
    }


BENCH = Bench(
    "journal",
    "units of a tool's work (`context.once`)",
    {
        "memory": Figure("CPU per unit in memory", "ms", 0.15, cpu=True),
        "rate": Figure("units a second", ""),
        "entries": Figure("entries for each unit", "", 1, digits=2),
        "calls": Figure("  function calls of Python for it", "", digits=0),
        "again": Figure(
            f"each of {LONG:,} units that a further attempt reads back", "µs", 50, digits=1, cpu=True
        ),
    },
    measure,
    runs=5,
    as_shipped=True,
)
