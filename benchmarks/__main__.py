"""`python -m benchmarks [NAME ...] [--check]`: run benches, print their tables, write build/bench/<name>.json."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from datetime import UTC, datetime
from functools import partial
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks import shipped
from benchmarks.calibration import beside
from benchmarks.figures import Bench, Result

NAMES = (
    "cost",
    "overhead",
    "function",
    "journal",
    "pure",
    "growth",
    "decide",
    "agent",
    "fanout",
    "map",
    "compile",
    "memory",
    "tail",
    "start",
    "load",
    "neighbours",
    "schedule",
    "money",
    "recovery",
    "scale",
)
FOLDER = Path("build/bench")


def load(name: str) -> Bench:
    bench: Bench = import_module(f"benchmarks.{name}").BENCH
    return bench


def run(bench: Bench) -> Result:
    """All runs of a bench."""
    if bench.as_shipped:
        return Result(bench, shipped.measure(bench.name, bench.runs))
    measure = partial(beside, bench.measure) if bench.has_cpu else bench.measure
    return Result(bench, [measure() for _ in range(bench.runs)])


def where() -> dict[str, object]:
    """The machine, and how busy it was: more than its number of processors means that figures are too high."""
    return {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
    }


def show(result: Result, console: Console) -> None:
    bench = result.bench
    table = Table(title=f"{bench.name}: {bench.title} ({len(result.samples)} runs)", title_justify="left")
    for column in ("figure", "best", "median", "unit", "loops", "target", "", "peers"):
        table.add_column(column, justify="right" if column in {"best", "median", "loops"} else "left")
    for row in result.rows():
        table.add_row(*row)
    console.print(table)
    if result.loop is not None:
        console.print(
            f"one loop of benchmarks/calibration.py: {result.loop:.3f} ms of CPU; CPU is judged in loops"
        )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all without one")
    parser.add_argument("--check", action="store_true", help="exit 1 when a figure misses its target")
    options = parser.parse_args(arguments)
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no such bench: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]  # no account is measured, whatever the shell is logged in to
    os.environ.update(shipped.ENVIRONMENT)
    console = Console(width=None if sys.stdout.isatty() else 160)
    missed = []
    for name in options.names or NAMES:
        result = run(load(name))
        show(result, console)
        machine = where()
        console.print(" · ".join(f"{key} {value}" for key, value in machine.items()), style="dim")
        result.save(FOLDER, machine)
        missed += [f"{name}.{key}" for key in result.misses]
    if missed:
        console.print(f"missed: {', '.join(missed)}")
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
