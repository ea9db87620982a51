"""Schedules that were drawn once and broke a promise: by the engine, or by what the simulation itself expected."""

from __future__ import annotations

import pytest

from tests.kit.faults import CRASH_BEFORE, HANG, STALL
from tests.kit.process import INDEX, REFUSES, Outage
from tests.kit.schedule import Schedule, trial

pytestmark = pytest.mark.simulation


def _died(**numbers: int) -> tuple[tuple[str, int, str], ...]:
    return tuple((name.partition("_")[0], number, CRASH_BEFORE) for name, number in numbers.items())


FOUND = {
    "a worker that can neither load a saga nor give it back has not died": Schedule(
        "mapped",
        333220000230,
        outages=(Outage(INDEX, REFUSES, 2, 182),),
        faults=(("read", 11, HANG),),
    ),
    "a poll has the time that it is given, and no outage is as long": Schedule(
        "polled",
        333220001591,
        outages=(Outage("s3", REFUSES, 10, 190),),
        faults=(("read", 54, CRASH_BEFORE),),
    ),
    "a person resumes what three deaths have parked, before its child is called off": Schedule(
        "called-off",
        332220003936,
        gap_s=3,
        faults=(*_died(write=16, read_a=2, read_b=17, read_c=54), ("read", 87, STALL)),
    ),
    "and before its worker has opened the child": Schedule(
        "called-off", 770000297, gap_s=20, faults=(("read", 14, STALL), *_died(read_a=21, read_b=34))
    ),
}


@pytest.mark.parametrize("what", FOUND)
def test_it_breaks_none_any_more(what: str) -> None:
    found = trial(FOUND[what])
    assert found.broken == ()
    assert found.verdict.faults
