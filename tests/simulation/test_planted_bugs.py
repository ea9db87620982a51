"""The simulation can see: every planted engine bug turns it red, by the word of the oracle that watches what it breaks.

`make test` begins with the run that found it before (tests/kit/found_at.py) and runs that one without the bug; `make soak` runs all
up to it without the bug.
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
def test_a_planted_bug_is_found_by_the_oracle_that_names_it_and_the_same_runs_are_clean_without_it(
    name: str,
) -> None:
    planted = PLANTED[name]
    runs = found_in(planted)
    assert runs, f"`{planted.oracle}` said nothing: {planted.bug.__doc__}"
    assert [broken for run in (runs if IS_ALL else runs[-1:]) if (broken := run())] == []


def test_a_second_act_is_excused_only_where_a_process_stood_still_inside_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = trial(STILL_INSIDE)
    assert found.broken == ()
    assert any("stands still inside insist" in fault for fault in found.verdict.faults)
    monkeypatch.setattr(oracles, "_is_excused", lambda before, after: False)
    assert trial(STILL_INSIDE).oracles == {oracles.DEEDS}
