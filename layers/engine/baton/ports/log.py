"""The log of a saga and the records beside it: heads, entries, snapshots, blobs, inboxes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeAlias

import msgspec

from baton.core.effects.rows import Row, RowRoom
from baton.core.limits import DAY_MS


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes are in bytes, names and keys included.

    item: the largest entry, snapshot or effect. rows: of tools' own rows, beside
    the entry that they are written with. due_shards, status_shards: partitions
    that the due index, and the lists of each tenant, are spread over.
    """

    item_bytes: int
    rows: RowRoom
    due_shards: int
    status_shards: int


SCHEDULE = "~"
"""How an id begins by which the due index and messages call a schedule. No saga's id has one."""
NO_LABELS: Mapping[str, str] = MappingProxyType({})
_CELL = re.compile(r"c([1-9][0-9]{0,3})\.")


class SagaRef(msgspec.Struct, frozen=True):
    """Names one saga: tenant and id. `str()` is what messages, wakes and entries call it.

    An id that begins with `c<number>.` names the cell that the saga is in,
    and so does the id of each of its children.
    """

    tenant: str
    id: str

    def __str__(self) -> str:
        return f"T#{self.tenant}#SAGA#{self.id}"

    @property
    def cell(self) -> int:
        """0 where the id names none."""
        found = _CELL.match(self.id)
        return int(found[1]) if found else 0

    @property
    def is_schedule(self) -> bool:
        """Whether this names a schedule and no saga."""
        return self.id.startswith(SCHEDULE)

    @classmethod
    def parse(cls, key: str) -> SagaRef:
        """The inverse of `str`. Raises `ValueError` for anything that is not a saga's key."""
        head, found, saga = key.rpartition("#SAGA#")
        if not found or not head.startswith("T#") or not saga or not head[2:]:
            raise ValueError(f"not the key of a saga: {key[:80]!r}")
        return cls(tenant=head[2:], id=saga)


Due: TypeAlias = tuple[SagaRef, int]  # a saga, and when it is due
WORK, TIMER, SWEEP, PARKED = "work", "timer", "sweep", "parked"
LANES = (WORK, TIMER, SWEEP, PARKED)
"""Of the due index, so that each is read by itself: what is at work or should be, a moment that a saga
waits for, a look at one that waits for nothing but others, and one that waits for code that mends it.
"""

Place: TypeAlias = tuple[int, str]  # of a saga in a list: when it changed, and its id


