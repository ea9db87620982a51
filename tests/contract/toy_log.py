"""The log of the third store: heads, entries, snapshots, lists, the due index and the inbox."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from baton.adapters.clock import SystemClock
from baton.core.effects.rows import Row
from baton.ports import (
    TIMER,
    WORK,
    Appended,
    Due,
    Head,
    Listed,
    Place,
    Record,
    Release,
    Report,
    SagaRef,
    Wake,
)
from baton.ports.log import NO_LABELS, is_over, shard_of
from tests.contract.stores import SHARDS
from tests.contract.toy_schedules import ToySchedules
from tests.contract.toy_table import LIMITS, Kept


class _Head(msgspec.Struct):
    """A head, and when its group last changed."""

    head: Head
    changed: int


class ToyLog:
    """`Log` and `Inbox`. `stream` has the wakes of all items that were written."""

    def __init__(self, kept: Kept) -> None:
        self.limits = LIMITS
        self._kept, self.schedules = kept, ToySchedules(kept, SHARDS)
        self.stream: list[tuple[SagaRef, Wake]] = []

    def create_head(self, head: Head) -> Head | None:
        with self._kept.alone():
            there = self.read_head(head.ref)
            if there is None:
                self._kept.put("head", str(head.ref), "", _Head(head, head.created))
                self._tell(head.ref, head.wake)
            return there

    def read_head(self, ref: SagaRef) -> Head | None:
        found = self._kept.get("head", str(ref), "", _Head)
        return None if found is None or _is_over(found.head) else found.head

    def take(
        self, ref: SagaRef, owner: str, until: int, epoch: int, due_at: int, stays: bool = False
    ) -> Head | None:
        def may(head: Head) -> bool:
            is_again = (head.owner, head.epoch) == (owner, epoch + 1) and head.until <= until
            is_seen = head.epoch == epoch or is_again
            return is_seen and (not stays or (head.due_at is not None and head.due_at <= due_at))

        due: dict[str, Any] = {} if stays else {"due_at": due_at, "lane": WORK}
        return self._change(ref, may, owner=owner, until=until, epoch=epoch + 1, wake=None, **due)

    def renew(self, ref: SagaRef, owner: str, epoch: int, until: int) -> bool:
        def may(head: Head) -> bool:
            return (head.owner, head.epoch) == (owner, epoch) and head.until <= until

        return self._change(ref, may, until=until) is not None

    def leave_wake(self, ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        def may(head: Head) -> bool:
            return (head.owner, head.epoch) == (owner, epoch) and head.pending_wake < version

        return self._change(ref, may, pending_wake=version) is not None

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        def may(head: Head) -> bool:
            is_mine = (head.owner, head.epoch) == (owner, epoch)
            is_known = head.armed == release.armed and release.inbox in (None, head.inbox)
            return is_mine and head.pending_wake <= release.folded and is_known

        same = ("folded", "status", "branch", "snapshot", "due_at", "lane", "quiet_since", "timer", "wake")
        fields: dict[str, Any] = {name: getattr(release, name) for name in same}
        fields |= {"start": b""} if release.clear_start else {}
        fields |= {} if release.models is None else {"models": release.models}
        fields |= {} if release.build is None else {"build": release.build}
        fields |= {} if release.group_at is None else {"group": release.group}
        fields |= {"owner": "", "until": 0, "pending_wake": 0}
        fields |= {} if release.inbox is None else {"inbox": 0}
        return self._change(ref, may, changed=release.group_at, **fields) is not None

    def arm(self, seen: Head, until: int) -> bool:
        changes: dict[str, Any] = {"armed": max(seen.armed, until)}
        if seen.due_at is None or seen.due_at > until:
            changes |= {"due_at": until, "lane": WORK}
        return self._change(seen.ref, lambda head: head == seen, **changes) is not None

    def defer(self, seen: Head, due_at: int, lane: str, wake: Wake | None = None) -> bool:
        wake = wake or seen.wake
        return (
            self._change(seen.ref, lambda head: head == seen, due_at=due_at, lane=lane, wake=wake) is not None
        )

    def postpone(self, ref: SagaRef, now: int, until: int) -> bool:
        def may(head: Head) -> bool:
            return head.due_at is not None and head.due_at <= now and head.until <= now

        return self._change(ref, may, due_at=until) is not None

    def leave(self, reports: Sequence[Report], until: int) -> None:
        with self._kept.alone():
            for one in reports:
                place = f"{one.parent}\0{one.window}"
                self._kept.put("report", place, f"{one.slot}\0{one.child}", one)

    def announce(self, parent: SagaRef) -> bool:
        with self._kept.alone():
            head = self.read_head(parent)
            count = 0 if head is None else head.inbox + 1
            before = self._change(parent, lambda head: head.due_at is not None, inbox=count)
            return before is not None and not before.owner

    def read(self, parent: SagaRef, window: int) -> Sequence[Report]:
        found = self._kept.between("report", f"{parent}\0{window}", "", "\U0010ffff", Report)
        return list(found)

    def _change(
        self, ref: SagaRef, may: Callable[[Head], bool], *, changed: int | None = None, **fields: Any
    ) -> Head | None:
        with self._kept.alone():
            found = self._kept.get("head", str(ref), "", _Head)
            if found is None or not may(found.head):
                return None
            after = replace(found.head, **fields)
            self._kept.put("head", str(ref), "", _Head(after, found.changed if changed is None else changed))
            if after != found.head:
                self._tell(ref, after.wake)
            return found.head

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        with self._kept.alone():
            if not self.append_with_rows(ref, record, (), wake):
                return None
            word = self._kept.get("watched", str(ref), "", Appended) or Appended()
            self._kept.put("watched", str(ref), "", Appended())
            return word

    def leave_word(self, head: Head, until: int) -> bool:
        if not head.owner:
            return (
                self._change(head.ref, lambda one: not one.owner and not one.wake, watched=until) is not None
            )
        with self._kept.alone():
            self._kept.put("watched", str(head.ref), "", Appended(until))
        return True

    def append_with_rows(
        self, ref: SagaRef, record: Record, rows: Sequence[Row], wake: Wake | None = None
    ) -> bool:
        with self._kept.alone():
            sort = _sort(record.branch, record.version)
            there = self._kept.get("entry", str(ref), sort, Record)
            if there is not None and not _is_over(there):
                return False
            self._put("entry", ref, record)
            for row in rows:
                self._kept.put("row", ref.tenant, f"{row.key}\0{row.sort}", row.attributes)
            self._tell(ref, wake)
            return True

    def _put(self, kind: str, ref: SagaRef, record: Record) -> None:
        stored = replace(record, size=len(record.data))
        self._kept.put(kind, str(ref), _sort(record.branch, record.version), stored)

    def pass_on(self, ref: SagaRef, wake: Wake) -> None:
        self._tell(ref, wake)

    def _tell(self, ref: SagaRef, wake: Wake | None) -> None:
        if wake is not None:
            self.stream.append((ref, wake))

    def read_tail(self, ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        first, last = _sort(branch, after + 1), _sort(branch, 10**10 - 1)
        found = list(self._kept.between("entry", str(ref), first, last, Record))[:limit]
        return [record for record in found if not _is_over(record)]

    def put_snapshot(self, ref: SagaRef, record: Record) -> None:
        with self._kept.alone():
            self._put("snapshot", ref, record)

    def read_snapshot(self, ref: SagaRef, branch: int, at_most: int) -> Record | None:
        first, last = _sort(branch, 0), _sort(branch, at_most)
        found = list(self._kept.between("snapshot", str(ref), first, last, Record))
        return found[-1] if found and not _is_over(found[-1]) else None

    def _heads(self, shard: int) -> list[_Head]:
        found = (one for _, _, one in self._kept.all("head", _Head))
        return [one for one in found if shard_of(one.head.ref.id, SHARDS) == shard]

    def due(
        self, lane: str, shard: int, since: int, until: int, limit: int, after: Due | None = None
    ) -> Sequence[Due]:
        heads = (one.head for one in self._heads(shard) if one.head.lane == lane)
        due = [(head.due_at, str(head.ref), head.ref) for head in heads if head.due_at is not None]
        due += self.schedules.due(shard) if lane == TIMER else []
        last = (after[1], str(after[0])) if after else (0, "")
        found = (one for one in sorted(due, key=lambda one: one[:2]) if since <= one[0] <= until)
        return [(ref, at) for at, name, ref in found if (at, name) > last][:limit]

    def at_work(self, tenant: str, shard: int, most: int) -> int:
        heads = (one.head for one in self._heads(shard))
        return min(sum((head.ref.tenant, head.group) == (tenant, "open") for head in heads), most)

    def listed(
        self,
        tenant: str,
        group: str,
        shard: int,
        *,
        limit: int,
        since: int = 0,
        workflow: str = "",
        status: str = "",
        user: str = "",
        labels: Mapping[str, str] = NO_LABELS,
        after: Place | None = None,
    ) -> tuple[Sequence[Listed], Place | None]:
        found = [
            Listed(
                id=one.head.ref.id,
                workflow=one.head.workflow,
                status=one.head.status,
                user=one.head.user,
                created=one.head.created,
                changed=one.changed,
                models=one.head.models,
                labels=one.head.labels,
            )
            for one in self._heads(shard)
            if (one.head.ref.tenant, one.head.group) == (tenant, group)
            and one.changed >= since
            and not _is_over(one.head)
        ]
        rows = sorted(found, key=lambda row: row.place, reverse=True)
        rows = [row for row in rows if after is None or row.place < after]
        page = rows[:limit]
        wanted = [row for row in page if workflow in ("", row.workflow) and status in ("", row.status)]
        wanted = [row for row in wanted if user in ("", row.user)]
        wanted = [row for row in wanted if labels.items() <= row.labels.items()]
        return wanted, page[-1].place if len(rows) > limit else None


def _is_over(item: Head | Record) -> bool:
    return is_over(item.expires, SystemClock().now())


def _sort(branch: int, version: int) -> str:
    return f"{branch:04d}#{version:010d}"
