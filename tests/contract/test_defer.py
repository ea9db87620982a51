"""Contract of `Log`: moving the due time of a head on, without its lease."""

from __future__ import annotations

import msgspec
import pytest

from baton.ports import SWEEP, TIMER, WORK, Head, Wake
from tests.contract.stores import SAGA, Stores, a_head, a_release

QUIET = a_head(start=b"", folded=4, lane=SWEEP, quiet_since=1_000, timer=500_000)


def head_of(stores: Stores) -> Head:
    head = stores.log.read_head(SAGA)
    assert head is not None
    return head


@pytest.mark.parametrize("lane", [SWEEP, TIMER])
def test_a_head_is_due_later_in_the_lane_that_is_said_and_all_else_stays(stores: Stores, lane: str) -> None:
    stores.log.create_head(QUIET)
    assert stores.log.defer(QUIET, 500_000, lane)
    assert head_of(stores) == msgspec.structs.replace(QUIET, due_at=500_000, lane=lane)
    found = [one for shard in range(4) for one in stores.log.due(lane, shard, 0, 500_000, 10)]
    assert found == [(SAGA, 500_000)]


def test_the_stream_passes_the_wake_on_with_which_a_saga_is_due_now(stores: Stores) -> None:
    stores.log.create_head(QUIET)
    stores.wakes()
    assert stores.log.defer(QUIET, 500, WORK, Wake(v=3))
    assert stores.wakes() == [(SAGA, Wake(v=3))]


def test_deferring_a_saga_without_a_head_is_refused_and_makes_none(stores: Stores) -> None:
    assert not stores.log.defer(QUIET, 500_000, SWEEP)
    assert stores.log.read_head(SAGA) is None


@pytest.mark.parametrize("change", ["taken", "taken as due", "armed", "armed later", "postponed", "deferred"])
def test_deferring_is_refused_when_the_head_changed_since_it_was_seen(stores: Stores, change: str) -> None:
    log = stores.log
    log.create_head(QUIET)
    assert {
        "taken": lambda: log.take(SAGA, "me", 90_000, 0, 93_000) is not None,
        "taken as due": lambda: log.take(SAGA, "me", 90_000, 0, 93_000, True) is not None,
        "armed": lambda: log.arm(QUIET, 60_000),
        "armed later": lambda: log.arm(QUIET, 95_000),
        "postponed": lambda: log.postpone(SAGA, 70_000, 99_000),
        "deferred": lambda: log.defer(QUIET, 99_000, SWEEP),
    }[change]()
    before = head_of(stores)
    assert not log.defer(QUIET, 500_000, SWEEP)
    assert head_of(stores) == before


def test_a_release_writes_since_when_it_is_quiet_and_what_is_due_by_itself_and_the_next_removes_them(
    stores: Stores,
) -> None:
    stores.log.create_head(a_head())
    stores.log.take(SAGA, "me", 90_000, 0, 93_000)
    stores.log.release(SAGA, "me", 1, a_release(lane=SWEEP, quiet_since=5, timer=900_000))
    assert (head_of(stores).quiet_since, head_of(stores).timer) == (5, 900_000)
    stores.log.take(SAGA, "me", 390_000, 1, 393_000, True)
    stores.log.release(SAGA, "me", 2, a_release(lane=WORK))
    assert (head_of(stores).quiet_since, head_of(stores).timer) == (0, 0)
