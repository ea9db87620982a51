"""The table of the toy store: structs as JSON under a kind, a place and a sort key, in SQLite. A change is made under one lock."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import msgspec

from baton.core.effects.rows import RowRoom
from baton.ports import StoreLimits
from baton.ports.log import ItemTooLarge
from tests.contract.stores import SHARDS

T = TypeVar("T")
LIMITS = StoreLimits(item_bytes=600_000, rows=RowRoom(rows=200), due_shards=SHARDS, status_shards=SHARDS)


class Kept:
    """One table: kind, place, sort key, value."""

    def __init__(self) -> None:
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._db.execute("CREATE TABLE kept (kind, place, sort, value, PRIMARY KEY (kind, place, sort))")
        self._lock = threading.RLock()

    @contextmanager
    def alone(self) -> Iterator[None]:
        with self._lock, self._db:
            yield

    def put(self, kind: str, place: str, sort: str, value: Any) -> None:
        data = msgspec.json.encode(value)
        if len(data) > LIMITS.item_bytes * 4 // 3:
            raise ItemTooLarge(len(data), LIMITS.item_bytes)
        self._db.execute("INSERT OR REPLACE INTO kept VALUES (?, ?, ?, ?)", (kind, place, sort, data))

    def get(self, kind: str, place: str, sort: str, type: type[T]) -> T | None:
        return next(self.between(kind, place, sort, sort, type), None)

    def between(self, kind: str, place: str, first: str, last: str, type: type[T]) -> Iterator[T]:
        where = "SELECT value FROM kept WHERE kind = ? AND place = ? AND sort BETWEEN ? AND ? ORDER BY sort"
        with self._lock:
            found = self._db.execute(where, (kind, place, first, last)).fetchall()
        return (msgspec.json.decode(data, type=type) for (data,) in found)

    def all(self, kind: str, type: type[T]) -> list[tuple[str, str, T]]:
        with self._lock:
            found = self._db.execute(
                "SELECT place, sort, value FROM kept WHERE kind = ? ORDER BY 1, 2", (kind,)
            )
            return [(place, sort, msgspec.json.decode(data, type=type)) for place, sort, data in found]
