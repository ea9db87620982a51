"""The codec of snapshots: a state to bytes and back.

A snapshot is a cache of the log. A snapshot that this version cannot read is skipped, and the log is read
instead.
"""

from __future__ import annotations

import hashlib

import msgspec

from baton.core.failures.alternatives import Alternative
from baton.core.failures.strategies.base import History
from baton.core.log.events import (
    Ask,
    Blamed,
    CancelRequested,
    Failure,
    Notice,
    Parked,
    SagaEnded,
    Shown,
    Value,
)
from baton.core.log.functions import AskedOperation, Heard, RunningFunction
from baton.core.log.incarnations import ReplacedSaga
from baton.core.log.records import (
    Child,
    Escalation,
    Option,
    Paused,
    Response,
    SharedLimit,
    Takeover,
)
from baton.core.log.records import Segment as Transcribed
from baton.core.log.scopes import Agent, MadeCall, Map, Progress, Replanning, Turn
from baton.core.log.state import (
    Counts,
    EarlierGraph,
    Failing,
    Held,
    Lineage,
    Money,
    Origin,
    Outbox,
    Recovery,
    Segment,
    Signal,
    State,
    Used,
)
from baton.core.log.undos import NotUndone, Undoable, Undoing, Undone, UndoStep
from baton.core.log.work import Callback, Journal, Question, Wait
from baton.core.models.usage import Allowance


class _Snapshot(msgspec.Struct, frozen=True):
    """`shape` names the fields that the writer knew, and their meaning.

    A field added or dropped since would be read as its default, which the log may contradict.
    """

    shape: str
    state: State


PARTS = (
    *(
        State,
        Origin,
        EarlierGraph,
        Lineage,
        Recovery,
        Counts,
        Money,
        Outbox,
        Value,
        Wait,
        Signal,
        Child,
        Segment,
        Used,
        CancelRequested,
        Failure,
        Parked,
        SagaEnded,
    ),
    *(SharedLimit, ReplacedSaga, Allowance),
    *(Failing, Held, History, Alternative, Ask, Notice, Blamed),
    *(Question, Option, Takeover, Escalation, Shown, Callback, Response, Paused),
    *(Agent, Turn, Transcribed, Progress),
    *(Map, Replanning, MadeCall, Journal),
    *(RunningFunction, AskedOperation, Heard),
    *(Undoable, Undoing, UndoStep, NotUndone, Undone),
)
_MEANING = "parked is what does not go on"  # earlier versions kept it when a cancel or a failure came
SHAPE = hashlib.sha256(
    repr([_MEANING, *((part.__name__, part.__struct_fields__) for part in PARTS)]).encode()
).hexdigest()[:12]

_encode = msgspec.json.Encoder().encode
_decode_snapshot = msgspec.json.Decoder(_Snapshot).decode


class _Moved(msgspec.Struct, frozen=True):
    """Stand-in for a large snapshot: the reference of the blob that holds it."""

    ref: str


_decode_moved = msgspec.json.Decoder(_Moved).decode


def encode_moved(ref: str) -> bytes:
    """Return the stand-in for a snapshot in a blob.

    An older version takes it for a damaged snapshot, and reads the log.
    """
    return _encode(_Moved(ref))


def moved_to(data: bytes) -> str:
    """Return the reference of the blob that holds a snapshot; empty if the bytes are the snapshot itself."""
    return _decode_moved(data).ref if data.startswith(b'{"ref":') else ""


def encode_state(state: State) -> bytes:
    """Return a snapshot's bytes."""
    return _encode(_Snapshot(SHAPE, state))


def decode_state(data: bytes) -> State:
    """Return the state of a snapshot.

    Raises `msgspec.DecodeError` for bytes that another version wrote; the log is then read instead.
    """
    snapshot = _decode_snapshot(data)
    if snapshot.shape != SHAPE:
        raise msgspec.DecodeError(f"a snapshot of shape {snapshot.shape}; this version knows {SHAPE}")
    return snapshot.state
