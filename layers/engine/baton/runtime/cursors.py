"""Cursors: where a list goes on, as a word for the outside. What is in one is the list's own business."""

from __future__ import annotations

import base64

from baton.errors import UserError

_WORD = b"-_"  # in place of + and /, which a query string would have to escape


def write_cursor(place: bytes) -> str:
    return base64.b64encode(place, _WORD).decode().rstrip("=")


def read_cursor(cursor: str) -> bytes:
    """Raises `UserError` for what no `write_cursor` has made."""
    try:
        return base64.b64decode(cursor + "=" * (-len(cursor) % 4), _WORD, validate=True)
    except ValueError as error:
        raise foreign_cursor() from error


def foreign_cursor() -> UserError:
    return UserError("the cursor is not one that a list has answered with; leave it out to begin anew")
