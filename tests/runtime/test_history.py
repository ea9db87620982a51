"""What a load reads, and what it keeps in memory: bounded at any age of a saga, whatever was forked in it."""

from __future__ import annotations

import asyncio
import base64
import random
import tracemalloc
from collections.abc import Mapping, Sequence

import pytest

from baton.adapters.memory.log import MemoryLog
from baton.adapters.memory.store import MemoryBlobs
from baton.core.limits import Limits
from baton.core.log import codec
from baton.core.log import events as ev
from baton.errors import CorruptLog
from baton.ports import Head, Record, SagaRef
from baton.runtime.invocation.context import StoreRetrier, inline
from baton.runtime.log.history import PAGE, History
from tests.core.build import chain, program, replay, started, task
from tests.kit.virtual_time import EPOCH, SeededEntropy

SAGA = SagaRef("acme", "s1")
LIMITS = Limits()


class StillClock:
    def now(self) -> int:
        return EPOCH


class Read(MemoryLog):
    """Counts the bytes and the entries that were read of it."""

    read = 0
    entries = 0

    def read_tail(self, ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        page = super().read_tail(ref, branch, after, limit)
        self.read += sum(len(record.data) for record in page)
        self.entries += len(page)
        return page

    def read_snapshot(self, ref: SagaRef, branch: int, at_most: int) -> Record | None:
        found = super().read_snapshot(ref, branch, at_most)
        self.read += len(found.data) if found else 0
        return found


class ReadBlobs(MemoryBlobs):
    """Counts the bytes that were read of it."""

    read = 0

    def get(self, tenant: str, ref: str) -> bytes:
        data = super().get(tenant, ref)
        self.read += len(data)
        return data


class Desk:
    """A saga's stores, and histories over them."""

    def __init__(self) -> None:
        self.log, self.blobs = Read(), ReadBlobs()

    def history(self) -> History:
        call = StoreRetrier(inline, StillClock(), SeededEntropy(1), LIMITS, EPOCH + 60_000)
        return History(self.log, self.blobs, call, SAGA)

    def head(self, history: History) -> Head:
        """As a release of this history leaves it."""
        return Head(
            ref=SAGA,
            workflow="w",
            graph="hash",
            user="ada",
            created=EPOCH,
            start_hash="",
            branch=history.state.lineage.branch,
            folded=history.state.version,
            snapshot=history.snapshot,
        )


async def put(history: History, *events: ev.Event) -> None:
    assert await history.append(history.next_entry(events, at=EPOCH, invocation="i1", epoch=1))


def round_of(number: int, size: int) -> ev.Event:
    """One round of a saga that keeps nothing of it: what a step has spent, with so much said about it."""
    return ev.StepInterrupted(
        node="n0", started_at=1, ended_at=2, budget_ms=3, why=f"{number} " + "x" * size, cost=1
    )


def test_a_saga_with_a_large_state_loads_in_bounded_bytes_after_thousands_of_rounds() -> None:
    async def main() -> None:
        desk = Desk()
        history = desk.history()
        await put(history, started(chain(2)))
        state_bytes = 0
        for number in range(70):  # as much as no item of the table holds
            text = base64.b64encode(random.Random(number).randbytes(6_000)).decode()
            state_bytes += len(text)
            await put(
                history, ev.SignalReceived(name="s", key=f"k{number}", payload=ev.Value(v=text), by="a", at=1)
            )
        for number in range(2_500):
            await put(history, round_of(number, 1_000))
            if number % 10 == 9:
                await history.save_snapshot(LIMITS, 0)  # at each release
        assert state_bytes > 500_000
        before = desk.log.read
        reader = desk.history()
        await reader.load(desk.head(history))
        assert reader.state == history.state
        assert desk.log.read - before + desk.blobs.read < 2.1 * state_bytes

    asyncio.run(main())


# ---- forks

LENGTH = 1_000  # entries, of a state with hundreds of things in it
FORKS = 20
STEP = LENGTH // FORKS
CUTS: Mapping[str, Mapping[int, int]] = {
    "one at the end": {LENGTH: LENGTH // 2},
    "to just before": {STEP * n: STEP * n - 10 for n in range(1, FORKS + 1)},
    "ever later, at the end": {LENGTH - FORKS + n: STEP * n // 2 for n in range(1, FORKS + 1)},
    "ever earlier, at the end": {
        LENGTH - FORKS + n: LENGTH - FORKS - STEP * n // 2 for n in range(1, FORKS + 1)
    },
    "to the same version": {LENGTH - FORKS + n: 7 for n in range(1, FORKS + 1)},
}
"""Where a log has its forks, and to which version."""


def forked(cuts: Mapping[int, int]) -> tuple[Desk, list[ev.Entry]]:
    desk, entries = Desk(), list[ev.Entry]()
    branch = 0
    event: ev.Event
    for version in range(1, LENGTH + 1):
        if version == 1:
            event = started(program(*(task(f"n{number}") for number in range(300))))
        elif version in cuts:
            event = ev.Forked(cut=cuts[version], branch=branch + 1, by="ada", at=version)
        else:
            event = ev.StepInterrupted(node=f"n{version % 300}", started_at=1, ended_at=2, budget_ms=3)
        one = ev.Entry(version=version, branch=branch, at=version, epoch=1, invocation="i1", events=(event,))
        desk.log.append(SAGA, Record(branch, version, codec.encode_entry(one)))
        entries.append(one)
        branch += version in cuts
    return desk, entries


@pytest.mark.parametrize("cuts", CUTS.values(), ids=list(CUTS))
def test_after_forks_a_load_keeps_only_what_was_asked_for_and_comes_to_the_same_state(
    cuts: Mapping[int, int],
) -> None:
    desk, entries = forked(cuts)
    reader = desk.history()
    tracemalloc.start()
    try:
        asyncio.run(reader.load(desk.head(desk.history())))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert reader.state == replay(entries)
    assert kept < 200_000 + 120_000 * len(cuts), "a state here has at most 100 kB; there were 1,000"


@pytest.mark.parametrize(
    ("where", "times"),
    [
        ("one at the end", 1.51),
        ("to just before", 2),
        ("ever later, at the end", 1.51),
        ("to the same version", 1.01),
        ("ever earlier, at the end", 1 + FORKS * 0.76),
    ],
)
def test_a_load_reads_the_log_and_from_the_nearest_known_state_to_each_cut(where: str, times: float) -> None:
    desk, _ = forked(CUTS[where])
    asyncio.run(desk.history().load(desk.head(desk.history())))
    assert desk.log.entries <= times * LENGTH


def test_the_past_is_read_in_pages() -> None:
    desk, _ = forked({})
    history = desk.history()
    limits = []
    read_tail = desk.log.read_tail

    def read(ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        limits.append(limit)
        return read_tail(ref, branch, after, limit)

    desk.log.read_tail = read  # type: ignore[method-assign]  # to see the limits
    state = asyncio.run(history.state_at(3 * PAGE + 5))
    assert (state.version, limits) == (3 * PAGE + 5, [PAGE, PAGE, PAGE, 5])


def test_the_state_at_the_version_that_was_read_last_or_at_the_snapshot_is_known_without_reading() -> None:
    async def main() -> None:
        desk = Desk()
        writer = desk.history()
        await put(writer, started(chain(2)))
        for number in range(40):
            await put(writer, round_of(number, 1_000))
        await writer.save_snapshot(LIMITS, 0)
        snapshot = writer.state
        for number in range(5):
            await put(writer, round_of(number, 10))
        reader = desk.history()
        await reader.load(desk.head(writer))
        before = desk.log.entries
        assert await reader.state_at(snapshot.version) == snapshot
        assert await reader.state_at(writer.state.version) == writer.state
        assert desk.log.entries == before
        assert (await reader.state_at(snapshot.version + 2)).version == snapshot.version + 2
        assert desk.log.entries == before + 2

    asyncio.run(main())


@pytest.mark.parametrize("version", [LENGTH + 1, LENGTH + 1_000])
def test_a_version_that_is_not_there_is_told_of(version: int) -> None:
    desk, _ = forked(CUTS["one at the end"])
    with pytest.raises(CorruptLog, match=f"no version {version}"):
        asyncio.run(desk.history().state_at(version))
