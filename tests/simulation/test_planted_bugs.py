"""The simulation can see: every planted engine bug turns it red, by the word of the oracle that watches what it breaks."""

from __future__ import annotations

import pytest

from tests.kit.planted import PLANTED, is_found

pytestmark = pytest.mark.simulation


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found_by_the_oracle_that_names_it(name: str) -> None:
    planted = PLANTED[name]
    assert is_found(planted), f"`{planted.oracle}` said nothing: {planted.bug.__doc__}"


@pytest.mark.parametrize("name", PLANTED)
def test_without_a_bug_the_same_search_finds_nothing(name: str) -> None:
    assert next(iter(PLANTED[name].search()), None) is None
