"""Business rows that a tool keeps in the saga table: written in one transaction with its step's entry.

Only what a row is, and what it may not be. Who writes it is the log adapter's business.
"""

from __future__ import annotations

from typing import Any

import msgspec

MAX_PER_STEP = 25
MAX_PER_ENTRY = 90  # DynamoDB takes 100 items in a transaction, and the entry is one
MAX_KEY = 500
MAX_BYTES = 100_000


class Row(msgspec.Struct, frozen=True):
    """A row of its tenant: `key` names a group of rows, `sort` one in it, `attributes` are JSON."""

    key: str
    sort: str
    attributes: dict[str, Any]


def check_row(row: Row) -> Row:
    """The row. Raises `ValueError` that says what would be right."""
    if not 0 < len(row.key) <= MAX_KEY or not 0 < len(row.sort) <= MAX_KEY:
        raise ValueError(f"a row's key and sort have 1 to {MAX_KEY} characters")
    taken = {"pk", "sk"} & row.attributes.keys()
    if taken:
        raise ValueError(f"a row's attributes cannot be called {', '.join(sorted(taken))}")
    size = len(msgspec.json.encode(row.attributes))
    if size > MAX_BYTES:
        raise ValueError(f"a row has at most {MAX_BYTES} bytes; this one has {size}")
    return row
