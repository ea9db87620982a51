"""Business rows that a tool keeps beside its saga: written in one transaction with its step's entry.

Only the form of a row and its limits are here: a row that the store refuses would keep its whole entry from
being written.
The log adapter writes the rows.
"""

from __future__ import annotations

from typing import Any

import msgspec

# The contract with tools, the same on every store: what it allows, each of them takes (tests/contract/test_rows.py).
MAX_PER_STEP = 25
MAX_BYTES = 100_000
MAX_KEY_BYTES = 1_024
MAX_DIGITS = 38
SMALLEST, LARGEST = 1e-130, 9.99e125
MAX_LEVELS = 32  # an attribute's own value is on the first
# What stores find their own items by: a row that had them could be taken for something else.
RESERVED = frozenset({"pk", "sk", "wake", "due_shard", "due_at", "st_key", "st_at", "ask_key", "ask_at"})


class Row(msgspec.Struct, frozen=True):
    """A row of its tenant: `key` names a group of rows, `sort` one in it, `attributes` are JSON."""

    key: str
    sort: str
    attributes: dict[str, Any]


def check_row(row: Row) -> Row:
    """Return a deep copy of the row. Raises a `ValueError` with the correct form."""
    for name, value in (("key", row.key), ("sort", row.sort)):
        _check_key(name, value)
    if not isinstance(row.attributes, dict):
        raise ValueError(f"a row's attributes are an object, and not {type(row.attributes).__name__}")
    taken = RESERVED & row.attributes.keys()
    if taken:
        raise ValueError(f"a row's attributes cannot be called {', '.join(sorted(taken))}")
    copy = Row(row.key, row.sort, {})
    for name, value in row.attributes.items():
        copy.attributes[_name(name, "")] = _plain(value, name, 1)
    size = sum(_size(name) + _size(value) for name, value in copy.attributes.items())
    if size > MAX_BYTES:
        raise ValueError(f"a row has at most {MAX_BYTES} bytes; this one has {size}")
    return copy


def size_of(row: Row) -> int:
    """Return the bytes that a row takes in a store, or a little more, without the tenant."""
    return len("pksk") + _size(row.key) + _size(row.sort) + _size(row.attributes)


class RowRoom(msgspec.Struct, frozen=True):
    """Most rows that a store writes together with one entry, and their most bytes. None: any number.

    The rows of one step always fit.
    """

    rows: int | None = None
    bytes: int | None = None

    def takes(self, rows: tuple[Row, ...]) -> bool:
        """Return true if one entry can take all of these, whatever its own size."""
        has_room = self.rows is None or len(rows) <= self.rows
        return has_room and (self.bytes is None or sum(map(size_of, rows)) <= self.bytes)


ANY_ROWS = RowRoom()


def _check_key(name: str, value: Any) -> None:
    if not isinstance(value, str):
        raise ValueError(f"a row's {name} is text, and not {type(value).__name__}")
    size = len(_text(value, name).encode())
    if not 0 < size <= MAX_KEY_BYTES:
        raise ValueError(f"a row's {name} has 1 to {MAX_KEY_BYTES} bytes of UTF-8; this one has {size}")


def _plain(value: Any, at: str, level: int) -> Any:
    """Return the value, copied. `at` is its place in the row, in words of the row's author."""
    if level > MAX_LEVELS or (level == MAX_LEVELS and isinstance(value, (dict, list, tuple))):
        raise ValueError(f"a row's attributes are nested at most {MAX_LEVELS} levels deep")
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _text(value, at)
    if isinstance(value, int):
        return _integer(value, at)
    if isinstance(value, float):
        return _float(value, at)
    if isinstance(value, dict):
        return {_name(name, at): _plain(item, f"{at}/{name}", level + 1) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item, f"{at}/{number}", level + 1) for number, item in enumerate(value)]
    raise ValueError(f"{_short(at)}: JSON has no {type(value).__name__}; write it as text or as numbers")


def _name(name: Any, at: str) -> str:
    where = f"{_short(at)}: " if at else ""
    if not isinstance(name, str):
        raise ValueError(f"{where}names are text, and {_short(repr(name))} is not")
    if not name:
        raise ValueError(f"{where}there is a name that is empty; it has 1 character at least")
    return _text(name, at or "a name")


# A member of an enumeration is stored as its base type: hence the exact types below.


def _text(value: str, at: str) -> str:
    try:
        return value.encode().decode()
    except UnicodeEncodeError:
        raise ValueError(f"{_short(at)}: half a character (a surrogate) cannot be stored") from None


def _integer(value: int, at: str) -> int:
    if abs(value) >= 10**MAX_DIGITS:
        raise ValueError(f"{_short(at)}: a number has at most {MAX_DIGITS} digits; write it as text")
    return int(value)


def _float(value: float, at: str) -> float:
    if value and not SMALLEST <= abs(value) <= LARGEST:
        text = f"a number is 0 or of {SMALLEST} to {LARGEST}, and {value} is outside; write it as text"
        raise ValueError(f"{_short(at)}: {text}")
    return float(value)


def _size(value: Any) -> int:
    if isinstance(value, str):
        return len(value.encode())
    if isinstance(value, dict):
        return 3 + sum(1 + _size(name) + _size(item) for name, item in value.items())
    if isinstance(value, (list, tuple)):
        return 3 + sum(1 + _size(item) for item in value)
    if value is None or isinstance(value, bool):
        return 1
    return len(str(value)) // 2 + 2  # two digits to a byte, and a byte for each of exponent and sign


def _short(text: str) -> str:
    """Return text for a message: its part that UTF-8 can hold, at most 100 characters."""
    return text[:100].encode(errors="replace").decode()
