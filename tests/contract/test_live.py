"""The contract of what viewers are shown, and of the word that a viewer watches."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.ports import Appended, Head, Wake
from tests.contract.stores import OTHER, SAGA, Stores, a_head, an_entry

NOW = 1_790_000_000_000
LATER = NOW + 30_000


def taken(stores: Stores) -> Head:
    """The head of a saga with one entry, whose lease a worker has."""
    stores.log.create_head(a_head())
    stores.log.append(SAGA, an_entry(1))
    stores.log.take(SAGA, "w", NOW + 60_000, 0, NOW + 63_000)
    head = stores.log.read_head(SAGA)
    assert head is not None
    return head


# -- word of a viewer


def test_a_worker_that_takes_a_lease_is_told_of_a_viewer_who_came_before(stores: Stores) -> None:
    head = a_head()
    stores.log.create_head(replace(head, wake=None))
    assert stores.live.leave_word(head, NOW, LATER)
    before = stores.log.take(SAGA, "w", NOW + 60_000, 0, NOW + 63_000)
    assert before is not None
    assert before.watched == LATER


def test_a_head_that_has_a_wake_is_left_alone_so_that_the_stream_does_not_repeat_it(stores: Stores) -> None:
    head = replace(a_head(), wake=Wake(v=1))
    stores.log.create_head(head)
    assert not stores.live.leave_word(head, NOW, LATER)
    assert stores.log.read_head(SAGA) == head


def test_a_holder_is_told_of_a_viewer_by_its_next_append_and_only_by_that(stores: Stores) -> None:
    head = taken(stores)
    assert stores.live.leave_word(head, NOW, LATER)
    assert stores.live.leave_word(head, NOW, LATER + 1), "a later word takes the place of an earlier one"
    assert stores.log.append(SAGA, an_entry(2)) == Appended(LATER + 1)
    assert stores.log.append(SAGA, an_entry(3)) == Appended()


def test_word_of_a_viewer_is_no_entry(stores: Stores) -> None:
    head = taken(stores)
    assert stores.live.leave_word(head, NOW, LATER)
    assert [one.version for one in stores.log.read_tail(SAGA, 0, 0)] == [1]
    assert [one.version for one in stores.log.read_tail(SAGA, 0, 0, 5)] == [1]
    assert not stores.log.append(SAGA, an_entry(1)), "and an entry is still refused the second time"
    assert stores.log.append(SAGA, an_entry(2))
    assert [one.version for one in stores.log.read_tail(SAGA, 0, 0)] == [1, 2]


def test_an_entry_with_rows_takes_the_place_of_word_of_a_viewer(stores: Stores) -> None:
    head = taken(stores)
    stores.live.leave_word(head, NOW, LATER)
    assert stores.log.append_with_rows(SAGA, an_entry(2), [])
    assert [one.version for one in stores.log.read_tail(SAGA, 0, 0)] == [1, 2]


# -- what is shown


def test_nothing_is_shown_without_a_viewer(stores: Stores) -> None:
    assert not stores.live.put_texts(SAGA, 1, NOW, b"[]")
    assert stores.live.read(SAGA) is None


def test_what_is_shown_is_what_was_written_last(stores: Stores) -> None:
    assert stores.live.watch(SAGA, NOW, LATER, NOW)
    assert stores.live.put_texts(SAGA, 1, NOW, b'["a"]')
    assert stores.live.put_texts(SAGA, 1, NOW + 1_000, b'["b"]')
    found = stores.live.read(SAGA)
    assert found is not None
    assert (found.until, found.epoch, found.at, found.data) == (LATER, 1, NOW + 1_000, b'["b"]')
    assert stores.live.read(OTHER) is None


def test_of_several_viewers_one_writes(stores: Stores) -> None:
    assert stores.live.watch(SAGA, NOW, LATER, LATER - 10_000)
    assert not stores.live.watch(SAGA, NOW, LATER, LATER - 10_000)
    assert stores.live.watch(SAGA, NOW + 10_001, LATER + 10_001, LATER + 1)


def test_a_write_behind_the_last_viewer_is_refused(stores: Stores) -> None:
    stores.live.watch(SAGA, NOW, LATER, NOW)
    assert not stores.live.put_texts(SAGA, 1, LATER, b"[]")


@pytest.mark.parametrize(("epoch", "at"), [(1, NOW + 9_000), (2, NOW), (2, NOW + 1_000)])
def test_a_write_that_comes_late_changes_nothing(stores: Stores, epoch: int, at: int) -> None:
    stores.live.watch(SAGA, NOW, LATER, NOW)
    assert stores.live.put_texts(SAGA, 2, NOW + 1_000, b'["new"]')
    assert not stores.live.put_texts(SAGA, epoch, at, b'["old"]')
    found = stores.live.read(SAGA)
    assert found is not None
    assert found.data == b'["new"]'


# -- the stream


def test_neither_word_of_a_viewer_nor_what_is_shown_is_passed_on_by_the_stream(stores: Stores) -> None:
    head = taken(stores)
    before = list(stores.wakes())
    assert stores.live.watch(SAGA, NOW, LATER, NOW)
    assert stores.live.put_texts(SAGA, 1, NOW, b'["a"]')
    assert stores.live.leave_word(head, NOW, LATER)
    stores.log.create_head(a_head(ref=OTHER))
    other = stores.log.read_head(OTHER)
    assert other is not None
    assert stores.live.leave_word(other, NOW, LATER)
    assert stores.wakes() == before
