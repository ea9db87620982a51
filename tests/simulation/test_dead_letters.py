"""Dead letters through crashes at each write, messages that come twice and requests that are repeated: none is lost, and none counts twice.

`make soak` has a thousand of them, and more worlds (`BATON_CROWDS`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import pytest

from tests.kit import letter_bugs
from tests.kit.dead_letter_runs import LETTERS, at_each_write, thousand

pytestmark = pytest.mark.simulation

IS_ALL = bool(os.environ.get("BATON_CROWDS"))
DEAD = 1_000 if IS_ALL else 100
WRITES = 3  # of a run of the reconciler, or of a redrive, with a repetition
BUGS: tuple[Callable[[], Any], ...] = (
    letter_bugs.a_message_is_deleted_before_its_letter_is_written,
    letter_bugs.a_letter_does_not_know_its_messages,
    letter_bugs.any_message_reopens_a_letter,
    letter_bugs.a_letter_is_written_over_whatever_is_there,
    letter_bugs.a_redriven_saga_is_not_made_due,
)


def test_hundreds_of_dead_letters_are_redriven_and_none_is_lost_or_doubled() -> None:
    """More than the 100 that one request redrives."""
    broken, messages = thousand(DEAD, seed=1, stragglers=DEAD // 10)
    assert broken == ()
    assert messages >= DEAD + DEAD // 10


@pytest.mark.parametrize("seed", range(2, 8 if IS_ALL else 5))
def test_so_it_is_in_other_worlds(seed: int) -> None:
    broken, _ = thousand(60, seed, rate=0.15, stragglers=20)
    assert broken == ()


def test_a_fault_at_any_write_of_a_run_and_of_a_redrive_changes_nothing_but_the_time() -> None:
    assert [found for found in at_each_write(WRITES) if found[2]] == []


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(bug: Callable[[], Any]) -> None:
    with bug():
        found = any(
            text.startswith(f"{LETTERS}: ")
            for seed in range(2, 8)
            for text in thousand(60, seed, rate=0.15, stragglers=20)[0]
        )
    assert found, bug.__doc__
