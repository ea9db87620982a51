"""Which tests together take every branch of the core: conftest.py lets them run first, and measures the others only if they no longer do.

`python -m tests.core.covering` measures all tests one by one, and chooses anew, into covering.json.
"""

from __future__ import annotations

import heapq
import json
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Set
from contextlib import closing
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOM = "tests/core/"
CHOSEN = Path(__file__).with_suffix(".json")
DATA = "build/covering"
MEASURING = ("--cov", "--cov-context=test", "--cov-report=", "--cov-fail-under=0", "-p", "no:xdist")
_EACH = 500  # what a test costs beside the ways that it takes

Way = tuple[str, int, int]
"""In a file, from one line to another; a line itself is a way from 0."""


def covering() -> frozenset[str]:
    """The names of these tests, as pytest has them."""
    files: dict[str, list[str]] = json.loads(CHOSEN.read_text("utf-8"))
    return frozenset(f"{ROOM}{file}::{name}" for file, names in files.items() for name in names)


def chosen(ways: Mapping[str, Set[Way]]) -> list[str]:
    """So few of these tests that together they take every way that any of them takes."""
    left = set[Way]().union(*ways.values())
    queue = [(-len(taken) / (_EACH + len(taken)), name) for name, taken in ways.items()]
    heapq.heapify(queue)
    found = []
    while left:
        _, name = heapq.heappop(queue)
        worth = -len(ways[name] & left) / (_EACH + len(ways[name]))
        if worth and queue and worth > queue[0][0]:  # others have taken some of them: its turn is later
            heapq.heappush(queue, (worth, name))
        elif worth:
            found.append(name)
            left -= ways[name]
    times = Counter(way for name in found for way in ways[name])
    for name in found.copy():
        if all(times[way] > 1 for way in ways[name]):
            times.subtract(ways[name])
            found.remove(name)
    return sorted(found)


def _measured() -> dict[str, set[Way]]:
    """Of each test the lines and the branches that it takes. What an import takes is no test's."""
    with closing(sqlite3.connect(ROOT / DATA)) as data:
        arcs = data.execute(
            "select context, path, fromno, tono from arc"
            " join context on context.id = context_id join file on file.id = file_id"
        ).fetchall()
    ends = defaultdict[tuple[str, int], set[int]](set)
    for _, file, start, end in arcs:
        ends[file, start].add(end)
    found = defaultdict[str, set[Way]](set)
    for context, file, start, end in arcs:
        test = found[context.rpartition("|")[0]]
        test.add((file, 0, end))
        if len(ends[file, start]) > 1:
            test.add((file, start, end))
    imported = found.pop("", set())
    return {test: taken - imported for test, taken in found.items()}


def main() -> None:
    """Measure all and choose."""
    command = [sys.executable, "-m", "pytest", "-q", *MEASURING, ROOM]
    subprocess.run(["env", f"COVERAGE_FILE={DATA}", *command], cwd=ROOT, check=True)
    files = defaultdict[str, list[str]](list)
    for test in chosen(_measured()):
        file, _, name = test.removeprefix(ROOM).partition("::")
        files[file].append(name)
    CHOSEN.write_text(json.dumps(files, indent=1, sort_keys=True) + "\n", "utf-8")


if __name__ == "__main__":
    main()
