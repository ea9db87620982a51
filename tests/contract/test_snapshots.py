"""Snapshots on every store, as a history keeps and reads them: small ones in the table, large ones as blobs."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from baton.core.limits import Limits
from baton.core.log.snapshots import encode_moved, encode_state
from baton.ports import Head, Record
from baton.runtime.invocation.context import StoreRetrier, inline
from baton.runtime.log.history import History
from tests.contract.stores import SAGA, StillClock, Stores, a_head
from tests.contract.test_entries import noise
from tests.core.build import Saga, chain
from tests.kit.virtual_time import SeededEntropy

LIMITS = Limits(snapshot_tail_bytes=1_024)
SMALL, LARGE = 2_000, 1_000_000  # bytes that the state holds; no item of the table has room for the latter


def a_history(stores: Stores) -> History:
    clock = StillClock()
    call = StoreRetrier(inline, clock, SeededEntropy(1), LIMITS, clock.now() + 60_000)
    return History(stores.log, stores.blobs, call, SAGA)


async def keep(stores: Stores, size: int) -> Head:
    """A saga with so much in its state, and its snapshot; the head that tells of it."""
    saga = Saga(chain(3), saga=SAGA.id)
    piece = 300_000  # an entry is an item, too
    for number, start in enumerate(range(0, size, piece)):
        saga.signal("s", noise(min(piece, size - start), seed=number).decode(), f"k{number}")
    history = a_history(stores)
    for entry in saga.entries:
        assert await history.append(entry)
    await history.save_snapshot(LIMITS, 0)
    assert history.snapshot == saga.state.version
    return replace(a_head(SAGA), snapshot=history.snapshot)


async def load(stores: Stores, head: Head) -> tuple[History, int]:
    """A reader's history, and how many entries it has read."""
    reader = a_history(stores)
    return reader, len(await reader.load(head))


@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_a_snapshot_of_any_size_spares_reading_the_log(stores: Stores, size: int) -> None:
    async def main() -> None:
        head = await keep(stores, size)
        reader, read = await load(stores, head)
        assert (read, reader.snapshot, reader.tail_bytes) == (0, head.snapshot, 0)
        whole = a_history(stores)
        await whole.load(replace(head, snapshot=0))
        assert reader.state == whole.state

    asyncio.run(main())


def test_a_small_snapshot_is_in_the_table_and_a_large_one_is_a_reference_there(stores: Stores) -> None:
    async def main() -> None:
        for size in (SMALL, LARGE):
            head = await keep(stores, size)
            there = stores.log.read_snapshot(SAGA, 0, head.snapshot)
            reader, _ = await load(stores, head)
            assert there is not None
            plain = encode_state(reader.state)
            assert there.data == (
                plain if size == SMALL else encode_moved(stores.blobs.put(SAGA.tenant, plain))
            )

    asyncio.run(main())


@pytest.mark.parametrize("what", ["missing", "damaged", "no reference", "of another version"])
def test_a_blob_that_cannot_be_read_costs_a_longer_read_and_nothing_else(stores: Stores, what: str) -> None:
    async def main() -> None:
        head = await keep(stores, LARGE)
        before, _ = await load(stores, head)
        data = encode_state(before.state)
        ref = stores.blobs.put(SAGA.tenant, data)
        if what == "damaged":
            stores.overwrite_blob(SAGA.tenant, ref, data[:-1])
        elif what == "of another version":
            ref = stores.blobs.put(SAGA.tenant, data.replace(b'"shape":"', b'"shape":"x'))
        else:
            ref = "soup" if what == "no reference" else f"cas://sha256/{'0' * 64}"
        stores.log.put_snapshot(SAGA, Record(0, head.snapshot, encode_moved(ref)))
        reader, read = await load(stores, head)
        assert (reader.state, reader.snapshot, read) == (before.state, 0, before.state.version)
        await reader.save_snapshot(LIMITS, 0)
        assert (await load(stores, head))[1] == 0, "the next one mends it"

    asyncio.run(main())
