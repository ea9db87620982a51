"""Very many sagas: what waiting for weeks costs and how late it makes them, and what an outage leaves to timers.

`make soak` has 100,000 of them (`BATON_CROWDS=100000`).
"""

from __future__ import annotations

import os

import pytest

from tests.kit.crowds import HOUR_MS, backlog, weeks

pytestmark = [pytest.mark.simulation, pytest.mark.timeout(3_600)]

WAITING = int(os.environ.get("BATON_CROWDS", "500"))
DUE = min(WAITING, 20_000)


def test_a_month_of_waiting_is_a_look_a_day_and_one_update_for_each() -> None:
    crowd = weeks(WAITING, days=30)
    looks = crowd.log.writes["defer"] / WAITING
    assert looks <= 5 + 30, "after 1, 2, 4, 8 and 16 hours, and then once a day"
    assert crowd.log.writes["take"] == len(crowd.moments), "no lease is taken but for a reason"
    assert crowd.late.keys() == crowd.moments.keys()
    timers = [late for ref, late in crowd.late.items() if ref.id.endswith("0")]
    assert len(timers) == WAITING // 10
    assert max(timers) <= 1_000, "to the second"
    assert max(crowd.late.values()) <= 24 * HOUR_MS + 120_000, "the longest time between two looks"


def test_timers_are_kept_while_the_backlog_of_an_outage_is_worked_off() -> None:
    call_s = 1.0 if DUE > 10_000 else 10.0  # so that one run is not enough
    found = backlog(DUE, timers=DUE // 10, call_s=call_s)
    assert found.woken == DUE
    assert 2 <= found.runs <= 8
    assert found.timers == DUE // 10
    assert found.worst_timer_ms <= 60_000 + 2_000 * call_s, "one run, and its two calls"
    assert found.quiet < 0.5, "of those that are read together, tenants with few come first"
