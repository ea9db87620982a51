"""All stores in memory: for unit tests, the simulation and trying a workflow without any AWS.

They keep what the ports promise and the stores' own habits that the engine depends on: the stream
repeats a wake for as long as it stays on an item, and the due index may lag behind. No behaviour beyond
that; one lock per store makes every call atomic.
"""

from __future__ import annotations

import hashlib
import threading
from bisect import bisect_right, insort
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from baton.adapters.rules import check_delay, pack, shard_of
from baton.core.rows import Row
from baton.errors import CorruptLog
from baton.ports import Clock, Definition, Head, Message, Record, Release, SagaRef, Wake

_BLOB = "cas://sha256/"
_ENTRY_OVERHEAD = 256  # keys and names around an entry's data; generous, so that no real store takes less


class MemoryLog:
    """Heads, entries and snapshots, and the table's stream as far as it carries wakes.

    Every write that leaves `wake` on a changed item adds (saga, wake) to the stream: it goes to
    `on_wake` when that is given (called after the write, outside the lock), else it waits for `drain`.
    With `lag`, `due` answers from a copy of the index that only `settle_index` brings up to date.
    """

    def __init__(
        self, shards: int = 4, *, lag: bool = False, on_wake: Callable[[SagaRef, Wake], None] | None = None
    ) -> None:
        self._lock = threading.Lock()
        self._shards = shards
        self._heads: dict[SagaRef, Head] = {}
        self._entries: dict[tuple[SagaRef, int], dict[int, Record]] = {}
        self._versions: dict[tuple[SagaRef, int], list[int]] = {}
        self._snapshots: dict[tuple[SagaRef, int], dict[int, Record]] = {}
        self._index: dict[SagaRef, int] = {}
        self._seen_index: dict[SagaRef, int] = {} if lag else self._index
        self._stream: list[tuple[SagaRef, Wake]] = []
        self.rows: dict[tuple[str, str, str], dict[str, Any]] = {}
        self._on_wake = on_wake

    # -- heads

    def create_head(self, head: Head) -> Head | None:
        with self._lock:
            there = self._heads.get(head.ref)
            if there is not None:
                return there
            if head.start:
                pack(head.start, _ENTRY_OVERHEAD)
            self._heads[head.ref] = head
            self._reindex(head)
            self._emit(head.ref, head.wake)
        self._deliver()
        return None

    def read_head(self, ref: SagaRef) -> Head | None:
        with self._lock:
            return self._heads.get(ref)

    def take(self, ref: SagaRef, owner: str, until: int, now: int) -> Head | None:
        def change(head: Head) -> Head | None:
            if head.owner not in ("", owner) and head.until > now:
                return None
            return msgspec.structs.replace(
                head, owner=owner, until=until, due_at=until, epoch=head.epoch + 1, nudge=0, wake=None
            )

        return self._update(ref, change)

    def nudge(self, ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        def change(head: Head) -> Head | None:
            if (head.owner, head.epoch) != (owner, epoch) or head.nudge >= version:
                return None
            return msgspec.structs.replace(head, nudge=version)

        return self._update(ref, change) is not None

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        def change(head: Head) -> Head | None:
            if (head.owner, head.epoch) != (owner, epoch):
                return None
            if head.nudge > release.folded or head.armed != release.armed:
                return None
            return msgspec.structs.replace(
                head,
                owner="",
                until=0,
                nudge=0,
                folded=release.folded,
                status=release.status,
                group=head.group if release.group_at is None else release.group,
                branch=release.branch,
                snapshot=release.snapshot,
                due_at=release.due_at,
                wake=release.wake,
                start=b"" if release.clear_start else head.start,
            )

        return self._update(ref, change) is not None

    def arm(self, seen: Head, until: int) -> bool:
        def change(head: Head) -> Head | None:
            if head != seen:
                return None
            due_at = until if head.due_at is None else min(head.due_at, until)
            return msgspec.structs.replace(head, armed=max(head.armed, until), due_at=due_at)

        return self._update(seen.ref, change) is not None

    def _update(self, ref: SagaRef, change: Callable[[Head], Head | None]) -> Head | None:
        """Replace a head by what `change` makes of it; the head as it was, or None when refused."""
        with self._lock:
            before = self._heads.get(ref)
            after = None if before is None else change(before)
            if after is None:
                return None
            self._heads[ref] = after
            self._reindex(after)
            if after != before:  # DynamoDB's stream is silent about an update that changes nothing
                self._emit(ref, after.wake)
        self._deliver()
        return before

    # -- entries and snapshots

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> bool:
        pack(record.data, _ENTRY_OVERHEAD)
        branch = (ref, record.branch)
        with self._lock:
            entries = self._entries.setdefault(branch, {})
            if record.version in entries:
                return False
            entries[record.version] = record
            insort(self._versions.setdefault(branch, []), record.version)
            self._emit(ref, wake)
        self._deliver()
        return True

    def append_with_rows(
        self, ref: SagaRef, record: Record, rows: Sequence[Row], wake: Wake | None = None
    ) -> bool:
        done = self.append(ref, record, wake)
        if done:
            with self._lock:
                self.rows.update({(ref.tenant, row.key, row.sort): row.attributes for row in rows})
        return done

    def read_tail(self, ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        with self._lock:
            versions = self._versions.get((ref, branch), [])
            start = bisect_right(versions, after)
            wanted = versions[start:] if limit is None else versions[start : start + limit]
            return [self._entries[ref, branch][version] for version in wanted]

    def put_snapshot(self, ref: SagaRef, record: Record) -> None:
        pack(record.data, _ENTRY_OVERHEAD)
        with self._lock:
            self._snapshots.setdefault((ref, record.branch), {})[record.version] = record

    def read_snapshot(self, ref: SagaRef, branch: int, at_most: int) -> Record | None:
        with self._lock:
            snapshots = self._snapshots.get((ref, branch), {})
            newest = max((version for version in snapshots if version <= at_most), default=None)
            return None if newest is None else snapshots[newest]

    # -- the due index and the stream

    def due(self, shard: int, until: int, limit: int) -> Sequence[tuple[SagaRef, int]]:
        with self._lock:
            found = [
                (ref, due_at)
                for ref, due_at in self._seen_index.items()
                if due_at <= until and shard_of(ref.id, self._shards) == shard
            ]
        return sorted(found, key=lambda pair: pair[1])[:limit]

    def settle_index(self) -> None:
        """Let the due index catch up; without `lag` it always has."""
        with self._lock:
            if self._seen_index is not self._index:
                self._seen_index = dict(self._index)

    def drain(self) -> list[tuple[SagaRef, Wake]]:
        """The wakes of the stream since the last call, oldest first."""
        with self._lock:
            stream, self._stream = self._stream, []
        return stream

    def heads(self) -> Sequence[Head]:
        """Every head there is; for looking on, no port has it."""
        with self._lock:
            return list(self._heads.values())

    def _reindex(self, head: Head) -> None:
        if head.due_at is None:
            self._index.pop(head.ref, None)
        else:
            self._index[head.ref] = head.due_at

    def _emit(self, ref: SagaRef, wake: Wake | None) -> None:
        if wake is not None:
            self._stream.append((ref, wake))

    def _deliver(self) -> None:
        """Outside the lock, so that what listens may write in its turn."""
        if self._on_wake is not None:
            for ref, wake in self.drain():
                self._on_wake(ref, wake)


class MemoryDefinitions:
    """Registered workflow documents."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._versions: dict[tuple[str, str], dict[int, Definition]] = {}

    def put(self, definition: Definition) -> bool:
        with self._lock:
            versions = self._versions.setdefault((definition.tenant, definition.name), {})
            if definition.version in versions:
                return False
            versions[definition.version] = definition
            return True

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        with self._lock:
            versions = self._versions.get((tenant, name), {})
            return versions.get(max(versions, default=0) if version is None else version)

    def names(self, tenant: str) -> Sequence[str]:
        with self._lock:
            return sorted(name for owner, name in self._versions if owner == tenant)


class MemoryBlobs:
    """Content-addressed bytes. `stored` is open, so that a test can tamper with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stored: dict[tuple[str, str], bytes] = {}

    def put(self, tenant: str, data: bytes) -> str:
        ref = _BLOB + hashlib.sha256(data).hexdigest()
        with self._lock:
            self.stored[tenant, ref] = data
        return ref

    def get(self, tenant: str, ref: str) -> bytes:
        with self._lock:
            data = self.stored.get((tenant, ref))
        if data is None:
            raise CorruptLog(f"blob {ref} is not there")
        if _BLOB + hashlib.sha256(data).hexdigest() != ref:
            raise CorruptLog(f"blob {ref} does not hold what its name says")
        return data


class MemoryQueue:
    """Messages with the moment from which they can be received; nothing is redelivered."""

    def __init__(self, clock: Clock) -> None:
        self._lock = threading.Lock()
        self._clock = clock
        self._messages: list[tuple[int, Message]] = []

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        now = self._clock.now()
        sent = [(now + check_delay(delay) * 1000, message) for message, delay in messages]
        with self._lock:
            self._messages.extend(sent)
        return []

    def waiting(self) -> Sequence[tuple[int, Message]]:
        """Everything in it as (visible from, message), in the order of sending."""
        with self._lock:
            return list(self._messages)

    def receive(self, limit: int | None = None) -> list[Message]:
        """Take out what is visible by now, soonest first."""
        now = self._clock.now()
        with self._lock:
            ready = sorted((item for item in self._messages if item[0] <= now), key=lambda item: item[0])
            ready = ready if limit is None else ready[:limit]
            for item in ready:
                self._messages.remove(item)
        return [message for _, message in ready]


class MemoryDeadLetters:
    """Dead letters as (body, reason), in `letters`."""

    def __init__(self) -> None:
        self.letters: list[tuple[str, str]] = []

    def send(self, body: str, reason: str) -> None:
        self.letters.append((body, reason))

    def count(self) -> int:
        return len(self.letters)


class MemoryInvoker:
    """Records each invocation instead of starting one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._invocations: list[tuple[Message, ...]] = []

    def invoke(self, messages: Sequence[Message]) -> None:
        if not messages:
            return
        with self._lock:
            self._invocations.append(tuple(messages))

    def drain(self) -> list[tuple[Message, ...]]:
        """The invocations since the last call, oldest first."""
        with self._lock:
            invocations, self._invocations = self._invocations, []
        return invocations
