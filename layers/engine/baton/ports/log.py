"""What is stored of a saga, and the port to it: heads, entries, snapshots, and the two indexes.

All times are UTC epoch milliseconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import msgspec

from baton.core.effects.rows import Row
from baton.ports.limits import StoreLimits


class SagaRef(msgspec.Struct, frozen=True):
    """Names one saga: tenant and id. `str()` is what messages, wakes and entries call it."""

    tenant: str
    id: str

    def __str__(self) -> str:
        return f"T#{self.tenant}#SAGA#{self.id}"

    @classmethod
    def parse(cls, key: str) -> SagaRef:
        """The inverse of `str`. Raises `ValueError` for anything that is not a saga's key."""
        head, found, saga = key.rpartition("#SAGA#")
        if not found or not head.startswith("T#") or not saga or not head[2:]:
            raise ValueError(f"not the key of a saga: {key[:80]!r}")
        return cls(tenant=head[2:], id=saga)


Due: TypeAlias = tuple[SagaRef, int]  # a saga, and when it is due
Place: TypeAlias = tuple[int, str]  # of a saga in a list: when it changed, and its id


class Wake(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a stream must pass an item on: the version the log has reached, and when to act.

    `at` is the moment to deliver (0: at once). `parent` is the key of the saga that waits for this
    one's end, `slot` the place where it waits.
    """

    v: int
    at: int = 0
    parent: str = ""
    slot: str = ""


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The mutable part of a saga: its lease, when it is due, and caches of facts from the log.

    `owner` is empty when the lease is free. `due_at` None: not in the due index. `start` is the encoded
    first entry, kept until entry 1 is known to exist. `armed` is the deadline of a caller that is about
    to append to a saga that may be in no index.
    """

    ref: SagaRef
    workflow: str
    graph: str
    user: str
    created: int
    start_hash: str
    start: bytes = b""
    status: str = "running"  # from the start: what changes it moves a row of the status index
    group: str = "open"
    branch: int = 0
    folded: int = 0
    snapshot: int = 0
    owner: str = ""
    until: int = 0
    epoch: int = 0
    pending_wake: int = 0
    due_at: int | None = None
    armed: int = 0
    wake: Wake | None = None


class Record(msgspec.Struct, frozen=True):
    """An entry or a snapshot: opaque bytes under a branch and a version.

    `size`, where it was read: bytes of all that is stored of it, by the store's own rule.
    """

    branch: int
    version: int
    data: bytes
    size: int = 0


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """What a holder leaves on the head when it gives the lease back.

    `armed` is the value that the head had when the holder loaded; a release is refused when another
    writer has armed it since. `group_at` is set only when the status group changes, because that moves an index.
    `clear_start`: entry 1 exists, so the head need not carry it any longer.
    """

    folded: int
    status: str
    group: str
    group_at: int | None
    branch: int
    snapshot: int
    due_at: int | None
    armed: int
    wake: Wake | None = None
    clear_start: bool = True


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A saga as lists show it, from the last release of its head. `changed`: when its group last changed."""

    id: str
    workflow: str
    status: str
    user: str
    created: int
    changed: int

    @property
    def place(self) -> Place:
        return self.changed, self.id


class Log(Protocol):
    """Heads, entries and snapshots of sagas."""

    @property
    def limits(self) -> StoreLimits:
        """Those of its store."""
        ...

    def create_head(self, head: Head) -> Head | None:
        """Put a new head. None when it was created, else the stored head (strongly read)."""
        ...

    def read_head(self, ref: SagaRef) -> Head | None:
        """Strongly consistent."""
        ...

    def take(self, ref: SagaRef, owner: str, until: int, epoch: int, due_at: int) -> Head | None:
        """Take the lease if the head still has the `epoch` that the caller has seen and judged to be free to take.

        Sets owner, until, `due_at`, epoch + 1 and removes `wake`. A pending wake stays: its version is in the log, and the
        taker loads afterwards. A request that arrives twice finds itself and changes nothing more; one that arrives
        after any other take is refused. Returns the head as it was **before** (so that an expired lease can be
        seen); None when refused or when there is no head.
        """
        ...

    def leave_wake(self, ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        """Leave `version` for the holder, if it is still this one and its pending wake is lower."""
        ...

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        """Give the lease back: frees it, clears the pending wake, writes `release`.

        False, and nothing written, when the lease is not this one's any more, when `pending_wake` is above
        `release.folded`, or when `armed` is not `release.armed`.
        """
        ...

    def arm(self, seen: Head, until: int) -> bool:
        """Make sure the head is due by `until` and note that, unless it changed since `seen`.

        Raises `armed` to `until`, never lowers it; `due_at` becomes `until` only where none was set or a
        later one was.
        """
        ...

    def postpone(self, ref: SagaRef, now: int, until: int) -> bool:
        """Move a due time that is not after `now` on to `until`; all else stays, read or not.

        For a head that cannot be read. A head under a live lease is due later, so that it is refused.
        """
        ...

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> bool:
        """Put an entry. False when that branch has that version already."""
        ...

    def append_with_rows(
        self, ref: SagaRef, record: Record, rows: Sequence[Row], wake: Wake | None = None
    ) -> bool:
        """Put an entry and its tenant's rows in one transaction: all of them, or none and False.

        A row replaces the one with the same key and sort. Of two rows with the same the last counts. Raises
        `RowsRefused` when no repetition would make them valid.
        """
        ...

    def read_tail(self, ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        """Entries of a branch with versions above `after`, in order, strongly consistent.

        At most `limit` of them when it is given; all of them otherwise.
        """
        ...

    def put_snapshot(self, ref: SagaRef, record: Record) -> None:
        """Idempotent: a snapshot of a version is always the same."""
        ...

    def read_snapshot(self, ref: SagaRef, branch: int, at_most: int) -> Record | None:
        """The newest snapshot of a branch at or below a version, strongly consistent."""
        ...

    def due(self, shard: int, since: int, until: int, limit: int, after: Due | None = None) -> Sequence[Due]:
        """Sagas with `since <= due_at <= until` in a shard, soonest first, at most `limit`. Eventually consistent.

        `after`: the last one of the page before, wherever that saga is by now. Sagas that are due at the same moment
        come in an order of the store's own, always the same.
        """
        ...

    def at_work(self, tenant: str, shard: int, most: int) -> int:
        """How many of a tenant's sagas in a shard neither wait nor have ended, counted no further than `most`.

        Eventually consistent.
        """
        ...

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
        after: Place | None = None,
    ) -> tuple[Sequence[Listed], Place | None]:
        """A tenant's sagas of a group in a shard, the latest change first, and where to go on (None: at its end).

        It looks at `limit` of them at most, so with `workflow` or `status` it may find fewer, or none, and
        still have more to look at. Those with equal `changed` come in an order of the store's own, always
        the same. Eventually consistent.
        """
        ...
