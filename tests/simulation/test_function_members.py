"""An operation of any kind is a member of any scope of a function: whichever write its worker dies at, it comes to the same.

`make test` lets workers die at a few writes of each, `make soak` at all.
"""

from __future__ import annotations

import os
from functools import partial

import pytest

from tests.kit.corpus import Scenario, patiently, start
from tests.kit.faults import CRASH_AFTER, CRASH_BEFORE, Plan, scripted
from tests.kit.function_members import CELLS, members
from tests.kit.verdict import run

pytestmark = pytest.mark.simulation
IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))
APART = 1 if IS_ALL else 25


@pytest.mark.parametrize(("kind", "scope"), CELLS if IS_ALL else CELLS[::2])
def test_a_member_of_any_kind_is_heard_once_whatever_kills_its_workers(kind: str, scope: str) -> None:
    drive = partial(members, kind=kind, scope=scope, start=start, patiently=patiently)
    scenario = Scenario("members", drive, same_steps=False)
    whole = run(scenario, Plan())
    assert (whole.status, whole.broken) == ("completed", ())
    first = 1 + CELLS.index((kind, scope)) % APART
    for number in range(first, len(whole.writes) + 1, APART):
        for fate in (CRASH_BEFORE, CRASH_AFTER)[number % 2 :: 1 if IS_ALL else 2]:
            found = run(scenario, scripted((("write", number, fate),)))
            assert (found.result, found.broken) == (whole.result, ()), f"{fate} at write {number}"
