"""Every case of the corpus but the hostile ones."""

from __future__ import annotations

import pytest

from tests.core.conditions.broken import BROKEN
from tests.core.conditions.corpus import Case, outcome
from tests.core.conditions.ordinary import ORDINARY

ALL = [*ORDINARY, *BROKEN]


@pytest.mark.parametrize("case", ALL, ids=[case.name for case in ALL])
def test_a_condition_has_its_answer(case: Case) -> None:
    found, words = outcome(case)
    assert found == case.expected, words
    assert case.says in words
