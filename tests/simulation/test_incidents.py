"""Incidents that operators acknowledge while they end and come again, with requests that die, get no answer and land late."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.kit import incident_bugs
from tests.kit.on_call import INCIDENTS, on_call

pytestmark = pytest.mark.simulation

BUGS: tuple[Callable[[], Any], ...] = (
    incident_bugs.an_acknowledgement_that_lands_late_counts,
    incident_bugs.an_acknowledgement_opens_it_again,
    incident_bugs.a_second_failure_is_the_first_one,
)


def found() -> list[str]:
    """What is broken in some worlds, quiet ones and troubled ones, with an end and without."""
    return [
        text
        for seed in range(20)
        for rate in (0.0, 0.4)
        for resolves in (False, True)
        for text in on_call(seed, rate, resolves=resolves)
    ]


def test_the_last_operator_has_it_and_an_end_is_an_end() -> None:
    assert found() == []


@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.__name__)
def test_a_planted_bug_is_found(bug: Callable[[], Any]) -> None:
    with bug():
        assert any(text.startswith(f"{INCIDENTS}: ") for text in found()), bug.__doc__
