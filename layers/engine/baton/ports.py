"""What the engine needs from the outside, as Protocols; one group of calls per technology.

No behaviour here. Everything is synchronous: the runner moves calls off its event loop through
`Offload`. All times are UTC epoch milliseconds. Any call may raise `Throttled` (nothing happened, try
again after a pause) or `StoreUnavailable` (it may have happened).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar

import msgspec

from baton.core.rows import MAX_PER_STEP, Row, check_row

P = ParamSpec("P")
T = TypeVar("T")


class SagaRef(msgspec.Struct, frozen=True):
    """Names one saga: tenant and id. `str()` is its partition key."""

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
    """The mutable part of a saga: who works on it, when it is due, and caches of what the log says.

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
    status: str = "pending"
    group: str = "open"
    branch: int = 0
    folded: int = 0
    snapshot: int = 0
    owner: str = ""
    until: int = 0
    epoch: int = 0
    nudge: int = 0
    due_at: int | None = None
    armed: int = 0
    wake: Wake | None = None


class Record(msgspec.Struct, frozen=True):
    """An entry as stored: opaque bytes under a branch and a version."""

    branch: int
    version: int
    data: bytes


class Release(msgspec.Struct, frozen=True, kw_only=True):
    """What a holder leaves on the head when it gives the lease back.

    `armed` is the value that the head had when the holder loaded; a release is refused when somebody
    armed it since. `group_at` is set only when the status group changes, because that moves an index.
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


class Log(Protocol):
    """Heads, entries and snapshots of sagas."""

    def create_head(self, head: Head) -> Head | None:
        """Put a new head. None when it was created, else the head that is there (strongly read)."""
        ...

    def read_head(self, ref: SagaRef) -> Head | None:
        """Strongly consistent."""
        ...

    def take(self, ref: SagaRef, owner: str, until: int, now: int) -> Head | None:
        """Take the lease if it is free, expired (`until <= now`) or already `owner`'s.

        Sets owner, until, `due_at = until`, epoch + 1 and removes `wake` and `nudge` (whoever takes
        loads afterwards). Returns the head as it was
        **before** (so that an expired lease can be seen); None when refused or when there is no head.
        """
        ...

    def nudge(self, ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        """Leave `version` for the holder, if it is still this one and its nudge is lower."""
        ...

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        """Give the lease back: frees it, clears the nudge, writes `release`.

        False, and nothing written, when the lease is not this one's any more, when `nudge` is above
        `release.folded`, or when `armed` is not `release.armed`.
        """
        ...

    def arm(self, seen: Head, until: int) -> bool:
        """Make sure the head is due by `until` and note that, unless it changed since `seen`.

        Raises `armed` to `until`, never lowers it; `due_at` becomes `until` only where none was set or a
        later one was.
        """
        ...

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> bool:
        """Put an entry. False when that branch has that version already."""
        ...

    def append_with_rows(
        self, ref: SagaRef, record: Record, rows: Sequence[Row], wake: Wake | None = None
    ) -> bool:
        """Put an entry and its tenant's rows in one transaction: all of them, or none and False.

        A row replaces the one with the same key and sort. Of two rows with the same the last counts.
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

    def due(self, shard: int, until: int, limit: int) -> Sequence[tuple[SagaRef, int]]:
        """Sagas with `due_at <= until` in a shard, soonest first. Eventually consistent."""
        ...


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a workflow: its graph's hash and the blobs of document and graph."""

    tenant: str
    name: str
    version: int
    graph: str
    document: str
    created: int
    by: str


class Definitions(Protocol):
    """Registered workflow documents, by name and version."""

    def put(self, definition: Definition) -> bool:
        """False when that version exists."""
        ...

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        """That version, or the newest; strongly consistent."""
        ...

    def names(self, tenant: str) -> Sequence[str]:
        """All names of a tenant, sorted."""
        ...


class Blobs(Protocol):
    """Content-addressed bytes, per tenant. A reference is `cas://sha256/<hex>`."""

    def put(self, tenant: str, data: bytes) -> str:
        """Store and return the reference; storing the same bytes again is a no-op."""
        ...

    def get(self, tenant: str, ref: str) -> bytes:
        """Raises `CorruptLog` when it is not there or its content does not match its name."""
        ...


class Message(msgspec.Struct, frozen=True, omit_defaults=True):
    """The body of a wake on the queue and of a direct invocation: a saga's key, the known version."""

    saga: str
    v: int = 0


class Queue(Protocol):
    """The queue of wakes."""

    def send(self, messages: Sequence[tuple[Message, int]]) -> Sequence[int]:
        """Send (message, delay in whole seconds, 0-900). Returns the positions that were not accepted."""
        ...


class DeadLetters(Protocol):
    """The queue of what nobody could handle."""

    def send(self, body: str, reason: str) -> None: ...

    def count(self) -> int:
        """Approximate number of messages in it."""
        ...


class Invoker(Protocol):
    """Starts worker invocations directly, without any queue."""

    def invoke(self, messages: Sequence[Message]) -> None:
        """One asynchronous invocation for these wakes."""
        ...


class Clock(Protocol):
    def now(self) -> int:
        """UTC epoch milliseconds."""
        ...


class Entropy(Protocol):
    """All randomness: names, and the jitter of pauses."""

    def token(self, bits: int) -> str:
        """Lower-case hexadecimal of that many random bits (a multiple of 8)."""
        ...

    def uniform(self) -> float:
        """A number in [0, 1)."""
        ...


class Offload(Protocol):
    """Runs a synchronous port call without blocking the event loop."""

    def __call__(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Awaitable[T]: ...


class StepContext(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool may know about the step it is run for."""

    saga: str
    tenant: str
    user: str
    node: str
    iteration: tuple[int, ...] = ()
    attempt: int = 1
    idempotency_key: str = ""
    deadline_ms: int = 0
    traceparent: str = ""
    rows: list[Row] = []

    def put_row(self, key: str, sort: str, attributes: dict[str, Any]) -> None:
        """Write a row of this tenant's into the saga table together with this step's entry: both or neither.

        It costs a transaction (twice the write units of entry and rows). Raises `ValueError` for what
        cannot be a row.
        """
        if len(self.rows) >= MAX_PER_STEP:
            raise ValueError(f"a step writes at most {MAX_PER_STEP} rows")
        self.rows.append(check_row(Row(key, sort, attributes)))


class Performer(Protocol):
    """Runs one tool. Raises `StepFailure` for a failure of the step; cancellable at any await."""

    async def perform(self, tool: str, arguments: Mapping[str, Any], context: StepContext) -> Any: ...


class StepFailure(Exception):
    """What a performer raises: a failure that goes into the log, not an engine fault."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
