"""A step, `POST /sagas` and a compilation enter no more files, make no more moves and calls, and execute no more lines.

`make trace` prints the paths. `make trace WRITE=1` renews trace.json; its numbers may only go down.
"""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from baton.core.money import dollars, micro_dollars
from benchmarks.trace import GOLDEN, PATHS, PYTHON, traced

COUNTS = json.loads(GOLDEN.read_text(encoding="utf-8"))
OF_ONE_VERSION = {"calls", "lines"}  # the next Python inlines what this one calls


@pytest.mark.parametrize("name", PATHS)
def test_a_path_through_the_engine_becomes_no_longer(name: str) -> None:
    found = PATHS[name]().counts()
    compared = {what for what in found if COUNTS["python"] == PYTHON or what not in OF_ONE_VERSION}
    changed = {
        what: (COUNTS[name][what], found[what]) for what in compared if found[what] != COUNTS[name][what]
    }
    assert changed == {}, "where it is less, run `make trace WRITE=1`; where it is more, see `make trace`"


def test_a_trace_counts_lines_of_the_engine_alone() -> None:
    with traced() as trace:
        json.dumps({})
        dollars(micro_dollars([Decimal(1)]))
    assert list(trace.files) == ["core/money.py"]
    assert (trace.moves, trace.calls) == (0, 2)
