"""The simulation can see: every planted engine bug turns it red, by the word of the oracle that watches what it breaks."""

from __future__ import annotations

from itertools import islice

import pytest

from tests.kit.planted import PLANTED, runs_until_found

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found_by_the_oracle_that_names_it_and_the_same_runs_are_clean_without_it(
    name: str,
) -> None:
    planted = PLANTED[name]
    runs = runs_until_found(planted)
    assert runs, f"`{planted.oracle}` said nothing: {planted.bug.__doc__}"
    assert [broken for broken in islice(planted.search(), runs) if broken] == []
