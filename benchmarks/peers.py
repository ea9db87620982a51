"""A workflow function beside the same one in DBOS and in LangGraph: `make peers` installs them apart, and measures all in one run.

Each measures itself in a process of its own: Baton and LangGraph keep their state in memory, DBOS in a SQLite file
in memory, which is the least that it takes. A step adds one to a number. `each` is what a step costs that is in the
log already when a workflow goes on after an interruption.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

SAGAS, STEPS, LONG, SHORT = 20, 50, 3_000, 50
RUNS = 3
SHARED = Path("/dev/shm")  # noqa: S108  # a folder in memory, where there is one
FOLDER = SHARED if SHARED.is_dir() else None


async def _rounds(step: Any, length: int) -> int:
    n = 0
    for _ in range(length):
        n = await step(n)
    return n


async def _add(n: int) -> int:
    return n + 1


def _per_step(cpu_s: float, wall_s: float, resumed: dict[int, float]) -> dict[str, float]:
    return {
        "memory": cpu_s * 1_000 / (SAGAS * STEPS),
        "rate": SAGAS * STEPS / wall_s,
        "resumed": resumed[LONG] * 1_000,
        "each": (resumed[LONG] - resumed[SHORT]) * 1e6 / (LONG - SHORT),
    }


def baton() -> dict[str, float]:
    from benchmarks.function import measure

    found = measure(SAGAS, STEPS, LONG)
    return {name: found[name] for name in ("memory", "rate", "resumed", "each")}


def langgraph() -> dict[str, float]:
    func, types = importlib.import_module("langgraph.func"), importlib.import_module("langgraph.types")
    saver = importlib.import_module("langgraph.checkpoint.memory").InMemorySaver()
    step = func.task(_add)

    async def chain(length: int) -> int:
        return await _rounds(step, length)

    async def stopped(length: int) -> int:
        n = await _rounds(step, length)
        types.interrupt("until it goes on")
        return n

    async def main() -> dict[str, float]:
        plain, stops = (func.entrypoint(checkpointer=saver)(one) for one in (chain, stopped))

        def config(name: str) -> dict[str, Any]:
            return {"configurable": {"thread_id": name}, "recursion_limit": 100_000}

        await plain.ainvoke(1, config("first"))
        cpu, wall = time.process_time(), time.perf_counter()
        await asyncio.gather(*(plain.ainvoke(STEPS, config(str(number))) for number in range(SAGAS)))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
        resumed = {}
        for length in (SHORT, LONG):
            await stops.ainvoke(length, config(f"of {length}"))
            before = time.process_time()
            await stops.ainvoke(types.Command(resume=True), config(f"of {length}"))
            resumed[length] = time.process_time() - before
        return _per_step(cpu, wall, resumed)

    return asyncio.run(main())


def dbos() -> dict[str, float]:
    cpu, wall = _dbos("run", STEPS)
    resumed = {}
    for length in (SHORT, LONG):
        with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
            _apart("_dbos", "start", str(length), folder)
            resumed[length] = _apart("_dbos", "go on", str(length), folder)[0]
    return _per_step(cpu, wall, resumed)


def _dbos(what: str, length: int, folder: str = "") -> tuple[float, float]:
    """CPU and seconds of what is measured. An interrupted workflow leaves its process, and goes on in another one."""
    module = importlib.import_module("dbos")
    engine = module.DBOS
    folder = folder or tempfile.mkdtemp(dir=FOLDER)
    engine(
        config=module.DBOSConfig(
            name="bench",
            system_database_url=f"sqlite:///{folder}/db",
            log_level="ERROR",
            run_admin_server=False,
            application_version="1",
        )
    )
    step = engine.step()(_add)

    @engine.workflow()  # type: ignore[untyped-decorator]  # the package is not installed here
    async def chain(length: int) -> int:
        return await _rounds(step, length)

    @engine.workflow()  # type: ignore[untyped-decorator]  # as above
    async def stopped(length: int) -> int:
        n = await _rounds(step, length)
        await engine.recv_async("go", timeout_seconds=3_600)
        return n

    async def main() -> tuple[float, float]:
        cpu, wall = time.process_time(), time.perf_counter()
        engine.launch()
        if what == "run":
            await chain(1)
            cpu, wall = time.process_time(), time.perf_counter()
            await asyncio.gather(*(chain(length) for _ in range(SAGAS)))
        elif what == "start":
            with module.SetWorkflowID("one"):
                await engine.start_workflow_async(stopped, length)
            while len(await engine.list_workflow_steps_async("one")) < length:  # noqa: ASYNC110  # it tells no one
                await asyncio.sleep(0.1)
        else:
            handle = await engine.retrieve_workflow_async("one")
            await engine.send_async("one", True, "go")
            await handle.get_result()
        return time.process_time() - cpu, time.perf_counter() - wall

    return asyncio.run(main())


def _apart(name: str, *arguments: str, python: str = sys.executable) -> Any:
    """Return the result of a function of this file, run in a process of its own."""
    done = subprocess.run(
        [python, "-m", "benchmarks.peers", name, *arguments], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def _compare(python: str) -> None:
    import rich
    from rich.table import Table

    found: dict[str, list[dict[str, float]]] = {"baton": [], "langgraph": [], "dbos": []}
    for _ in range(RUNS):  # in turns, so that a busy machine disturbs all of them
        for name, samples in found.items():
            samples.append(_apart(name, python=sys.executable if name == "baton" else python))
    table = Table(
        "figure", *found, title=f"{SAGAS} × {STEPS} steps, and {LONG:,} in one; best of {RUNS} (median)"
    )
    for key, what in {
        "memory": "CPU per step, ms",
        "rate": "steps a second",
        "resumed": f"going on after {LONG:,} steps, CPU ms",
        "each": "of it: each step, µs",
    }.items():
        cells = []
        for samples in found.values():
            values = [sample[key] for sample in samples]
            best = max(values) if key == "rate" else min(values)
            cells.append(
                f"{best:,.3g} ({median(values):,.3g})"
                if best < 1_000
                else f"{best:,.0f} ({median(values):,.0f})"
            )
        table.add_row(what, *cells)
    rich.print(table)


def main() -> None:
    name, *arguments = sys.argv[1:]
    if name == "compare":
        _compare(str(Path(arguments[0]).absolute()))
        return
    if name == "_dbos":
        what, length, *folder = arguments
        result: Any = _dbos(what, int(length), *folder)
    else:
        result = {"baton": baton, "langgraph": langgraph, "dbos": dbos}[name]()
    print(json.dumps(result), flush=True)
    os._exit(0)  # a workflow that was interrupted is not waited for


if __name__ == "__main__":
    main()