class Wake(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a stream must pass an item on: the version the log has reached, and when to act.

    `at` is the moment to deliver (0: at once). `parent` is the key of the saga that waits for this
    one's end, `slot` the place where it waits, `window` the part of its inbox where it looks.
    """

    v: int
    at: int = 0
    parent: str = ""
    slot: str = ""
    window: int = 0


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """The mutable part of a saga: its lease, when it is due, and caches of facts from the log.

    `expires`: when the saga is as good as deleted; 0: never.

    `owner` is empty when the lease is free. `due_at` None: not in the due index; `lane`: where in it. In the
    lane of looks, `quiet_since` is when something last happened, and `timer` when something is due by itself
    (0: nothing is): no look needs more than the log's newest entry. `start` is the encoded first entry, kept
    until entry 1 is known to exist. `armed` is the deadline of a caller that is about to append to a saga
    that may be in no index. `inbox` counts what was announced there since a holder has taken it in.
    `watched`: until when a viewer watched, who came while the lease was free. `models`: what models have
    read, written and cost, by their names, as of the last release.
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
    inbox: int = 0
    due_at: int | None = None
    lane: str = WORK
    quiet_since: int = 0
    timer: int = 0
    armed: int = 0
    wake: Wake | None = None
    expires: int = 0
    watched: int = 0
    models: dict[str, tuple[int, int, int]] = {}
    labels: dict[str, str] = {}


class Appended(msgspec.Struct, frozen=True):
    """An entry is there.
    `watched`: until when a viewer watches its saga, where one has said so since the entry before.
    """

    watched: int = 0


class Record(msgspec.Struct, frozen=True):
    """An entry or a snapshot: opaque bytes under a branch and a version.

    `size`, where it was read: bytes of all that is stored of it, by the store's own rule. `expires` as of its
    head.
    """

    branch: int
    version: int
    data: bytes
    size: int = 0
    expires: int = 0


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """What a holder leaves on the head when it gives the lease back.

    `armed` is the value that the head had when the holder loaded; a release is refused when another writer
    has armed it since. `inbox`, likewise, is the count of what the holder has taken in, which is cleared;
    None leaves what is there. `group_at` is set only when the status group changes, because that moves an
    index. `clear_start`: entry 1 exists, so the head need not carry it any longer. `models` is set only when
    it has changed, for the same reason as `group_at`; `labels` are those of the saga, which stand beside.
    """

    folded: int
    status: str
    group: str
    group_at: int | None
    branch: int
    snapshot: int
    due_at: int | None
    armed: int
    lane: str = WORK
    quiet_since: int = 0
    timer: int = 0
    inbox: int | None = 0
    wake: Wake | None = None
    clear_start: bool = True
    models: dict[str, tuple[int, int, int]] | None = None
    labels: dict[str, str] = {}


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """A saga as lists show it, from the last release of its head. `changed`: when its group last changed."""

    id: str
    workflow: str
    status: str
    user: str
    created: int
    changed: int
    models: dict[str, tuple[int, int, int]] = {}
    labels: dict[str, str] = {}

    @property
    def place(self) -> Place:
        return self.changed, self.id


class Log(Protocol):
    """Heads, entries and snapshots of sagas.

    What has expired, by the store's clock, is as good as deleted, however long it is
    still there: nothing shows it, and another saga of that id takes its place. All that
    is stored of a saga expires at one moment, and is deleted afterwards in any order.
    """

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

    def take(
        self, ref: SagaRef, owner: str, until: int, epoch: int, due_at: int, stays: bool = False
    ) -> Head | None:
        """Take the lease if the head still has the `epoch` that the caller has
        seen and judged to be free to take.

        Sets owner, until, `due_at` in the lane of what is at work, epoch + 1 and removes `wake`.
        With `stays`, the due time that there is stays as it is, in its lane; refused unless it is
        set and not after `due_at`. A pending wake stays, too: its version is in the log, and the
        taker loads afterwards. A request that arrives twice finds itself and changes nothing more;
        one that arrives after any other take is refused. Returns the head as it was **before** (so
        that an expired lease can be seen); None when refused or when there is no head.
        """
        ...

    def leave_wake(self, ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        """Leave `version` for the holder, if it is still this one and its pending wake is lower."""
        ...

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        """Give the lease back: frees it, clears the pending wake, writes `release`.

        False, and nothing written, when the lease is not this one's any more, when `pending_wake` is above
        `release.folded`, when `armed` is not `release.armed`, or when `inbox` is not `release.inbox`.
        """
        ...

    def arm(self, seen: Head, until: int) -> bool:
        """Make sure the head is due by `until` and note that, unless it changed since `seen`.

        Raises `armed` to `until`, never lowers it; `due_at` becomes `until`, in
        the lane of what is at work, only where none was set or a later one was.
        """
        ...

    def defer(self, seen: Head, due_at: int, lane: str) -> bool:
        """Move the due time of a head on, into a lane, unless the head changed since `seen`. All else stays."""
        ...

    def postpone(self, ref: SagaRef, now: int, until: int) -> bool:
        """Move a due time that is not after `now` on to `until`; all else stays, read or not.

        For a head that cannot be read. Refused under a lease that is not over at `now`.
        """
        ...

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        """Put an entry. None when that branch has that version already."""
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

    def due(
        self, lane: str, shard: int, since: int, until: int, limit: int, after: Due | None = None
    ) -> Sequence[Due]:
        """Sagas with `since <= due_at <= until` in a lane of a shard, soonest first, at most `limit`.
        Eventually consistent.

        `after`: the last one of the page before, wherever that saga is by now. Sagas that are due at the same
        moment come in an order of the store's own, always the same.
        """
        ...

    def at_work(self, tenant: str, shard: int, most: int) -> int:
        """How many of a tenant's sagas in a shard neither wait nor have ended,
        counted no further than `most`.

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
        labels: Mapping[str, str] = NO_LABELS,
        after: Place | None = None,
    ) -> tuple[Sequence[Listed], Place | None]:
        """A tenant's sagas of a group in a shard, the latest change first, and
        where to go on (None: at its end).

        It looks at `limit` of them at most, so with `workflow`, `status` or `labels` (all of which
        a saga has) it may find fewer, or none, and still have more to look at. Those with equal
        `changed` come in an order of the store's own, always the same. Eventually consistent.
        """
        ...


class Report(msgspec.Struct, frozen=True):
    """The child with the id `child` has ended, for which `parent` waits at `slot`."""

    parent: SagaRef
    window: int
    slot: str
    child: str


class Inbox(Protocol):
    """The inbox of a parent has windows, so that no query and no partition has all of it."""

    def leave(self, reports: Sequence[Report], until: int) -> None:
        """Put reports, of any parents; the store may delete them after `until`. Can be repeated."""
        ...

    def announce(self, parent: SagaRef) -> bool:
        """Count one more piece of news on the head.
        True when its lease is free, so that the saga is to be woken.

        False when a worker holds it: its release is refused. Also, with nothing written, for a saga that is
        in no due index, because it has ended, and for one that does not exist.
        """
        ...

    def read(self, parent: SagaRef, window: int) -> Sequence[Report]:
        """What stands in a window, whether or not it was taken in, strongly consistent."""
        ...


CAS = "cas://sha256/"
_SHORTEST_DAYS = 8


def period_of(now: int, until: int) -> str:
    """Where bytes go that are needed until then (0: for ever, the empty text): `<days>d<number>`.

    They are deleted `days`, a power of two, after they were last put. A period is as long as that, and
    `number` counts the periods since 1970: what is put again is put again in its first days, or at another
    place. So no put comes at the moment at which what it would renew is being deleted.
    """
    if not until:
        return ""
    days = _SHORTEST_DAYS
    while days * DAY_MS < until - now:
        days *= 2
    return f"{days}d{now // (days * DAY_MS)}"


def reference_of(data: bytes, period: str = "") -> str:
    """The reference under which `Blobs` keep these bytes, whether or not they are stored yet."""
    ref = CAS + hashlib.sha256(data).hexdigest()
    return f"{ref}@{period}" if period else ref


class Blobs(Protocol):
    """Content-addressed bytes, per tenant.
    A reference is `cas://sha256/<hex>`, with `@<period>` where they are not kept for ever.
    """

    def put(self, tenant: str, data: bytes, period: str = "") -> str:
        """Store and return the reference; storing the same bytes again in a
        period renews their age, and no more.
        """
        ...

    def get(self, tenant: str, ref: str) -> bytes:
        """Raises `CorruptLog` when it is not there or its content does not match its name."""
        ...


class LiveTexts(msgspec.Struct, frozen=True):
    """`data`, as the worker of this `epoch` of the lease wrote it `at` that time; viewers watch `until`."""

    until: int
    epoch: int = 0
    at: int = 0
    data: bytes = b""


class Live(Protocol):
    """The items of viewers and of what they are shown."""

    def watch(self, ref: SagaRef, now: int, until: int, unless: int) -> bool:
        """Say that a viewer watches until then.
        False, and nothing written, where one has said so until `unless` or later.
        """
        ...

    def leave_word(self, head: Head, now: int, until: int) -> bool:
        """Leave word of a viewer where the worker of this saga finds it without
        asking: its next take, or its next append.

        False, and nothing written, where a write came in between.
        It changes nothing that is in a log or in an index, and sets nothing going.
        """
        ...

    def put_texts(self, ref: SagaRef, epoch: int, now: int, data: bytes) -> bool:
        """Replace what is shown.
        False, and nothing written, where no viewer watches now, or a later write was there first.
        """
        ...

    def read(self, ref: SagaRef) -> LiveTexts | None:
        """What is there, eventually consistent."""
        ...
