"""The simulation can see: every planted engine bug turns it red, by the word of the oracle that watches what it breaks."""

from __future__ import annotations

import pytest

from tests.kit import oracles
from tests.kit.planted import PLANTED, STILL_INSIDE, is_found
from tests.kit.schedule import trial

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found_by_the_oracle_that_names_it(name: str) -> None:
    planted = PLANTED[name]
    assert is_found(planted), f"`{planted.oracle}` said nothing: {planted.bug.__doc__}"


@pytest.mark.parametrize("name", PLANTED)
def test_without_a_bug_the_same_search_finds_nothing(name: str) -> None:
    assert next(iter(PLANTED[name].search()), None) is None


def test_a_second_act_is_excused_only_where_a_process_stood_still_inside_the_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = trial(STILL_INSIDE)
    assert found.broken == ()
    assert any("stands still inside insist" in fault for fault in found.verdict.faults)
    monkeypatch.setattr(oracles, "_is_excused", lambda before, after: False)
    assert trial(STILL_INSIDE).oracles == {oracles.DEEDS}
