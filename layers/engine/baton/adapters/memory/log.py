"""The log in memory: heads, entries, snapshots, and the table's stream as far as it carries wakes.

It keeps what the port promises and the table's own habits that the engine depends on: the stream repeats a
wake for as long as it stays on an item, and the due index may lag behind. One lock makes every call atomic.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from baton.core.effects.rows import Row, RowRoom
from baton.ports import (
    TIMER,
    WORK,
    Appended,
    Clock,
    Due,
    Head,
    Listed,
    Place,
    Record,
    Release,
    Report,
    SagaRef,
    StoreLimits,
    Wake,
)
from baton.ports.log import NO_LABELS, is_over, pack, shard_of

_Row: TypeAlias = tuple[int, str, SagaRef]


class DueIndex:
    """Rows by lane and shard. With `lag`, `settle` brings its copy up to date. Its user has the lock."""

    def __init__(self, shards: int, *, lag: bool) -> None:
        self._shards = shards
        self._rows: dict[tuple[str, int], list[_Row]] = defaultdict(list)
        self._seen = defaultdict(list) if lag else self._rows

    def put(self, head: Head) -> None:
        """Add a head, if it is due at some time."""
        if head.due_at is not None:
            insort(self._of(head), _row(head), key=_place)

    def remove(self, head: Head) -> None:
        """Take out a head as it was put."""
        if head.due_at is not None:
            rows = self._of(head)
            rows.pop(bisect_left(rows, _place(_row(head)), key=_place))

    def move(self, ref: SagaRef, before: int, after: int) -> None:
        """Move an item of lane `timer` that is no head. 0: not in the index."""
        rows = self._rows[TIMER, shard_of(ref.id, self._shards)]
        if before:
            rows.remove((before, str(ref), ref))
        if after:
            insort(rows, (after, str(ref), ref), key=_place)

    def between(
        self, lane: str, shard: int, since: int, until: int, limit: int, after: Due | None
    ) -> Sequence[Due]:
        """Return the items due then, after `after`."""
        rows = self._seen[lane, shard]
        if not rows or rows[0][0] > until:
            return []
        first = bisect_left(rows, (since, ""), key=_place)
        if after is not None:
            first = max(first, bisect_right(rows, (after[1], str(after[0])), key=_place))
        last = bisect_left(rows, (until + 1, ""), key=_place)
        return [(ref, due_at) for due_at, _, ref in rows[first : min(last, first + limit)]]

    def settle(self) -> None:
        """Catch up; without `lag` it always has."""
        if self._seen is not self._rows:
            self._seen = defaultdict(list, {key: rows.copy() for key, rows in self._rows.items()})

    def _of(self, head: Head) -> list[_Row]:
        return self._rows[head.lane, shard_of(head.ref.id, self._shards)]


def _row(head: Head) -> _Row:
    return head.due_at or 0, str(head.ref), head.ref


def _place(row: _Row) -> tuple[int, str]:
    return row[0], row[1]


ITEM_BYTES = 400 * 1024
OPEN_RESERVATIONS = 200


def limits(shards: int, status_shards: int) -> StoreLimits:
    """Return the limits of a store whose indexes are spread over so many partitions."""
    rows = RowRoom(rows=90, bytes=3_500_000)
    return StoreLimits(item_bytes=ITEM_BYTES, rows=rows, due_shards=shards, status_shards=status_shards)


_TTL = 6  # bytes of a number of ten digits
_ENTRY_OVERHEAD = 256  # keys and names around entry 1 on a head; generous, so that no real store takes less


class MemoryLog:
    """Heads, entries and snapshots, and the table's stream as far as it carries wakes.

    Every write that leaves `wake` on a changed item adds (saga, wake) to the stream: it goes to
    `on_wake` when that is given (called after the write, outside the lock), else it waits for `drain`.
    With `lag`, `due` answers from a copy of the index that only `settle_index` brings up to date.
    """

    def __init__(
        self,
        shards: int = 4,
        *,
        lag: bool = False,
        on_wake: Callable[[SagaRef, Wake], None] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._shards = shards
        self.limits = limits(shards, shards)
        self._heads: dict[SagaRef, Head] = {}
        self._changed: dict[SagaRef, int] = {}
        self._entries: dict[tuple[SagaRef, int], dict[int, Record]] = {}
        self._versions: dict[tuple[SagaRef, int], list[int]] = {}
        self._snapshots: dict[tuple[SagaRef, int], dict[int, Record]] = {}
        self._watched: dict[SagaRef, int] = {}
        self._due = DueIndex(shards, lag=lag)
        self._stream: list[tuple[SagaRef, Wake]] = []
        self.rows: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._on_wake = on_wake

    # -- heads

    def create_head(self, head: Head) -> Head | None:
        with self._lock:
            there = self._heads.get(head.ref)
            if there is not None and not self._is_over(there):
                return there
            if head.start:
                pack(head.start, _ENTRY_OVERHEAD, ITEM_BYTES)
            self._heads[head.ref] = head
            self._changed[head.ref] = head.created
            self._due.put(head)
            self._emit(head.ref, head.wake)
        self._deliver()
        return None

    def read_head(self, ref: SagaRef) -> Head | None:
        with self._lock:
            head = self._heads.get(ref)
            return None if head is None or self._is_over(head) else head

    def take(
        self, ref: SagaRef, owner: str, until: int, epoch: int, due_at: int, stays: bool = False
    ) -> Head | None:
        def change(head: Head) -> Head | None:
            is_again = (head.owner, head.epoch) == (owner, epoch + 1) and head.until <= until
            if head.epoch != epoch and not is_again:
                return None
            due, lane = (head.due_at, head.lane) if stays else (due_at, WORK)
            if due is None or due > due_at:
                return None
            return msgspec.structs.replace(
                head, owner=owner, until=until, due_at=due, lane=lane, epoch=epoch + 1, wake=None
            )

        return self._update(ref, change)

    def renew(self, ref: SagaRef, owner: str, epoch: int, until: int) -> bool:
        def change(head: Head) -> Head | None:
            if (head.owner, head.epoch) != (owner, epoch) or head.until > until:
                return None
            return msgspec.structs.replace(head, until=until)

        return self._update(ref, change) is not None

    def leave_wake(self, ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        def change(head: Head) -> Head | None:
            if (head.owner, head.epoch) != (owner, epoch) or head.pending_wake >= version:
                return None
            return msgspec.structs.replace(head, pending_wake=version)

        return self._update(ref, change) is not None

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        def change(head: Head) -> Head | None:
            if (head.owner, head.epoch) != (owner, epoch):
                return None
            if head.pending_wake > release.folded or head.armed != release.armed:
                return None
            if release.inbox not in (None, head.inbox):
                return None
            if release.group_at is not None:
                self._changed[ref] = release.group_at
            return msgspec.structs.replace(
                head,
                owner="",
                until=0,
                pending_wake=0,
                inbox=head.inbox if release.inbox is None else 0,
                folded=release.folded,
                status=release.status,
                group=head.group if release.group_at is None else release.group,
                branch=release.branch,
                snapshot=release.snapshot,
                due_at=release.due_at,
                lane=release.lane,
                quiet_since=release.quiet_since,
                timer=release.timer,
                wake=release.wake,
                start=b"" if release.clear_start else head.start,
                build=head.build if release.build is None else release.build,
                models=head.models if release.models is None else release.models,
            )

        return self._update(ref, change) is not None

    def arm(self, seen: Head, until: int) -> bool:
        def change(head: Head) -> Head | None:
            if head != seen:
                return None
            due_at, lane = head.due_at, head.lane
            if due_at is None or due_at > until or not lane:
                due_at, lane = until, WORK
            return msgspec.structs.replace(head, armed=max(head.armed, until), due_at=due_at, lane=lane)

        return self._update(seen.ref, change) is not None

    def defer(self, seen: Head, due_at: int, lane: str, wake: Wake | None = None) -> bool:
        def change(head: Head) -> Head | None:
            after = msgspec.structs.replace(head, due_at=due_at, lane=lane, wake=wake or head.wake)
            return after if head == seen else None

        return self._update(seen.ref, change) is not None

    def announce(self, ref: SagaRef) -> bool:
        """Implement `Inbox.announce`, which counts on the head."""

        def change(head: Head) -> Head | None:
            return None if head.due_at is None else msgspec.structs.replace(head, inbox=head.inbox + 1)

        before = self._update(ref, change)
        return before is not None and not before.owner

    def postpone(self, ref: SagaRef, now: int, until: int) -> bool:
        def change(head: Head) -> Head | None:
            if head.due_at is None or head.due_at > now or head.until > now:
                return None
            return msgspec.structs.replace(head, due_at=until)

        return self._update(ref, change) is not None

    def _update(self, ref: SagaRef, change: Callable[[Head], Head | None]) -> Head | None:
        """Replace a head by what `change` makes of it; the head as it was, or None when refused."""
        with self._lock:
            before = self._heads.get(ref)
            after = None if before is None else change(before)
            if before is None or after is None:
                return None
            self._heads[ref] = after
            self._due.remove(before)
            self._due.put(after)
            if after != before:  # a table's stream is silent about an update that changes nothing
                self._emit(ref, after.wake)
        self._deliver()
        return before

    # -- entries and snapshots

    def leave_word(self, head: Head, until: int) -> bool:
        """Leave a wake in a saga's inbox; see `Live.leave_word`."""

        def change(found: Head) -> Head | None:
            return None if found.owner or found.wake else msgspec.structs.replace(found, watched=until)

        if not head.owner:
            return self._update(head.ref, change) is not None
        with self._lock:
            self._watched[head.ref] = until
        return True

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        record = _stored(ref, "LOG", record, wake)
        branch = (ref, record.branch)
        with self._lock:
            entries = self._entries.setdefault(branch, {})
            there = entries.get(record.version)
            if there is not None and not self._is_over(there):
                return None
            entries[record.version] = record
            if there is None:
                insort(self._versions.setdefault(branch, []), record.version)
            watched = self._watched.pop(ref, 0)
            self._emit(ref, wake)
        self._deliver()
        return Appended(watched)

    def append_with_rows(
        self, ref: SagaRef, record: Record, rows: Sequence[Row], wake: Wake | None = None
    ) -> bool:
        done = self.append(ref, record, wake) is not None
        if done:
            with self._lock:
                self.rows.update({(ref.tenant, row.key, row.sort): row.attributes for row in rows})
        return done

    def read_tail(self, ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        with self._lock:
            versions = self._versions.get((ref, branch), [])
            start = bisect_right(versions, after)
            wanted = versions[start:] if limit is None else versions[start : start + limit]
            entries, now = self._entries.get((ref, branch), {}), self._clock.now() if self._clock else 0
            return [entries[version] for version in wanted if not is_over(entries[version].expires, now)]

    def put_snapshot(self, ref: SagaRef, record: Record) -> None:
        record = _stored(ref, "SNAP", record)
        with self._lock:
            self._snapshots.setdefault((ref, record.branch), {})[record.version] = record

    def read_snapshot(self, ref: SagaRef, branch: int, at_most: int) -> Record | None:
        with self._lock:
            snapshots = self._snapshots.get((ref, branch), {})
            newest = max((version for version in snapshots if version <= at_most), default=None)
            return None if newest is None or self._is_over(snapshots[newest]) else snapshots[newest]

    # -- the due index and the stream

    def due(
        self, lane: str, shard: int, since: int, until: int, limit: int, after: Due | None = None
    ) -> Sequence[Due]:
        with self._lock:
            return self._due.between(lane, shard, since, until, limit, after)

    def at_work(self, tenant: str, shard: int, most: int) -> int:
        wanted = (tenant, "open", shard)
        with self._lock:
            found = (
                (ref.tenant, head.group, shard_of(ref.id, self._shards)) for ref, head in self._heads.items()
            )
            return min(sum(key == wanted for key in found), most)

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
        with self._lock:
            found = [
                Listed(
                    id=ref.id,
                    workflow=head.workflow,
                    status=head.status,
                    user=head.user,
                    created=head.created,
                    changed=self._changed[ref],
                    models=head.models,
                    labels=head.labels,
                )
                for ref, head in self._heads.items()
                if (ref.tenant, head.group, shard_of(ref.id, self._shards)) == (tenant, group, shard)
                and not self._is_over(head)
            ]
        found.sort(key=lambda row: row.place, reverse=True)
        looked_at = [row for row in found if row.changed >= since and (after is None or row.place < after)]
        page = looked_at[:limit]
        wanted = [
            row
            for row in page
            if workflow in ("", row.workflow)
            and status in ("", row.status)
            and user in ("", row.user)
            and labels.items() <= row.labels.items()
        ]
        return wanted, page[-1].place if len(looked_at) > limit else None

    def settle_index(self) -> None:
        """Let the due index catch up; without `lag` it always has."""
        with self._lock:
            self._due.settle()

    def drain(self) -> list[tuple[SagaRef, Wake]]:
        """Return the wakes of the stream since the last call, oldest first."""
        with self._lock:
            stream, self._stream = self._stream, []
        return stream

    def pass_on(self, ref: SagaRef, wake: Wake) -> None:
        """Emit the wake of an item that another port has written on the stream."""
        with self._lock:
            self._emit(ref, wake)
        self._deliver()

    def move(self, ref: SagaRef, before: int, after: int) -> None:
        """Move an item of another port in lane `timer` of the due index. 0: not in the index."""
        with self._lock:
            self._due.move(ref, before, after)

    def heads(self) -> Sequence[Head]:
        """Return every head. For tests only: no port has it."""
        with self._lock:
            return list(self._heads.values())

    def delete(self, is_chosen: Callable[[SagaRef, int, int], bool]) -> None:
        """Delete what has expired, in the order in which the table happens to:
        heads by branch and version -1, entries by theirs.

        For tests only: to whom uses the port it makes no difference.
        """
        with self._lock:
            for ref, head in list(self._heads.items()):
                if self._is_over(head) and is_chosen(ref, -1, -1):
                    del self._heads[ref], self._changed[ref]
                    self._due.remove(head)
            for (ref, branch), entries in self._entries.items():
                gone = [
                    version
                    for version, record in entries.items()
                    if self._is_over(record) and is_chosen(ref, branch, version)
                ]
                for version in gone:
                    del entries[version]
                    self._versions[ref, branch].remove(version)

    def _is_over(self, item: Head | Record) -> bool:
        return self._clock is not None and is_over(item.expires, self._clock.now())

    def _emit(self, ref: SagaRef, wake: Wake | None) -> None:
        if wake is not None:
            self._stream.append((ref, wake))

    def _deliver(self) -> None:
        """Call the listeners outside the lock, so that they may write, too."""
        if self._on_wake is not None:
            for ref, wake in self.drain():
                self._on_wake(ref, wake)


def _stored(ref: SagaRef, kind: str, record: Record, wake: Wake | None = None) -> Record:
    """Return the record with the size that it has on a table. Raises `ItemTooLarge` where the table would."""
    place = f"pk{ref}sk{kind}#{record.branch:04d}#{record.version:010d}"
    size = len(place.encode()) + len("d")
    if record.expires:
        size += len("ttl") + _TTL
    if wake is not None:
        size += len("wake") + len(msgspec.json.encode(wake))
    return msgspec.structs.replace(record, size=size + len(pack(record.data, size, ITEM_BYTES)))


class MemoryInbox:
    """The inboxes of the sagas of a log."""

    def __init__(self, log: MemoryLog) -> None:
        self._log = log
        self._lock = threading.Lock()
        self._windows: dict[tuple[SagaRef, int], dict[tuple[str, str], Report]] = {}

    def leave(self, reports: Sequence[Report], until: int) -> None:
        with self._lock:
            for one in reports:
                self._windows.setdefault((one.parent, one.window), {})[one.slot, one.child] = one

    def announce(self, parent: SagaRef) -> bool:
        return self._log.announce(parent)

    def read(self, parent: SagaRef, window: int) -> Sequence[Report]:
        with self._lock:
            return [one for _, one in sorted(self._windows.get((parent, window), {}).items())]
