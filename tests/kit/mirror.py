"""A world whose log is also kept on a real table: the same calls, the same answers, and the requests are metered.

What happens is decided by the log in memory, so that virtual time and the stream are the simulation's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

from baton.adapters.dynamo.log import DynamoLog
from baton.adapters.memory.log import MemoryLog
from baton.core.effects.rows import Row
from baton.ports import Head, Record, Release, SagaRef, Wake
from tests.kit.meter import TABLE, Meter
from tests.kit.process import Process
from tests.kit.world import SHARDS, World

T = TypeVar("T")


class MirrorLog(MemoryLog):
    """A log in memory that does everything on a table too, and finds it answered the same."""

    def __init__(self, real: DynamoLog, **options: Any) -> None:
        super().__init__(SHARDS, **options)
        self._real = real

    def create_head(self, head: Head) -> Head | None:
        return _same(self._real.create_head(head), super().create_head(head))

    def read_head(self, ref: SagaRef) -> Head | None:
        return _same(self._real.read_head(ref), super().read_head(ref))

    def take(self, ref: SagaRef, owner: str, until: int, epoch: int, due_at: int) -> Head | None:
        taken = self._real.take(ref, owner, until, epoch, due_at)
        return _same(taken, super().take(ref, owner, until, epoch, due_at))

    def leave_wake(self, ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        return _same(
            self._real.leave_wake(ref, owner, epoch, version), super().leave_wake(ref, owner, epoch, version)
        )

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        return _same(
            self._real.release(ref, owner, epoch, release), super().release(ref, owner, epoch, release)
        )

    def postpone(self, ref: SagaRef, now: int, until: int) -> bool:
        return _same(self._real.postpone(ref, now, until), super().postpone(ref, now, until))

    def arm(self, seen: Head, until: int) -> bool:
        return _same(self._real.arm(seen, until), super().arm(seen, until))

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> bool:
        return _same(self._real.append(ref, record, wake), super().append(ref, record, wake))

    def append_with_rows(
        self, ref: SagaRef, record: Record, rows: Sequence[Row], wake: Wake | None = None
    ) -> bool:
        done = self._real.append_with_rows(ref, record, rows, wake)
        return _same(done, MemoryLog.append(self, ref, record, wake))

    def read_tail(self, ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        there = list(self._real.read_tail(ref, branch, after, limit))
        return _same(there, list(super().read_tail(ref, branch, after, limit)))

    def put_snapshot(self, ref: SagaRef, record: Record) -> None:
        self._real.put_snapshot(ref, record)
        super().put_snapshot(ref, record)

    def read_snapshot(self, ref: SagaRef, branch: int, at_most: int) -> Record | None:
        return _same(
            self._real.read_snapshot(ref, branch, at_most), super().read_snapshot(ref, branch, at_most)
        )


def _same(real: T, here: T) -> T:
    assert real == here
    return here


class MeteredWorld(World):
    """A world with such a log, on the table that `meter` watches. `roles` counts the processes of each role."""

    def __init__(self, *arguments: Any, meter: Meter, **options: Any) -> None:
        self.meter = meter
        super().__init__(*arguments, **options)

    def __post_init__(self) -> None:
        super().__post_init__()
        real = DynamoLog(self.meter.client, TABLE, SHARDS)
        self.log = self.store.log = MirrorLog(real, lag=True, on_wake=self._on_wake)
        self.roles: Counter[str] = Counter()

    def process(self, role: str) -> Process:
        self.roles[role] += 1
        return super().process(role)
