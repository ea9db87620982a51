"""Ports to the log of a saga and the records beside it: heads, entries, snapshots, blobs, inboxes.

The rules that every adapter of a store keeps are at the end: shards, sizes, delays.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, TypeAlias

import msgspec

from baton.core.effects.rows import Row, RowRoom
from baton.core.limits import DAY_MS
from baton.errors import CorruptLog


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a store.
    Sizes are in bytes, names and keys included.

    `item_bytes`: the largest entry, snapshot or effect. `rows`: room for tools' own rows beside their entry.
    `due_shards`, `status_shards`: partitions of the due index, and of each tenant's lists.
    """

    item_bytes: int
    rows: RowRoom
    due_shards: int
    status_shards: int


SCHEDULE = "~"
"""Prefix of the ids by which the due index and messages name a schedule. No saga's id has it."""
NO_LABELS: Mapping[str, str] = MappingProxyType({})
_CELL = re.compile(r"c([1-9][0-9]{0,3})\.")


class SagaRef(msgspec.Struct, frozen=True):
    """Name of one saga: tenant and id.
    Messages, wakes and entries use its `str()`.

    An id that begins with `c<number>.` names the cell of the saga; the ids of its children begin so, too.
    """

    tenant: str
    id: str

    def __str__(self) -> str:
        return f"T#{self.tenant}#SAGA#{self.id}"

    @property
    def cell(self) -> int:
        """Number of the cell that the id names; 0 if it names none."""
        found = _CELL.match(self.id)
        return int(found[1]) if found else 0

    @property
    def is_schedule(self) -> bool:
        """Return true if this names a schedule and not a saga."""
        return self.id.startswith(SCHEDULE)

    @classmethod
    def parse(cls, key: str) -> SagaRef:
        """Parse the output of `str`. Raises `ValueError` for anything that is not a saga's key."""
        head, found, saga = key.rpartition("#SAGA#")
        if not found or not head.startswith("T#") or not saga or not head[2:]:
            raise ValueError(f"not the key of a saga: {key[:80]!r}")
        return cls(tenant=head[2:], id=saga)


Due: TypeAlias = tuple[SagaRef, int]  # a saga, and when it is due
WORK, TIMER, SWEEP, PARKED = "work", "timer", "sweep", "parked"
LANES = (WORK, TIMER, SWEEP, PARKED)
"""Lanes of the due index; each is read by itself.
Sagas at work or due for work, timers that a saga waits for, periodic checks of sagas that wait for others
only, and sagas parked until new code is deployed.
"""
NO_LANE = ""
"""Lane of a head that has lost it, and with it its place in the index."""

Place: TypeAlias = tuple[int, str]  # of a saga in a list: when it changed, and its id


