"""Signals and cancels race against append, yield and finish: nothing is lost, and nothing waits for the sweep.

In `make test` signals come at the even milliseconds and cancels at the odd ones, in `make soak` both at each.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.kit.races import YIELDING, race

pytestmark = pytest.mark.simulation

EVERY = 1 if os.environ.get("BATON_CRASH_POINTS") else 4


def moments(act: str, count: int) -> list[float]:
    """Seconds after the start at which something is done."""
    return [step / 1_000 for step in range(act == "cancel" and EVERY > 1, count, EVERY)]


def test_a_signal_at_any_moment_is_acted_on_within_seconds() -> None:
    refused: Counter[str] = Counter()
    for moment in moments("signal", 160):
        result = race(moment, "signal")
        assert result.status == "completed", f"signal at {moment} s"
        assert result.seconds < 5, f"signal at {moment} s"
        refused += result.refused
    assert refused["append"] > 0, "no append ever conflicted"
    assert refused["nudges left"] > 0, "no nudge was ever left"
    assert refused["release"] > 0, "no release was ever refused"


def test_a_cancel_at_any_moment_ends_the_saga_or_is_told_that_it_has_ended() -> None:
    refused: Counter[str] = Counter()
    for moment in moments("cancel", 160):
        result = race(moment, "cancel")
        assert result.status == "cancelled", f"cancel at {moment} s"
        assert result.seconds < 5, f"cancel at {moment} s"
        refused += result.refused
    assert refused["append"] > 0
    assert refused["nudges left"] > 0


@pytest.mark.parametrize("act", ["signal", "cancel"])
def test_around_a_yield_nothing_is_lost_either(act: str) -> None:
    refused: Counter[str] = Counter()
    for after in moments(act, 80):
        moment = 4.36 + after
        result = race(moment, act, YIELDING)
        assert result.status == ("completed" if act == "signal" else "cancelled"), f"{act} at {moment} s"
        assert result.seconds < 10, f"{act} at {moment} s"
        refused += result.refused
    assert refused["release"] > 0, "no yield was ever refused"
    assert refused["nudges left"] > 0
