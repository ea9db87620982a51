"""Cursors: the place where a list goes on, as an opaque word. Only the list reads its content."""

from __future__ import annotations

import base64
import zlib

from baton.errors import UserError

_WORD = b"-_"  # in place of + and /, which a query string would have to escape
_UNPACKED = 262_144  # bytes of a place; those of a list over 32 shards, with the longest ids, are half of it


def write_cursor(place: bytes) -> str:
    """A word for a place. Packed, because API Gateway takes 10,240 bytes of address and headers."""
    return base64.b64encode(zlib.compress(place), _WORD).decode().rstrip("=")


def read_cursor(cursor: str) -> bytes:
    """Raises `UserError` for what no `write_cursor` has made."""
    unpacking = zlib.decompressobj()
    try:
        packed = base64.b64decode(cursor + "=" * (-len(cursor) % 4), _WORD, validate=True)
        place = unpacking.decompress(packed, _UNPACKED)
    except (ValueError, zlib.error) as error:
        raise foreign_cursor() from error
    if not unpacking.eof or unpacking.unused_data:
        raise foreign_cursor()
    return place


def foreign_cursor() -> UserError:
    return UserError("the cursor is not one that a list has answered with; leave it out to begin anew")
