"""What can be in a log: the kinds of event, the entry around them, and their one codec.

Adding a kind or an optional field keeps `FORMAT`; changing the meaning of what is there raises it.
Entries written by a newer version are refused loudly, never guessed at.
"""

from __future__ import annotations

from typing import Any, get_args

import msgspec

from baton.errors import CorruptLog, UnknownEntry

FORMAT = 1


class Value(msgspec.Struct, frozen=True, omit_defaults=True):
    """A JSON value: inline as `v`, or as a blob (`ref`, `size` in bytes) when that is cheaper."""

    v: Any = None
    ref: str = ""
    size: int = 0


class Token(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One firing of one edge: sender, receiver, one iteration number per enclosing loop, and life.

    A dead token says that this edge will not be taken in this iteration.
    """

    src: str
    dst: str
    iteration: tuple[int, ...] = ()
    alive: bool = True


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """Why a step or a saga failed: a code for programs, a message for people, the node if there is one."""

    code: str
    message: str
    node: str = ""


class _Event(msgspec.Struct, frozen=True, tag_field="kind", omit_defaults=True, kw_only=True):
    """Root of the tagged union."""


class _Consumes(_Event, frozen=True, omit_defaults=True, kw_only=True):
    """An event that consumes the tokens waiting at (node, iteration) and emits the next ones.

    `forget` names nodes whose outputs no later step can read any more.
    """

    node: str
    iteration: tuple[int, ...] = ()
    emits: tuple[Token, ...] = ()
    forget: tuple[str, ...] = ()


class SagaStarted(_Event, frozen=True, tag="saga_started", omit_defaults=True, kw_only=True):
    """Entry 1. `parent` is the key of the saga that waits for this one; `slot` its place there.

    `depth` counts the sagas above it.
    """

    workflow: str
    graph: str
    tenant: str
    user: str
    saga: str
    input: Value
    at: int
    emits: tuple[Token, ...]
    parent: str = ""
    slot: str = ""
    depth: int = 0


class StepSucceeded(_Consumes, frozen=True, tag="step_succeeded", omit_defaults=True, kw_only=True):
    """A tool answered. `keep` False: nobody reads the output, so the state need not hold it."""

    attempt: int
    output: Value
    started_at: int
    ended_at: int
    tool: str
    tool_version: str
    schema_hash: str
    keep: bool = True


class StepFailed(_Event, frozen=True, tag="step_failed", omit_defaults=True, kw_only=True):
    """A tool failed, timed out, or its input could not be bound."""

    node: str
    iteration: tuple[int, ...] = ()
    attempt: int
    failure: Failure
    started_at: int
    ended_at: int
    tool: str
    tool_version: str
    schema_hash: str


class StepInterrupted(_Event, frozen=True, tag="step_interrupted", omit_defaults=True, kw_only=True):
    """Cut off by the invocation's end, not by its own timeout: it runs again and loses no attempt.

    `budget_ms` is what it could have had at most, from its start to the cut.
    """

    node: str
    iteration: tuple[int, ...] = ()
    started_at: int
    ended_at: int
    budget_ms: int


class NodeSkipped(_Consumes, frozen=True, tag="node_skipped", omit_defaults=True, kw_only=True):
    """Every edge into the node was dead."""


class WaitOpened(_Event, frozen=True, tag="wait_opened", omit_defaults=True, kw_only=True):
    """A wait node began: until a time, for a signal, or both, whichever is first."""

    node: str
    iteration: tuple[int, ...] = ()
    until: int | None = None
    signal: str = ""


class WaitClosed(_Consumes, frozen=True, tag="wait_closed", omit_defaults=True, kw_only=True):
    """`by` is "time" or the key of the signal that ended it."""

    by: str
    output: Value
    keep: bool = True


class ChildOpened(_Event, frozen=True, tag="child_opened", omit_defaults=True, kw_only=True):
    """A child saga is to be started under this id; recorded before it is."""

    node: str
    iteration: tuple[int, ...] = ()
    child: str
    workflow: str
    input: Value


class ChildReported(_Event, frozen=True, tag="child_reported", omit_defaults=True, kw_only=True):
    """A child ended; the relay or the parent itself puts this, several in one entry."""

    slot: str
    child: str
    status: str
    output: Value = Value()
    failure: Failure | None = None


class ChildClosed(_Consumes, frozen=True, tag="child_closed", omit_defaults=True, kw_only=True):
    """The workflow node whose child reported success is done."""

    child: str
    output: Value
    keep: bool = True


class ChildrenAbandoned(_Event, frozen=True, tag="children_abandoned", omit_defaults=True, kw_only=True):
    """Children that a fork left behind were asked to stop."""

    children: tuple[str, ...]


class SignalReceived(_Event, frozen=True, tag="signal_received", omit_defaults=True, kw_only=True):
    """Somebody outside said something. A repeated `key` is a no-op."""

    name: str
    key: str
    payload: Value
    by: str
    at: int


class CancelRequested(_Event, frozen=True, tag="cancel_requested", omit_defaults=True, kw_only=True):
    """Running steps may finish until `at + grace_ms`; nothing new starts."""

    reason: str
    by: str
    at: int
    grace_ms: int


class Revived(_Event, frozen=True, tag="revived", omit_defaults=True, kw_only=True):
    """The lease of invocation `dead` (epoch `dead_epoch`) ran out at `dead_until` without a release."""

    dead: str
    dead_epoch: int
    dead_until: int
    at: int


class Parked(_Event, frozen=True, tag="parked", omit_defaults=True, kw_only=True):
    """A person has to decide; `code` says about what."""

    code: str
    message: str
    node: str = ""


class Resumed(_Event, frozen=True, tag="resumed", omit_defaults=True, kw_only=True):
    """A person let a parked saga try again."""

    by: str
    at: int


class Forked(_Event, frozen=True, tag="forked", omit_defaults=True, kw_only=True):
    """The last entry of a branch: the saga goes on in branch `branch` from its state at version `cut`.

    A repeated `key` makes no second fork.
    """

    cut: int
    branch: int
    by: str
    at: int
    reason: str = ""
    key: str = ""


class SagaEnded(_Event, frozen=True, tag="saga_ended", omit_defaults=True, kw_only=True):
    """`status` is completed, failed or cancelled. After it only a fork may follow."""

    status: str
    output: Value = Value()
    failure: Failure | None = None


Event = (
    SagaStarted
    | StepSucceeded
    | StepFailed
    | StepInterrupted
    | NodeSkipped
    | WaitOpened
    | WaitClosed
    | ChildOpened
    | ChildReported
    | ChildClosed
    | ChildrenAbandoned
    | SignalReceived
    | CancelRequested
    | Revived
    | Parked
    | Resumed
    | Forked
    | SagaEnded
)


class Entry(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One append: its events, and who wrote it when.

    `epoch` is that of the lease under which a worker wrote it, 0 for anybody else. Epoch and invocation
    together tell whoever repeats a put without having seen the answer that the entry is its own.
    """

    format: int = FORMAT
    version: int
    branch: int = 0
    at: int
    epoch: int = 0
    invocation: str
    cold: bool = False
    traceparent: str = ""
    events: tuple[Event, ...]


class _Format(msgspec.Struct, frozen=True):
    format: int = FORMAT


class _Kind(msgspec.Struct, frozen=True):
    kind: str = ""


class _Kinds(msgspec.Struct, frozen=True):
    events: tuple[_Kind, ...] = ()


KINDS = frozenset(str(kind.__struct_config__.tag) for kind in get_args(Event))
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode
_decode_format = msgspec.json.Decoder(_Format).decode
_decode_kinds = msgspec.json.Decoder(_Kinds).decode


def encode_entry(entry: Entry) -> bytes:
    """Compact JSON; `format` is always present."""
    body = _encode(entry)
    return b'{"format":%d,' % entry.format + body[1:] if entry.format == FORMAT else body


def decode_entry(data: bytes) -> Entry:
    """Raises `UnknownEntry` for a newer format or an unknown kind, `CorruptLog` for anything else."""
    try:
        entry = _decode(data)
    except _UNREADABLE as error:
        raise _explain(data, error) from error
    if entry.format != FORMAT:
        raise UnknownEntry(f"an entry of format {entry.format}; this version knows format {FORMAT}")
    return entry


def _explain(data: bytes, error: Exception) -> UnknownEntry | CorruptLog:
    try:
        found = _decode_format(data).format
        if found > FORMAT:
            return UnknownEntry(f"an entry of format {found}; this version knows format {FORMAT}")
        unknown = {event.kind for event in _decode_kinds(data).events} - KINDS - {""}
        if unknown:
            return UnknownEntry(f"an entry with events that this version does not know: {sorted(unknown)}")
    except _UNREADABLE:
        pass
    return CorruptLog(f"an entry does not decode: {error}")
