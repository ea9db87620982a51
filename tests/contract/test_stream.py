"""Contract of `Log`: what the stream passes on is what carries a wake, each time it is written."""

from __future__ import annotations

from baton.adapters.memory.log import MemoryLog
from baton.ports import Head, SagaRef, Wake
from tests.contract.stores import SAGA, Stores, a_head, a_release, an_entry


def head_of(stores: Stores) -> Head:
    head = stores.log.read_head(SAGA)
    assert head is not None
    return head


def yielded(stores: Stores) -> None:
    stores.log.create_head(a_head())
    stores.log.take(SAGA, "me", 90_000, 0, 93_000)
    assert stores.log.release(SAGA, "me", 1, a_release(folded=3, wake=Wake(v=3)))


def test_an_entry_with_a_wake_is_passed_on_and_one_without_is_not(stores: Stores) -> None:
    stores.log.append(SAGA, an_entry(1))
    stores.log.append(SAGA, an_entry(2), Wake(v=2))
    assert stores.wakes() == [(SAGA, Wake(v=2))]


def test_a_wake_keeps_its_moment_and_its_parent(stores: Stores) -> None:
    wake = Wake(v=2, at=123_456, parent="T#acme#SAGA#parent", slot="guests/2")
    stores.log.append(SAGA, an_entry(2), wake)
    assert stores.wakes() == [(SAGA, wake)]


def test_an_entry_that_was_refused_sends_no_wake(stores: Stores) -> None:
    stores.log.append(SAGA, an_entry(1))
    stores.log.append(SAGA, an_entry(1), Wake(v=1))
    assert stores.wakes() == []


def test_start_take_and_a_release_without_a_wake_are_silent(stores: Stores) -> None:
    stores.log.create_head(a_head())
    stores.log.take(SAGA, "me", 90_000, 0, 93_000)
    stores.log.put_snapshot(SAGA, an_entry(1))
    stores.log.release(SAGA, "me", 1, a_release())
    assert stores.wakes() == []


def test_a_yield_is_passed_on_by_the_write_that_frees_the_lease(stores: Stores) -> None:
    yielded(stores)
    assert stores.wakes() == [(SAGA, Wake(v=3))]


def test_a_release_that_was_refused_sends_no_wake(stores: Stores) -> None:
    stores.log.create_head(a_head())
    assert not stores.log.release(SAGA, "me", 1, a_release(wake=Wake(v=3)))
    assert stores.wakes() == []


def test_a_head_that_still_carries_its_wake_repeats_it_with_every_update(stores: Stores) -> None:
    yielded(stores)
    stores.log.arm(head_of(stores), 95_000)
    assert stores.wakes() == [(SAGA, Wake(v=3)), (SAGA, Wake(v=3))]


def test_after_the_next_take_the_head_is_silent_again(stores: Stores) -> None:
    yielded(stores)
    stores.log.take(SAGA, "you", 190_000, 1, 193_000)
    stores.log.leave_wake(SAGA, "you", 2, 4)
    stores.log.arm(head_of(stores), 195_000)
    assert stores.wakes() == [(SAGA, Wake(v=3))]


def test_wakes_come_in_the_order_of_the_writes(stores: Stores) -> None:
    yielded(stores)
    stores.log.append(SAGA, an_entry(4), Wake(v=4))
    stores.log.append(SAGA, an_entry(5), Wake(v=5))
    assert [wake.v for _, wake in stores.wakes()] == [3, 4, 5]


def test_in_memory_an_update_that_changes_nothing_is_silent() -> None:
    log = MemoryLog()
    log.create_head(a_head(due_at=60_000, armed=95_000, wake=Wake(v=3)))
    assert len(log.drain()) == 1
    seen = log.read_head(SAGA)
    assert seen is not None
    assert log.arm(seen, 95_000)
    assert log.drain() == []


def test_in_memory_a_listener_gets_each_wake_and_may_write_in_its_turn() -> None:
    heard: list[tuple[SagaRef, Wake]] = []

    def listen(ref: SagaRef, wake: Wake) -> None:
        heard.append((ref, wake))
        if wake.v < 3:
            log.append(ref, an_entry(wake.v + 1), Wake(v=wake.v + 1))

    log = MemoryLog(on_wake=listen)
    log.append(SAGA, an_entry(1), Wake(v=1))
    assert heard == [(SAGA, Wake(v=1)), (SAGA, Wake(v=2)), (SAGA, Wake(v=3))]
    assert log.drain() == []
