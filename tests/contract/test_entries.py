"""Contract of `Log`: appending and reading entries, and snapshots."""

from __future__ import annotations

import base64
import random
import zlib

import msgspec
import pytest

from baton.ports import Wake
from baton.ports.log import ItemTooLarge
from tests.contract.stores import OTHER, SAGA, Stores, an_entry, as_written


def noise(size: int, seed: int = 1) -> bytes:
    """A JSON object that zlib cannot make much smaller than three quarters."""
    text = base64.b64encode(random.Random(seed).randbytes(size * 3 // 4))
    return b'{"noise":"' + text + b'"}'


# -- append


def test_an_appended_entry_reads_back_as_it_was_written(stores: Stores) -> None:
    assert stores.log.append(SAGA, an_entry(1))
    assert [as_written(record) for record in stores.log.read_tail(SAGA, 0, 0)] == [an_entry(1)]


def test_a_version_is_appended_once_and_the_first_one_stays(stores: Stores) -> None:
    stores.log.append(SAGA, an_entry(1, b'{"by":"first"}'))
    assert not stores.log.append(SAGA, an_entry(1, b'{"by":"second"}'))
    assert [as_written(record) for record in stores.log.read_tail(SAGA, 0, 0)] == [
        an_entry(1, b'{"by":"first"}')
    ]


def test_even_the_same_entry_is_refused_the_second_time(stores: Stores) -> None:
    stores.log.append(SAGA, an_entry(1))
    assert not stores.log.append(SAGA, an_entry(1))


def test_the_same_version_of_another_branch_or_saga_is_another_entry(stores: Stores) -> None:
    assert stores.log.append(SAGA, an_entry(1))
    assert stores.log.append(SAGA, an_entry(1, branch=1))
    assert stores.log.append(OTHER, an_entry(1))


@pytest.mark.parametrize("size", [10, 900, 1_100, 5_000, 300_000])
def test_entries_of_any_size_come_back_whole(stores: Stores, size: int) -> None:
    for version, data in enumerate((noise(size), b'{"s":"' + b"x" * size + b'"}'), start=1):
        assert stores.log.append(SAGA, an_entry(version, data))
    first, second = stores.log.read_tail(SAGA, 0, 0)
    assert first.data == noise(size)
    assert second.data == b'{"s":"' + b"x" * size + b'"}'


AROUND = len("pk" + "T#acme#SAGA#dinner-1" + "sk" + "LOG#0000#0000000001" + "d")


@pytest.mark.parametrize("wake", [None, Wake(v=1), Wake(v=1, parent="T#acme#SAGA#parent", slot="s")])
@pytest.mark.parametrize("data", [b"{}", noise(400), b'{"s":"' + b"x" * 2_000 + b'"}', noise(3_000)])
def test_what_was_read_tells_the_size_of_the_item_that_was_written(
    tables: Stores, data: bytes, wake: Wake | None
) -> None:
    """Names, keys, data as it is stored, and the wake; counted here by hand."""
    tables.log.append(SAGA, an_entry(1, data), wake)
    (read,) = tables.log.read_tail(SAGA, 0, 0)
    around = AROUND + (0 if wake is None else len("wake") + len(msgspec.json.encode(wake)))
    plain, packed = around + len(data), around + len(zlib.compress(data))
    assert read.size == (plain if -(-plain // 1_024) <= -(-packed // 1_024) else packed)


def test_a_snapshot_that_was_read_tells_its_size_too(tables: Stores) -> None:
    tables.log.put_snapshot(SAGA, an_entry(1, b'{"state":1}'))
    snapshot = tables.log.read_snapshot(SAGA, 0, 1)
    assert snapshot is not None
    assert snapshot.size == AROUND + len("SNAP") - len("LOG") + len(b'{"state":1}')


def test_an_entry_that_no_item_can_hold_is_refused_with_its_size(stores: Stores) -> None:
    most = stores.log.limits.item_bytes
    with pytest.raises(ItemTooLarge, match=str(most)) as refused:
        stores.log.append(SAGA, an_entry(1, noise(700_000)))
    assert refused.value.size > most
    assert stores.log.read_tail(SAGA, 0, 0) == []


# -- tail


def test_a_log_that_does_not_exist_has_an_empty_tail(stores: Stores) -> None:
    assert stores.log.read_tail(SAGA, 0, 0) == []


def test_a_tail_is_in_the_order_of_versions_whatever_the_order_of_writing(stores: Stores) -> None:
    versions = [*range(1, 13), 99, 100, 101]
    for version in random.Random(7).sample(versions, len(versions)):
        stores.log.append(SAGA, an_entry(version))
    assert [record.version for record in stores.log.read_tail(SAGA, 0, 0)] == versions


def test_a_tail_begins_after_the_version_that_is_known(stores: Stores) -> None:
    for version in range(1, 6):
        stores.log.append(SAGA, an_entry(version))
    assert [record.version for record in stores.log.read_tail(SAGA, 0, 3)] == [4, 5]
    assert stores.log.read_tail(SAGA, 0, 5) == []


@pytest.mark.parametrize(("limit", "expected"), [(0, []), (2, [2, 3]), (4, [2, 3, 4, 5]), (9, [2, 3, 4, 5])])
def test_a_tail_has_at_most_as_many_entries_as_asked_for(
    stores: Stores, limit: int, expected: list[int]
) -> None:
    for version in range(1, 6):
        stores.log.append(SAGA, an_entry(version))
    assert [record.version for record in stores.log.read_tail(SAGA, 0, 1, limit)] == expected


def test_a_tail_has_only_its_own_branch(stores: Stores) -> None:
    for version, branch in ((1, 0), (2, 0), (3, 1), (4, 1), (5, 2)):
        stores.log.append(SAGA, an_entry(version, branch=branch))
    assert [as_written(record) for record in stores.log.read_tail(SAGA, 1, 0)] == [
        an_entry(3, branch=1),
        an_entry(4, branch=1),
    ]


def test_a_tail_has_no_heads_and_no_snapshots(stores: Stores) -> None:
    stores.log.append(SAGA, an_entry(1))
    stores.log.put_snapshot(SAGA, an_entry(1, b'{"state":1}'))
    assert [as_written(record) for record in stores.log.read_tail(SAGA, 0, 0)] == [an_entry(1)]


def test_a_tail_of_more_than_one_page_of_the_table_is_whole(stores: Stores) -> None:
    for version in range(1, 7):
        stores.log.append(SAGA, an_entry(version, noise(360_000, seed=version)))
    assert [record.version for record in stores.log.read_tail(SAGA, 0, 0)] == [1, 2, 3, 4, 5, 6]
    assert [record.version for record in stores.log.read_tail(SAGA, 0, 0, 5)] == [1, 2, 3, 4, 5]


# -- snapshots


def test_a_snapshot_reads_back_as_it_was_written(stores: Stores) -> None:
    stores.log.put_snapshot(SAGA, an_entry(8, b'{"state":8}'))
    assert as_written(stores.log.read_snapshot(SAGA, 0, 8)) == an_entry(8, b'{"state":8}')


def test_putting_a_snapshot_again_changes_nothing(stores: Stores) -> None:
    for _ in range(2):
        stores.log.put_snapshot(SAGA, an_entry(8, b'{"state":8}'))
    assert as_written(stores.log.read_snapshot(SAGA, 0, 100)) == an_entry(8, b'{"state":8}')


@pytest.mark.parametrize(
    ("at_most", "found"), [(7, None), (8, 8), (15, 8), (16, 16), (99, 16), (100, 100), (1_000_000, 100)]
)
def test_the_newest_snapshot_at_or_below_a_version_is_found(
    stores: Stores, at_most: int, found: int | None
) -> None:
    for version in (16, 8, 100):
        stores.log.put_snapshot(SAGA, an_entry(version))
    snapshot = stores.log.read_snapshot(SAGA, 0, at_most)
    assert (None if snapshot is None else snapshot.version) == found


def test_snapshots_of_other_branches_sagas_and_entries_are_not_found(stores: Stores) -> None:
    stores.log.put_snapshot(SAGA, an_entry(8, branch=1))
    stores.log.put_snapshot(OTHER, an_entry(8))
    stores.log.append(SAGA, an_entry(8))
    assert stores.log.read_snapshot(SAGA, 0, 100) is None
    assert stores.log.read_snapshot(SAGA, 2, 100) is None


def test_a_snapshot_that_no_item_can_hold_is_refused(stores: Stores) -> None:
    with pytest.raises(ItemTooLarge):
        stores.log.put_snapshot(SAGA, an_entry(8, noise(700_000)))
