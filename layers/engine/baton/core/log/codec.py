"""The codec of a log: entries to bytes and back.

An entry written by a newer version is refused with the name of its unknown part; the codec never guesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args

import msgspec
from msgspec.structs import asdict

from baton.core.graph.graph import hash_of
from baton.core.log.events import FORMAT, Entry, Event, Gives, Value
from baton.errors import CorruptLog, UnknownEntry


class _Format(msgspec.Struct, frozen=True):
    format: int = FORMAT
    at: int = 0


class _Tag(msgspec.Struct, frozen=True):
    kind: str = ""


class _Node(msgspec.Struct, frozen=True):
    node: str = ""


class _Nodes(msgspec.Struct, frozen=True):
    events: tuple[_Node, ...] = ()


class _Tags(msgspec.Struct, frozen=True):
    events: tuple[_Tag, ...] = ()


TAGS = frozenset(str(event.__struct_config__.tag) for event in get_args(Event))
_UNREADABLE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Entry).decode
_decode_format = msgspec.json.Decoder(_Format).decode
_decode_nodes = msgspec.json.Decoder(_Nodes).decode
_decode_tags = msgspec.json.Decoder(_Tags).decode


def encode_entry(entry: Entry) -> bytes:
    """Return the entry as compact JSON, in which `format` is always present."""
    body = _encode(entry)
    return b'{"format":%d,' % entry.format + body[1:] if entry.format == FORMAT else body


def decode_entry(data: bytes) -> Entry:
    """Return the entry of these bytes.

    Raises `UnknownEntry` for a newer format or an unknown kind, `CorruptLog` for anything else.
    """
    try:
        entry = _decode(data)
    except _UNREADABLE as error:
        raise _explain(data, error) from error
    if entry.format != FORMAT:
        raise _newer(f"an entry of format {entry.format}; this version knows format {FORMAT}", entry.at)
    return entry


def _newer(message: str, at: int) -> UnknownEntry:
    error = UnknownEntry(message)
    error.at = at
    return error


def _explain(data: bytes, error: Exception) -> UnknownEntry | CorruptLog:
    try:
        found = _decode_format(data)
        if found.format > FORMAT:
            return _newer(f"an entry of format {found.format}; this version knows format {FORMAT}", found.at)
        unknown = {event.kind for event in _decode_tags(data).events} - TAGS - {""}
        if unknown:
            text = f"an entry with events that this version does not know: {sorted(unknown)}"
            return _newer(text, found.at)
    except _UNREADABLE:
        pass
    return CorruptLog(f"an entry does not decode: {error}")


def node_in(data: bytes) -> str:
    """Return the first node that an entry names, even if this version cannot decode the entry; empty if none
    is found.
    """
    try:
        return next((event.node for event in _decode_nodes(data).events if event.node), "")
    except _UNREADABLE:
        return ""


SCHEME = "cas://sha256/"
PERIOD = "@"
"""Separator between the digest of a value that expires and the place where the value is stored."""


def value_of(part: Any, ref: str) -> Value | None:
    """Return the value that `part` refers to by `ref`, whatever its period; None if `part` has no such value.

    The value is a blob, or the full value of a summary that the entry still holds.
    """
    for value in _values(part):
        if value.ref.partition(PERIOD)[0] == ref:
            return value
    if isinstance(part, Gives) and part.full is not None and not part.full.ref:
        # The summary names it by its hash, as if it were a blob.
        return part.full if SCHEME + hash_of(_encode(part.full.v)) == ref else None
    return None


def _values(part: Any) -> Iterator[Value]:
    if isinstance(part, Value):
        yield part
    elif isinstance(part, msgspec.Struct):
        for value in asdict(part).values():
            yield from _values(value)
    elif isinstance(part, dict):
        for item in part.values():
            yield from _values(item)
    elif isinstance(part, tuple):
        for item in part:
            yield from _values(item)
