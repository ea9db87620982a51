"""The hostile corpus, each case tried in a process of its own with limits, so that a crash would be one of that process.

`make soak` tries all of it (`BATON_CRASH_POINTS=all`).
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.core.apart import tried_apart
from tests.core.conditions.broken import BROKEN
from tests.core.conditions.corpus import Case, outcome
from tests.core.conditions.hostile import HOSTILE, SOURCES, TRIED
from tests.core.conditions.ordinary import ORDINARY

LONGEST_S = (
    2.0  # of the processor, on a machine that does other things as well; the longest takes a fifth of it
)


@pytest.fixture(scope="module")
def tried() -> list[Any]:
    return tried_apart(TRIED, outcome)


def test_no_hostile_condition_crashes_hangs_or_counts_as_true(tried: list[Any]) -> None:
    assert [[name, found] for name, found, *_ in tried] == [[case.name, case.expected] for case in TRIED]
    assert not any(found is True for _, found, *_ in tried)


def test_each_says_what_is_to_be_changed(tried: list[Any]) -> None:
    silent = [case.name for case, one in zip(TRIED, tried, strict=True) if case.says not in one[2]]
    assert silent == []
    assert all(words or found is False for _, found, words, *_ in tried)


@pytest.mark.parametrize("case", SOURCES, ids=[case.name for case in SOURCES])
def test_what_only_the_compiler_sees_is_refused_in_any_process(case: Case) -> None:
    found, words = outcome(case)
    assert found == case.expected, words
    assert case.says in words


def test_each_ends_soon(tried: list[Any]) -> None:
    assert [(name, took) for name, _, _, took, _ in tried if took > LONGEST_S] == []


def test_the_corpus_is_large_and_no_two_cases_have_one_name() -> None:
    names = [case.name for case in [*ORDINARY, *BROKEN, *HOSTILE]]
    assert len(set(names)) == len(names)
    assert len(ORDINARY) >= 120
    assert len(HOSTILE) >= 120
