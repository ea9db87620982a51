"""A world whose log is also kept on a real table: the same calls, the same answers, and the requests are metered.

What happens is decided by the log in memory, so that virtual time and the stream are the simulation's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from typing import Any, TypeVar

from baton.adapters.dynamo.budgets import DynamoBudgets
from baton.adapters.dynamo.log import DynamoInbox, DynamoLog
from baton.adapters.dynamo.people import DynamoNoticeRecord, DynamoQuestions
from baton.adapters.memory.log import MemoryInbox, MemoryLog
from baton.adapters.memory.people import MemoryNoticeRecord, MemoryQuestions
from baton.adapters.memory.store import MemoryBudgets
from baton.core.effects.rows import Row
from baton.core.log.events import Notice
from baton.ports import (
    Account,
    Appended,
    BudgetAnswer,
    Drawn,
    Head,
    QuestionRow,
    Record,
    Release,
    Report,
    ReservationChange,
    SagaRef,
    Spot,
    Sums,
    Wake,
)
from tests.kit.meter import TABLE, Meter
from tests.kit.process import Process
from tests.kit.virtual_time import VirtualClock
from tests.kit.world import SHARDS, World

T = TypeVar("T")


class MirrorInbox(MemoryInbox):
    """The same of the inboxes."""

    def __init__(self, real: DynamoInbox, log: MemoryLog) -> None:
        super().__init__(log)
        self._real = real

    def leave(self, reports: Sequence[Report], until: int) -> None:
        self._real.leave(reports, until)
        super().leave(reports, until)

    def announce(self, parent: SagaRef) -> bool:
        return _same(self._real.announce(parent), super().announce(parent))

    def read(self, parent: SagaRef, window: int) -> Sequence[Report]:
        return _same(list(self._real.read(parent, window)), list(super().read(parent, window)))


class MirrorQuestions(MemoryQuestions):
    """The same of the rows of questions."""

    def __init__(self, real: DynamoQuestions) -> None:
        super().__init__()
        self._real = real

    def put(self, tenant: str, row: QuestionRow, number: int, until: int) -> None:
        self._real.put(tenant, row, number, until)
        super().put(tenant, row, number, until)

    def remove(self, ref: SagaRef, ask: str, number: int, until: int) -> None:
        self._real.remove(ref, ask, number, until)
        super().remove(ref, ask, number, until)

    def removed(self, ref: SagaRef, number: int) -> Collection[str]:
        return _same(set(self._real.removed(ref, number)), set(super().removed(ref, number)))

    def listed(
        self, tenant: str, audience: str, now: int, limit: int, after: Spot | None = None
    ) -> tuple[Sequence[QuestionRow], Spot | None]:
        there = self._real.listed(tenant, audience, now, limit, after)
        return _same(there, super().listed(tenant, audience, now, limit, after))


class MirrorBudgets(MemoryBudgets):
    """The same of accounts that only move."""

    def __init__(self, real: DynamoBudgets) -> None:
        super().__init__()
        self._real = real

    def move(self, account: Account, change: ReservationChange, now: int) -> BudgetAnswer:
        return _same(self._real.move(account, change, now), super().move(account, change, now))

    def draw(self, account: Account, seen: Sums, drawn: int, limit: int | None = None) -> Drawn:
        return _same(self._real.draw(account, seen, drawn, limit), super().draw(account, seen, drawn, limit))


class MirrorRecord(MemoryNoticeRecord):
    """The same of the claims of notices."""

    def __init__(self, real: DynamoNoticeRecord) -> None:
        super().__init__()
        self._real = real

    def claim(self, tenant: str, saga: str, notice: Notice, now: int) -> Notice | None:
        return _same(self._real.claim(tenant, saga, notice, now), super().claim(tenant, saga, notice, now))

    def sent(self, tenant: str, key: str, now: int, refused: str = "") -> None:
        self._real.sent(tenant, key, now, refused)
        super().sent(tenant, key, now, refused)


class MirrorLog(MemoryLog):
    """A log in memory that does everything on a table too, and finds it answered the same."""

    def __init__(self, real: DynamoLog, **options: Any) -> None:
        super().__init__(SHARDS, **options)
        self._real = real

    def create_head(self, head: Head) -> Head | None:
        return _same(self._real.create_head(head), super().create_head(head))

    def read_head(self, ref: SagaRef) -> Head | None:
        return _same(self._real.read_head(ref), super().read_head(ref))

    def take(
        self, ref: SagaRef, owner: str, until: int, epoch: int, due_at: int, stays: bool = False
    ) -> Head | None:
        taken = self._real.take(ref, owner, until, epoch, due_at, stays)
        return _same(taken, super().take(ref, owner, until, epoch, due_at, stays))

    def renew(self, ref: SagaRef, owner: str, epoch: int, until: int) -> bool:
        return _same(self._real.renew(ref, owner, epoch, until), super().renew(ref, owner, epoch, until))

    def leave_wake(self, ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        return _same(
            self._real.leave_wake(ref, owner, epoch, version), super().leave_wake(ref, owner, epoch, version)
        )

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        return _same(
            self._real.release(ref, owner, epoch, release), super().release(ref, owner, epoch, release)
        )

    def defer(self, seen: Head, due_at: int, lane: str, wake: Wake | None = None) -> bool:
        return _same(self._real.defer(seen, due_at, lane, wake), super().defer(seen, due_at, lane, wake))

    def postpone(self, ref: SagaRef, now: int, until: int) -> bool:
        return _same(self._real.postpone(ref, now, until), super().postpone(ref, now, until))

    def arm(self, seen: Head, until: int) -> bool:
        return _same(self._real.arm(seen, until), super().arm(seen, until))

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        return _same(self._real.append(ref, record, wake), super().append(ref, record, wake))

    def append_with_rows(
        self, ref: SagaRef, record: Record, rows: Sequence[Row], wake: Wake | None = None
    ) -> bool:
        done = self._real.append_with_rows(ref, record, rows, wake)
        return _same(done, MemoryLog.append(self, ref, record, wake) is not None)

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
        real = DynamoLog(self.meter.client, TABLE, SHARDS, VirtualClock())
        self.log = self.store.log = MirrorLog(real, lag=True, on_wake=self._on_wake, clock=VirtualClock())
        self.store.inbox = MirrorInbox(DynamoInbox(self.meter.client, TABLE), self.log)
        self.store.questions = MirrorQuestions(DynamoQuestions(self.meter.client, TABLE, real.table_of))
        self.roles: Counter[str] = Counter()

    def process(self, role: str, version: str = "") -> Process:
        self.roles[role] += 1
        return super().process(role, version)


class MeteredForPeople(MeteredWorld):
    """The same with the places of people and the claims of notices; without money."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.store.budgets = self.budgets = MirrorBudgets(DynamoBudgets(self.meter.client, TABLE))
        self.store.notice_record = MirrorRecord(DynamoNoticeRecord(self.meter.client, TABLE))
