"""Contract of `Log`: the sparse index of what is due."""

from __future__ import annotations

import pytest

from baton.adapters.memory.log import MemoryLog
from baton.ports import LANES, SWEEP, TIMER, WORK, SagaRef
from baton.ports.log import shard_of
from tests.contract.stores import SAGA, SHARDS, Stores, a_head, a_release

LATE = 10_000_000


def all_due(stores: Stores, until: int = LATE, limit: int = 1000) -> list[tuple[SagaRef, int]]:
    return [row for shard in range(SHARDS) for row in stores.log.due(WORK, shard, 0, until, limit)]


def of_one_shard(count: int) -> list[SagaRef]:
    refs = (SagaRef(tenant="acme", id=f"saga-{number}") for number in range(1000))
    return [ref for ref in refs if shard_of(ref.id, SHARDS) == 0][:count]


def test_a_new_saga_is_due_when_its_head_says_so(stores: Stores) -> None:
    stores.log.create_head(a_head(due_at=61_000))
    assert all_due(stores, until=60_999) == []
    assert all_due(stores, until=61_000) == [(SAGA, 61_000)]


def test_a_saga_is_in_the_shard_of_its_id_and_in_no_other(stores: Stores) -> None:
    stores.log.create_head(a_head())
    where = [shard for shard in range(SHARDS) if stores.log.due(WORK, shard, 0, LATE, 10)]
    assert where == [shard_of(SAGA.id, SHARDS)]


def test_every_shard_gets_its_share(stores: Stores) -> None:
    refs = [SagaRef(tenant="acme", id=f"saga-{number}") for number in range(40)]
    for ref in refs:
        stores.log.create_head(a_head(ref))
    assert all(stores.log.due(WORK, shard, 0, LATE, 100) for shard in range(SHARDS))
    assert sorted(str(ref) for ref, _ in all_due(stores)) == sorted(map(str, refs))


def test_the_soonest_come_first_and_no_more_than_asked_for(stores: Stores) -> None:
    refs = of_one_shard(5)
    for ref, due_at in zip(refs, (50, 9, 1_000, 100, 20), strict=True):
        stores.log.create_head(a_head(ref, due_at=due_at))
    assert stores.log.due(WORK, 0, 0, LATE, 3) == [(refs[1], 9), (refs[4], 20), (refs[0], 50)]
    assert [due_at for _, due_at in stores.log.due(WORK, 0, 0, 100, 10)] == [9, 20, 50, 100]


def test_what_is_due_before_a_moment_can_be_left_out(stores: Stores) -> None:
    refs = of_one_shard(3)
    for ref, due_at in zip(refs, (50, 51, 52), strict=True):
        stores.log.create_head(a_head(ref, due_at=due_at))
    assert stores.log.due(WORK, 0, 51, LATE, 10) == [(refs[1], 51), (refs[2], 52)]
    assert stores.log.due(WORK, 0, 51, 51, 10) == [(refs[1], 51)]


def test_a_page_begins_after_the_last_of_the_one_before_even_among_equals(stores: Stores) -> None:
    refs = of_one_shard(7)
    for ref in refs:
        stores.log.create_head(a_head(ref, due_at=100))
    found: list[tuple[SagaRef, int]] = []
    while page := stores.log.due(WORK, 0, 0, 100, 3, found[-1] if found else None):
        found += page
    assert sorted(str(ref) for ref, _ in found) == sorted(map(str, refs))


def test_a_page_begins_after_the_last_of_the_one_before_wherever_that_is_by_now(stores: Stores) -> None:
    refs = of_one_shard(4)
    for due_at, ref in enumerate(refs, 50):
        stores.log.create_head(a_head(ref, due_at=due_at))
    page = stores.log.due(WORK, 0, 0, LATE, 2)
    stores.log.take(refs[1], "me", 90_000, 0, 93_000)
    assert stores.log.due(WORK, 0, 0, 1_000, 2, page[-1]) == [(refs[2], 52), (refs[3], 53)]


def test_a_saga_that_is_held_is_due_when_its_lease_ends(stores: Stores) -> None:
    stores.log.create_head(a_head())
    stores.log.take(SAGA, "me", 90_000, 0, 93_000)
    assert all_due(stores) == [(SAGA, 93_000)]


@pytest.mark.parametrize("lane", LANES)
def test_a_released_saga_is_in_the_lane_of_its_release_and_in_no_other(stores: Stores, lane: str) -> None:
    stores.log.create_head(a_head())
    stores.log.take(SAGA, "me", 90_000, 0, 93_000)
    stores.log.release(SAGA, "me", 1, a_release(due_at=300_000, lane=lane))
    shard = shard_of(SAGA.id, SHARDS)
    assert [one for one in LANES if stores.log.due(one, shard, 0, LATE, 10)] == [lane]
    head = stores.log.read_head(SAGA)
    assert head is not None
    assert head.lane == lane


def test_what_takes_a_saga_or_arms_it_moves_it_to_the_lane_of_work(stores: Stores) -> None:
    taken, armed = of_one_shard(2)
    for ref in (taken, armed):
        stores.log.create_head(a_head(ref, due_at=300_000, lane=SWEEP))
    stores.log.take(taken, "me", 90_000, 0, 93_000)
    seen = stores.log.read_head(armed)
    assert seen is not None
    assert stores.log.arm(seen, 95_000)
    assert stores.log.due(WORK, 0, 0, LATE, 10) == [(taken, 93_000), (armed, 95_000)]
    assert stores.log.due(SWEEP, 0, 0, LATE, 10) == []


def test_arming_leaves_a_nearer_due_time_in_its_lane(stores: Stores) -> None:
    (ref,) = of_one_shard(1)
    stores.log.create_head(a_head(ref, due_at=61_000, lane=TIMER))
    seen = stores.log.read_head(ref)
    assert seen is not None
    assert stores.log.arm(seen, 95_000)
    assert stores.log.due(TIMER, 0, 0, LATE, 10) == [(ref, 61_000)]


def test_a_released_saga_is_due_when_the_release_says_so(stores: Stores) -> None:
    stores.log.create_head(a_head())
    stores.log.take(SAGA, "me", 90_000, 0, 93_000)
    stores.log.release(SAGA, "me", 1, a_release(due_at=300_000))
    assert all_due(stores) == [(SAGA, 300_000)]


def test_a_finished_saga_leaves_the_index_and_comes_back_when_taken(stores: Stores) -> None:
    stores.log.create_head(a_head())
    stores.log.take(SAGA, "me", 90_000, 0, 93_000)
    stores.log.release(
        SAGA, "me", 1, a_release(due_at=None, status="completed", group="done", group_at=70_000)
    )
    assert all_due(stores) == []
    stores.log.take(SAGA, "me", 190_000, 1, 193_000)
    assert all_due(stores) == [(SAGA, 193_000)]


def test_with_lag_the_memory_index_shows_what_was_when_it_settled() -> None:
    log = MemoryLog(1, lag=True)
    log.create_head(a_head(due_at=61_000))
    assert log.due(WORK, 0, 0, LATE, 10) == []
    log.settle_index()
    assert log.due(WORK, 0, 0, LATE, 10) == [(SAGA, 61_000)]
    log.take(SAGA, "me", 90_000, 0, 93_000)
    log.release(SAGA, "me", 1, a_release(due_at=None))
    assert log.due(WORK, 0, 0, LATE, 10) == [(SAGA, 61_000)]
    log.settle_index()
    assert log.due(WORK, 0, 0, LATE, 10) == []
