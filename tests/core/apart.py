"""Hostile cases, each tried in a process of its own with limits, so that what it takes is known and a crash is only its own."""

from __future__ import annotations

import json
import os
import resource
import sys
from collections.abc import Callable, Sequence
from time import process_time
from typing import Any, Final, Protocol, TypeVar

MEMORY_BYTES: Final = 2 << 30
PROCESSOR_S: Final = 20


class Named(Protocol):
    """A case."""

    @property
    def name(self) -> str: ...


_T = TypeVar("_T", bound=Named)


def some(cases: Sequence[_T]) -> Sequence[_T]:
    """Every third case; `make soak` has all of them (`BATON_CRASH_POINTS=all`)."""
    return cases[:: 1 if os.environ.get("BATON_CRASH_POINTS") else 3]


def tried_apart(cases: Sequence[_T], work: Callable[[_T], tuple[Any, str]]) -> list[list[Any]]:
    """For each case its name, what came of it, the words to it, the processor's time, and MB more than before."""
    return [[case.name, *_tried(case, work)] for case in cases]


def _tried(case: _T, work: Callable[[_T], tuple[Any, str]]) -> list[Any]:
    """A copy of this process, which has loaded everything, does the work: what another would load takes longer than most cases."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            sys.settrace(None)
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
            resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
            before, start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, process_time()
            found, words = work(case)
            took = process_time() - start
            more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1_024
            os.write(writer, json.dumps([found, words[:2_000], took, more]).encode())
        finally:
            os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(told) if told else ["died", f"status {status}", PROCESSOR_S, 0.0]
