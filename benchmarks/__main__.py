"""`python -m benchmarks [NAME ...] [--check]`: run benches, print their tables, write build/bench/<name>.json."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.figures import Bench, Result

NAMES = ("overhead", "growth", "tail", "start", "load")
FOLDER = Path("build/bench")


def load(name: str) -> Bench:
    bench: Bench = import_module(f"benchmarks.{name}").BENCH
    return bench


def show(result: Result, console: Console) -> None:
    bench = result.bench
    table = Table(title=f"{bench.name}: {bench.title} ({len(result.samples)} runs)", title_justify="left")
    for column in ("figure", "best", "median", "unit", "target", "", "peers"):
        table.add_column(column, justify="right" if column in {"best", "median"} else "left")
    for row in result.rows():
        table.add_row(*row)
    console.print(table)


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(NAMES)}; all without one")
    parser.add_argument("--check", action="store_true", help="exit 1 when a figure misses its target")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in NAMES]
    if unknown:
        parser.error(f"no such bench: {', '.join(unknown)}; there are {', '.join(NAMES)}")
    console = Console(width=None if sys.stdout.isatty() else 160)
    missed = []
    for name in options.names or NAMES:
        bench = load(name)
        result = Result(bench, [bench.measure() for _ in range(bench.runs)])
        show(result, console)
        result.save(FOLDER)
        missed += [f"{name}.{key}" for key in result.misses]
    if missed:
        console.print(f"missed: {', '.join(missed)}")
    return 1 if missed and options.check else 0


if __name__ == "__main__":
    sys.exit(main())
