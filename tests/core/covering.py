"""Which tests together take every branch of the core: conftest.py lets them run first, and measures the others only if they no longer do.

With them go all tests of a file that has others now than when they were chosen: a new branch is mostly covered by a new test.

`python -m tests.core.covering` measures all tests one by one, and chooses anew, into covering.json. It then runs the chosen ones, and
keeps what they covered, into covered.json (covered.py).
"""

from __future__ import annotations

import heapq
import json
import os
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from tests.core.covered import keep

ROOT = Path(__file__).parents[2]
ROOM = "tests/core/"
CHOSEN = Path(__file__).with_suffix(".json")
DATA = "build/covering"
TIMES = ROOT / "build/covering.json"
MEASURING = (
    "--cov",
    "--cov-context=test",
    "--cov-report=",
    "--cov-fail-under=0",
    "-p",
    "no:xdist",
    "-p",
    "tests.core.covering",
)

Way = tuple[str, int, int]
"""In a file, from one line to another; a line itself is a way from 0."""


def covering(names: Iterable[str]) -> frozenset[str]:
    """Which of all tests, by the names that pytest has for them, are those: the chosen ones, and each of a file that has other tests than then."""
    known: dict[str, dict[str, Any]] = json.loads(CHOSEN.read_text("utf-8"))
    found = set[str]()
    for file, tests in _by_file(names).items():
        then = known.get(file, {})
        chosen_then = {f"{ROOM}{file}::{name}" for name in then.get("covering", ())}
        found |= (
            chosen_then
            if then.get("tests") == _digest(tests)
            else {f"{ROOM}{file}::{name}" for name in tests}
        )
    return frozenset(found)


def _by_file(names: Iterable[str]) -> dict[str, list[str]]:
    files = defaultdict[str, list[str]](list)
    for test in sorted(names):
        file, _, name = test.removeprefix(ROOM).partition("::")
        files[file].append(name)
    return files


def _digest(tests: Sequence[str]) -> str:
    return sha256("\n".join(tests).encode()).hexdigest()[:8]


def as_file(names: Iterable[str], chosen: Iterable[str]) -> str:
    """The text of covering.json: of each file which tests it has, and which of them are chosen."""
    taken = _by_file(chosen)
    files = {
        file: {"covering": taken.get(file, []), "tests": _digest(tests)}
        for file, tests in _by_file(names).items()
    }
    return json.dumps(files, indent=1, sort_keys=True) + "\n"


def chosen(ways: Mapping[str, Set[Way]], seconds: Mapping[str, float]) -> list[str]:
    """So few of these tests, and so short ones, that together they take every way that any of them takes."""
    left = set[Way]().union(*ways.values())
    queue = [(-len(taken) / seconds[name], name) for name, taken in ways.items()]
    heapq.heapify(queue)
    found = []
    while left:
        _, name = heapq.heappop(queue)
        worth = -len(ways[name] & left) / seconds[name]
        if worth and queue and worth > queue[0][0]:  # others have taken some of them: its turn is later
            heapq.heappush(queue, (worth, name))
        elif worth:
            found.append(name)
            left -= ways[name]
    times = Counter(way for name in found for way in ways[name])
    for name in sorted(found, key=lambda name: (-seconds[name], name)):
        if all(times[way] > 1 for way in ways[name]):
            times.subtract(ways[name])
            found.remove(name)
    return sorted(found)


_times = Counter[str]()


def pytest_runtest_logreport(report: Any) -> None:
    _times[report.nodeid] += report.duration


def pytest_sessionfinish() -> None:
    TIMES.write_text(json.dumps(_times), "utf-8")


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
    from coverage import Coverage

    environment = {**os.environ, "COVERAGE_FILE": DATA}
    command = [sys.executable, "-m", "pytest", "-q", ROOM]
    subprocess.run([*command, *MEASURING], cwd=ROOT, env=environment, check=True)
    listed = subprocess.run(
        [*command, "--collect-only", "-p", "no:xdist"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    names = [line for line in listed.stdout.decode().splitlines() if line.startswith(ROOM)]
    CHOSEN.write_text(as_file(names, chosen(_measured(), json.loads(TIMES.read_text("utf-8")))), "utf-8")
    subprocess.run(
        [*command, "--cov", "--cov-report=", "-p", "no:xdist"], cwd=ROOT, env=environment, check=True
    )
    measured = Coverage(data_file=str(ROOT / DATA))
    measured.load()
    keep(measured)


if __name__ == "__main__":
    main()
