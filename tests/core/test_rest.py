"""When a saga is looked at again to which nothing happens, and whether such a look can be a short one."""

from __future__ import annotations

import pytest

from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.folding.whole_folds import SweepSchedule, may_sweep_without_lease
from baton.core.log.records import Child
from baton.core.log.state import Outbox, State
from tests.core.build import T0, Saga, child, program, wait

HOUR = 3_600_000


def test_the_time_from_look_to_look_doubles_from_the_shortest_to_the_longest() -> None:
    pace, at, found = SweepSchedule.of(Limits(), is_quiet=True), 0, []
    for _ in range(7):
        at = pace.next(0, at)
        found.append(at // HOUR)
    assert found == [1, 2, 4, 8, 16, 32, 56]


@pytest.mark.parametrize(("shortest", "first"), [(3_600_000, 300_000), (120_000, 120_000)])
def test_what_may_have_missed_more_than_a_wake_is_looked_at_after_five_minutes(
    shortest: int, first: int
) -> None:
    limits = Limits(sweep_shortest_ms=shortest)
    assert SweepSchedule.of(limits, is_quiet=False).next(T0, T0) == T0 + first
    assert SweepSchedule.of(limits, is_quiet=True).next(T0, T0) == T0 + shortest


def test_a_saga_that_waits_is_quiet_unless_a_child_or_a_notice_is_open() -> None:
    waits, parent = Saga(program(wait("w", signal="s"))), Saga(program(child("c")))
    for saga in (waits, parent):
        saga.go()
    assert may_sweep_without_lease(waits.state, "waiting")
    assert may_sweep_without_lease(waits.state, "suspended")
    assert not may_sweep_without_lease(waits.state, "running")
    assert not may_sweep_without_lease(parent.state, "waiting")
    orphan = Child(saga="x", workflow="w", input=ev.Value())
    assert not may_sweep_without_lease(State(orphaned_children=(orphan,)), "waiting")
    notice = ev.Notice(key="k", to="user", code="c", message="m")
    assert not may_sweep_without_lease(State(outbox=Outbox(due=(notice,))), "parked")


@pytest.mark.parametrize(("behind_s", "is_kept"), [(-10, True), (0, True), (900, True), (901, False)])
def test_a_timer_shortly_behind_a_look_is_kept_instead_of_it(behind_s: int, is_kept: bool) -> None:
    """The look may come late, and a message can be sent so long before a timer."""
    schedule = SweepSchedule.of(Limits(), is_quiet=True)
    assert schedule.comes_before(HOUR + behind_s * 1_000, HOUR) is is_kept
