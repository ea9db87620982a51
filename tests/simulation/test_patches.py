"""Requests for one new saga meet while the saga that it is a fork of goes on. Patches and other forks are scenarios of the corpus."""

from __future__ import annotations

import pytest

from tests.kit.patch_bugs import the_first_entry_of_a_new_saga_is_not_looked_at
from tests.kit.patch_scenarios import new_saga_race

pytestmark = pytest.mark.simulation

MOMENTS = [(1.38 + at / 1_000, gap / 1_000) for at in range(20, 36, 4) for gap in (4, 8, 12)]


def test_one_key_makes_one_saga_of_one_cut_whatever_the_saga_writes_meanwhile() -> None:
    assert {moment: new_saga_race(*moment) for moment in MOMENTS} == dict.fromkeys(MOMENTS, "")


def test_a_planted_bug_is_found() -> None:
    with the_first_entry_of_a_new_saga_is_not_looked_at():
        assert any(new_saga_race(*moment) for moment in MOMENTS)