class Wake(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Reason why the stream passes an item on: the version the log has reached, and the time to act.

    `at` is the moment to deliver (0: at once). `parent` is the key of the saga that waits for the end of this
    one, `slot` the slot where it waits, `window` the part of its inbox that it reads.
    """

    v: int
    at: int = 0
    parent: str = ""
    slot: str = ""
    window: int = 0


class Head(msgspec.Struct, frozen=True, kw_only=True):
    """Mutable part of a saga: its lease, its due time, and cached facts from the log.

    `expires`: when the saga counts as deleted; 0: never. `owner` is empty when the lease is free. `due_at`
    None: not in the due index; `lane`: its lane there. In lane `sweep`, `quiet_since` is the time of the last
    event, and `timer` the next time something is due by itself (0: nothing is): a sweep needs only the log's
    newest entry. `start` is the encoded first entry, kept until entry 1 is known to exist. `armed` is the
    deadline of a caller that is about to append to a saga that may be in no index. `inbox` counts the
    announcements since a holder last took them in. `watched`: until when a viewer watches who came while the
    lease was free. `build`: the code that alone may run the saga; empty: any may, and the newest does.
    `models`: tokens read, tokens written and cost by model, as of the last release.
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
    build: str = ""
    models: dict[str, tuple[int, int, int]] = {}
    labels: dict[str, str] = {}


class Appended(msgspec.Struct, frozen=True, gc=False):
    """Confirmation that an entry was stored.
    `watched`: until when a viewer watches the saga, if one has announced itself since the previous entry.
    """

    watched: int = 0


class Record(msgspec.Struct, frozen=True, gc=False):
    """Entry or snapshot: opaque bytes under a branch and a version.

    `size` is set on reads: bytes of the stored item by the store's own rule. `expires` is that of its head.
    """

    branch: int
    version: int
    data: bytes
    size: int = 0
    expires: int = 0


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """Values that a holder writes to the head when it releases the lease.

    `armed` is the value that the head had when the holder loaded; a release is refused when another writer
    has armed it since. `inbox`, likewise, is the count that the holder has taken in, which is cleared; None
    leaves the stored count. `group_at` is set only when the status group changes, because that moves an
    index. `clear_start`: entry 1 exists, so the head need not carry it any longer. `models` is set only when
    it has changed, for the same reason as `group_at`, and so is `build`; `labels` are those of the saga,
    stored with it.
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
    build: str | None = None
    models: dict[str, tuple[int, int, int]] | None = None
    labels: dict[str, str] = {}


class Listed(msgspec.Struct, frozen=True, kw_only=True):
    """Saga as lists show it, from the last release of its head. `changed`: when its group last changed."""

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

    A record that has expired by the store's clock counts as deleted, even while it is still stored: no read
    returns it, and another saga of that id takes its place. All records of a saga expire at one moment, and
    are deleted afterwards in any order.
    """

    @property
    def limits(self) -> StoreLimits:
        """Limits of its store."""
        ...

    def create_head(self, head: Head) -> Head | None:
        """Create a head. Return None if it was created, else the stored head (strongly consistent)."""
        ...

    def read_head(self, ref: SagaRef) -> Head | None:
        """Read a head, strongly consistent. Return None if none is stored."""
        ...

    def take(
        self, ref: SagaRef, owner: str, until: int, epoch: int, due_at: int, stays: bool = False
    ) -> Head | None:
        """Take the lease if the head still has the `epoch` that the caller has judged free to take.

        Sets owner, until, `due_at` in lane `work`, epoch + 1 and removes `wake`. With `stays`, the stored due
        time and lane stay; refused unless it is set and not after `due_at`. A pending wake stays, too: its
        version is in the log, and the taker loads afterwards. A repeated request finds itself and changes
        nothing more; one that arrives after any other take, or after a renewal, is refused. Return the head
        as it was **before** (so that an expired lease can be seen); None when refused or when no head exists.
        """
        ...

    def renew(self, ref: SagaRef, owner: str, epoch: int, until: int) -> bool:
        """Move the end of a lease to `until`, if it is still this one. A repeated request finds itself.

        Nothing else changes, and no index has the end. An end never comes nearer: return false, and write
        nothing, for another owner or epoch, or where the end is later.
        """
        ...

    def leave_wake(self, ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        """Leave `version` for the holder, if it is still this one and its pending wake is lower."""
        ...

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        """Give the lease back: free it, clear the pending wake, write `release`.

        Return false, and write nothing, when another owner has the lease, when `pending_wake` is above
        `release.folded`, when `armed` is not `release.armed`, or when `inbox` is not `release.inbox`.
        """
        ...

    def arm(self, seen: Head, until: int) -> bool:
        """Make the head due by `until` and record that, unless it changed since `seen`.

        Raises `armed` to `until`, never lowers it; `due_at` becomes `until`, in lane `work`, only if none was
        set or a later one was, or if the lane is lost.
        """
        ...

    def defer(self, seen: Head, due_at: int, lane: str, wake: Wake | None = None) -> bool:
        """Set the due time of a head, in a lane, unless the head changed since `seen`. The stream passes
        `wake` on.
        """
        ...

    def postpone(self, ref: SagaRef, now: int, until: int) -> bool:
        """Move a due time that is not after `now` to `until`.
        Nothing else changes.

        For a head that cannot be read. Refused under a lease that has not ended at `now`.
        """
        ...

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> Appended | None:
        """Append an entry. Return None when that branch has that version already."""
        ...

    def append_with_rows(
        self, ref: SagaRef, record: Record, rows: Sequence[Row], wake: Wake | None = None
    ) -> bool:
        """Append an entry and its tenant's rows in one transaction: all of them, or none and false.

        A row replaces the one with the same key and sort. Of two such rows in one call the last counts.
        Raises `RowsRefused` when no repetition would make them valid.
        """
        ...

    def read_tail(self, ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        """Return a branch's entries above `after`, at most `limit`, in order, strongly consistent."""
        ...

    def put_snapshot(self, ref: SagaRef, record: Record) -> None:
        """Store a snapshot. Idempotent: a snapshot of a version is always the same."""
        ...

    def read_snapshot(self, ref: SagaRef, branch: int, at_most: int) -> Record | None:
        """Return the newest snapshot of a branch at or below a version, strongly consistent."""
        ...

    def due(
        self, lane: str, shard: int, since: int, until: int, limit: int, after: Due | None = None
    ) -> Sequence[Due]:
        """Return sagas with `since <= due_at <= until` in a lane of a shard, soonest first, at most `limit`,
        eventually consistent.

        `after`: the last one of the previous page, even if that saga has moved. Sagas that are due at the
        same moment come in an order of the store's own, always the same.
        """
        ...

    def at_work(self, tenant: str, shard: int, most: int) -> int:
        """Count a tenant's sagas in a shard that are at work, up to `most`, eventually consistent."""
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
        user: str = "",
        labels: Mapping[str, str] = NO_LABELS,
        after: Place | None = None,
    ) -> tuple[Sequence[Listed], Place | None]:
        """Return a tenant's sagas of a group in a shard, the latest change first, and the place to continue
        from (None: end).

        It examines at most `limit` sagas, so with `workflow`, `status`, `user` or `labels` (all of which a
        saga has) a page may have fewer, or none, and not be the last. Those with equal `changed` come in an
        order of the store's own, always the same. Eventually consistent.
        """
        ...


class Report(msgspec.Struct, frozen=True):
    """Report to `parent`, which waits at `slot`, that the child with the id `child` has ended."""

    parent: SagaRef
    window: int
    slot: str
    child: str


class Inbox(Protocol):
    """Inbox of a parent. It has windows, so that no query and no partition has all of it."""

    def leave(self, reports: Sequence[Report], until: int) -> None:
        """Write reports, for any parents; the store may delete them after `until`. Can be repeated."""
        ...

    def announce(self, parent: SagaRef) -> bool:
        """Count one more announcement on the head.
        Return true when its lease is free, so that the saga must be woken.

        Return false when a worker holds it: the worker's release is refused. Also return false, and write
        nothing, for a saga that is in no due index because it has ended, and for one that does not exist.
        """
        ...

    def read(self, parent: SagaRef, window: int) -> Sequence[Report]:
        """Return the reports in a window, taken in or not, strongly consistent."""
        ...


CAS = "cas://sha256/"
_SHORTEST_DAYS = 8


def period_of(now: int, until: int) -> str:
    """Return the storage period `<days>d<number>` for bytes that are needed until then (0: for ever, an empty
    text).

    They are deleted `days`, a power of two, after they were last put. A period is as long as that, and
    `number` counts the periods since 1970: bytes that are put again are put again in their first days, or at
    another place. So no put comes at the moment at which the bytes it would renew are being deleted.
    """
    if not until:
        return ""
    days = _SHORTEST_DAYS
    while days * DAY_MS < until - now:
        days *= 2
    return f"{days}d{now // (days * DAY_MS)}"


def reference_of(data: bytes, period: str = "") -> str:
    """Return the reference under which `Blobs` keep these bytes, stored or not."""
    ref = CAS + hashlib.sha256(data).hexdigest()
    return f"{ref}@{period}" if period else ref


class Blobs(Protocol):
    """Content-addressed bytes, per tenant.

    A reference is `cas://sha256/<hex>`, with `@<period>` if they are not kept for ever.
    """

    def put(self, tenant: str, data: bytes, period: str = "") -> str:
        """Store the bytes and return their reference. The same bytes again only renew their age."""
        ...

    def get(self, tenant: str, ref: str) -> bytes:
        """Return the bytes. Raises `CorruptLog` when they are missing or do not match their name."""
        ...


class LiveTexts(msgspec.Struct, frozen=True):
    """Texts of models under way: `data`, written `at` a time in `epoch`; viewers watch `until`."""

    until: int
    epoch: int = 0
    at: int = 0
    data: bytes = b""


class Live(Protocol):
    """Items of viewers and of the texts that they watch."""

    def watch(self, ref: SagaRef, now: int, until: int, unless: int) -> bool:
        """Record a viewer until then. Return false, writing nothing, if one is known until `unless`."""
        ...

    def leave_word(self, head: Head, now: int, until: int) -> bool:
        """Leave word of a viewer where the worker of this saga finds it without a read: at its next take or
        append.

        Return false, and write nothing, if another write came in between. It changes no log and no index, and
        wakes no saga.
        """
        ...

    def put_texts(self, ref: SagaRef, epoch: int, now: int, data: bytes) -> bool:
        """Replace the texts. Return false, writing nothing, without a viewer or after a later write."""
        ...

    def read(self, ref: SagaRef) -> LiveTexts | None:
        """Return the stored texts, eventually consistent; None if none are stored."""
        ...


MAX_DELAY_S = 900  # SQS's limit for a delayed message
_XML = "\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff"
_WRITE_UNIT = 1024
_PLAIN = b"{"  # what every JSON object begins with, and no zlib stream does


class ItemTooLarge(ValueError):
    """Error for an item that the store would refuse. The caller should have kept its data in a blob."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(f"the item has {size} bytes; the table takes {most}")
        self.size = size


def shard_of(saga: str, shards: int) -> int:
    """Return the index shard of a saga id: the same in every process and for ever, as `hash()` is not."""
    return zlib.crc32(saga.encode()) % shards


def is_over(expires: int, now: int) -> bool:
    """Return true if an item with this expiry, or (0) none, counts as deleted."""
    return 0 < expires <= now


def write_units(size: int) -> int:
    """Return the write units of an item of that many bytes."""
    return max(1, -(-size // _WRITE_UNIT))


def pack(data: bytes, rest: int, most: int) -> bytes:
    """Pack data for an item of `most` bytes whose other attributes have `rest` bytes.

    JSON objects stay as they are unless zlib saves a write unit. Anything else is always compressed,
    because the first byte tells the two apart. Raises `ItemTooLarge`.
    """
    plain = data.startswith(_PLAIN)
    stored = data
    if not plain or write_units(rest + len(data)) > 1:
        squeezed = zlib.compress(data)
        if not plain or write_units(rest + len(squeezed)) < write_units(rest + len(data)):
            stored = squeezed
    if rest + len(stored) > most:
        raise ItemTooLarge(rest + len(stored), most)
    return stored


def unpack(stored: bytes) -> bytes:
    """Unpack data that `pack` made. Raises `CorruptLog`."""
    if stored.startswith(_PLAIN):
        return stored
    try:
        return zlib.decompress(stored)
    except zlib.error as error:
        raise CorruptLog(f"stored bytes are neither JSON nor zlib: {error}") from error


def check_delay(seconds: int) -> int:
    """Return the delay. Raises `ValueError` if the queue would refuse it."""
    if not 0 <= seconds <= MAX_DELAY_S:
        raise ValueError(f"a delay of {seconds} s; the queue takes 0 to {MAX_DELAY_S}")
    return seconds


def xml_text(text: str) -> str:
    """Return the text without characters outside XML 1.0, which SQS, and receivers of SNS, refuse.

    The pattern is compiled at its first use, which is seldom: it takes long.
    """
    return re.sub(f"[^{_XML}]", "\ufffd", text)
