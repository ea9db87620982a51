"""Hostile cases, each tried in a process of its own with limits, so that what it takes is known and a crash is only its own."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from time import process_time
from typing import Any, Final, TypeVar

ROOT = Path(__file__).parents[2]
MEMORY_BYTES: Final = 2 << 30
PROCESSOR_S: Final = 20
_T = TypeVar("_T")


def apart(cases: Mapping[str, Callable[[], tuple[Any, str]]]) -> None:
    """Prints for each case its name, what came of it, the words to it, the processor's time, and MB more than before."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
    for name, work in cases.items():
        sys.stdout.write(json.dumps([name, *_tried(work)]) + "\n")
        sys.stdout.flush()


def _tried(work: Callable[[], tuple[Any, str]]) -> list[Any]:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, process_time()
        found, words = work()
        took = process_time() - start
        more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1_024
        os.write(writer, json.dumps([found, words[:2_000], took, more]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(told) if told else ["died", f"status {status}", PROCESSOR_S, 0.0]


def some(cases: Sequence[_T]) -> Sequence[_T]:
    """Every third case; `make soak` has all of them (`BATON_CRASH_POINTS=all`)."""
    return cases[:: 1 if os.environ.get("BATON_CRASH_POINTS") else 3]


def tried_apart(module: str) -> list[Any]:
    """The lines of a module whose `main` calls `apart`."""
    done = subprocess.run([sys.executable, "-m", module], cwd=ROOT, capture_output=True, check=False)
    assert (done.returncode, done.stderr.decode()) == (0, "")
    return [json.loads(line) for line in done.stdout.splitlines()]
