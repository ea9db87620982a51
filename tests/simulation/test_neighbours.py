"""Two tenants share the workers: what one of them has accepted delays the other's little or not at all.

`make soak` has more sagas in a flood (`BATON_CROWDS`).
"""

from __future__ import annotations

import os

import pytest

from baton.core.limits import Limits
from tests.kit.documents import chain_of
from tests.kit.neighbours import seconds_of_twenty

pytestmark = pytest.mark.simulation

MOST = 3.0  # times as long as alone
FLOOD = 1_000 if os.environ.get("BATON_CROWDS") else 400


@pytest.mark.parametrize(
    ("slots", "flood"), [pytest.param(50, FLOOD, marks=pytest.mark.soak), (2, 2 * FLOOD // 5)]
)
def test_a_tenants_flood_delays_anothers_twenty_sagas_by_less_than_three_times(
    slots: int, flood: int
) -> None:
    """With as many workers as in the template, and with hardly any."""
    alone = seconds_of_twenty(0, slots=slots)
    assert seconds_of_twenty(flood, slots=slots) <= MOST * alone


def test_sagas_that_would_keep_their_workers_for_a_minute_make_room_after_a_turn() -> None:
    alone, minute = seconds_of_twenty(0), chain_of(25, 2.0)
    within = {turn: _beside(minute, turn) - alone for turn in (2_000, 900_000)}
    assert within[900_000] > 40, "otherwise this proves nothing"
    assert within[2_000] <= 2 + 1 + 2 + 0.5, "a turn, a second look, the step that is running, and the stream"


def _beside(noisy: str, turn_ms: int) -> float:
    return seconds_of_twenty(50, noisy=noisy, slots=4, limits=Limits(turn_ms=turn_ms))
