"""Contract of `Log`: what has expired is as good as deleted, whether or not the store has got round to it."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from baton.ports import Record
from tests.contract.stores import SAGA, SHARDS, Stores, a_head, an_entry, as_written

PAST, FUTURE = 1_000, 4_000_000_000_000  # the year 2096


def entry(version: int, expires: int, data: bytes = b'{"kind":"step.completed"}') -> Record:
    return replace(an_entry(version, data), expires=expires)


def ids(stores: Stores) -> list[str]:
    return [
        row.id for shard in range(SHARDS) for row in stores.log.listed("acme", "open", shard, limit=10)[0]
    ]


@pytest.mark.parametrize(("expires", "is_there"), [(0, True), (FUTURE, True), (PAST, False)])
def test_a_head_is_there_until_it_expires(stores: Stores, expires: int, is_there: bool) -> None:
    head = a_head(expires=expires)
    assert stores.log.create_head(head) is None
    assert stores.log.read_head(SAGA) == (head if is_there else None)
    assert ids(stores) == ([SAGA.id] if is_there else [])


@pytest.mark.parametrize(("expires", "is_there"), [(0, True), (FUTURE, True), (PAST, False)])
def test_entries_and_snapshots_are_there_until_they_expire(
    stores: Stores, expires: int, is_there: bool
) -> None:
    one = entry(1, expires)
    assert stores.log.append(SAGA, one)
    stores.log.put_snapshot(SAGA, one)
    assert [as_written(record) for record in stores.log.read_tail(SAGA, 0, 0)] == ([one] if is_there else [])
    assert as_written(stores.log.read_snapshot(SAGA, 0, 1)) == (one if is_there else None)


def test_a_saga_takes_the_place_of_one_that_has_expired(stores: Stores) -> None:
    stores.log.create_head(a_head(expires=PAST, user="before"))
    heir = a_head(expires=FUTURE, user="after")
    assert stores.log.create_head(heir) is None
    assert stores.log.read_head(SAGA) == heir
    assert stores.log.create_head(a_head(user="late")) == heir


def test_an_entry_takes_the_place_of_one_that_has_expired_and_of_no_other(stores: Stores) -> None:
    for version in (1, 2, 3):
        stores.log.append(SAGA, entry(version, PAST, b'{"of":"before"}'))
    mine = entry(1, FUTURE, b'{"of":"after"}')
    assert stores.log.append(SAGA, mine)
    assert not stores.log.append(SAGA, entry(1, FUTURE, b'{"of":"late"}'))
    assert [as_written(record) for record in stores.log.read_tail(SAGA, 0, 0)] == [mine]
    assert [as_written(record) for record in stores.log.read_tail(SAGA, 0, 0, 2)] == [mine]
    assert stores.log.append_with_rows(SAGA, entry(2, FUTURE), [])
    assert [record.version for record in stores.log.read_tail(SAGA, 0, 0)] == [1, 2]


def test_a_holder_of_what_was_deleted_can_neither_take_nor_release_it(stores: Stores) -> None:
    assert stores.log.take(SAGA, "w-1", 70_000, 0, 73_000) is None
    assert not stores.log.leave_wake(SAGA, "w-1", 1, 2)
    assert not stores.log.postpone(SAGA, 61_000, 90_000)
    assert stores.log.read_head(SAGA) is None
