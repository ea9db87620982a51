"""The simulation can see: every planted engine bug turns it red, by the word of the oracle that watches what it breaks.

The search begins with the run that found it before (tests/kit/found_at.py). `make soak` also runs all up to it without the bug.
"""

from __future__ import annotations

import os

import pytest

from tests.kit import oracles
from tests.kit.planted import PLANTED, STILL_INSIDE, found_in
from tests.kit.schedule import trial

pytestmark = pytest.mark.simulation
IS_ALL = bool(os.environ.get("BATON_CRASH_POINTS"))


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found_by_the_oracle_that_names_it(name: str) -> None:
    planted = PLANTED[name]
    runs = found_in(planted)
    assert runs, f"`{planted.oracle}` said nothing: {planted.bug.__doc__}"
    assert not IS_ALL or [broken for run in runs if (broken := run())] == [], "without the bug"


def test_a_second_act_is_excused_only_where_a_process_stood_still_inside_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = trial(STILL_INSIDE)
    assert found.broken == ()
    assert any("stands still inside insist" in fault for fault in found.verdict.faults)
    monkeypatch.setattr(oracles, "_is_excused", lambda before, after: False)
    assert trial(STILL_INSIDE).oracles == {oracles.DEEDS}
