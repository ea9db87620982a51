"""What a load reads, and what it keeps in memory: bounded at any age of a saga, whatever was forked in it."""

from __future__ import annotations

import asyncio
import base64
import random
from collections.abc import Sequence

from baton.adapters.memory import MemoryBlobs, MemoryLog
from baton.core import events as ev
from baton.core.limits import Limits
from baton.ports import Head, Record, SagaRef
from baton.runtime.history import History
from baton.runtime.patience import Patience, inline
from tests.core.build import chain, started
from tests.kit.virtual import EPOCH, SeededEntropy

SAGA = SagaRef("acme", "s1")
LIMITS = Limits()


class StillClock:
    def now(self) -> int:
        return EPOCH


class Read(MemoryLog):
    """Counts the bytes that were read of it, and the entries of the largest page."""

    read = 0
    most = 0

    def read_tail(self, ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        page = super().read_tail(ref, branch, after, limit)
        self.read += sum(len(record.data) for record in page)
        self.most = max(self.most, len(page))
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
        call = Patience(inline, StillClock(), SeededEntropy(1), LIMITS, EPOCH + 60_000)
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
            branch=history.state.branch,
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
            await put(history, ev.SignalReceived(name="s", key=f"k{number}", payload=ev.Value(v=text), by="a", at=1))
        for number in range(2_500):
            await put(history, round_of(number, 1_000))
            if number % 10 == 9:
                await history.save_snapshot(LIMITS)  # at each release
        assert state_bytes > 500_000
        before = desk.log.read
        reader = desk.history()
        await reader.load(desk.head(history))
        assert reader.state == history.state
        assert desk.log.read - before + desk.blobs.read < 2.1 * state_bytes

    asyncio.run(main())
