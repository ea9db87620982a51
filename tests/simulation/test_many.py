"""Hundreds of sagas in one world: what goes wrong with one of them, or with one service, harms no other.

`make soak` has five hundred of them (`BATON_CROWDS`).
"""

from __future__ import annotations

import os

import pytest

from tests.kit.faults import EVERYTHING, Chaos, Plan
from tests.kit.many_sagas import many
from tests.kit.process import REFUSES, Outage

pytestmark = pytest.mark.simulation

HUNDREDS = 500 if os.environ.get("BATON_CROWDS") else 120


def test_hundreds_of_sagas_come_to_their_end_through_faults_of_every_kind() -> None:
    plan = Chaos(seed=3, rate=150 / HUNDREDS / 20, budget=150, kinds=EVERYTHING)
    ending = many(HUNDREDS, plan, seed=3, skew_ms=3_000, is_warm=True, reconciler_gap_s=20)
    assert ending.broken == ()
    assert ending.statuses == {"completed": HUNDREDS}
    assert len(plan.at) + len(plan.at_reads) > 100, "the chaos was too quiet to prove anything"


@pytest.mark.parametrize("service", ["sqs", "lambda"])
def test_a_hundred_and_twenty_sagas_do_without_a_service_that_refuses_all_the_time(service: str) -> None:
    """And there is always one of them due soon, for which a timer is to be sent."""
    ending = many(120, Plan(), within_s=600, outages=(Outage(service, REFUSES),))
    assert ending.broken == ()
    assert ending.statuses == {"completed": 120}
    assert ending.meanwhile > 60, "none may wait until nothing else is due"
