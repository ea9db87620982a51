"""The due index in memory: what is due when, by lane and shard. It may lag behind, as that of a table does."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Sequence
from typing import TypeAlias

from baton.adapters.rules import shard_of
from baton.ports import TIMER, Due, Head, SagaRef

_Row: TypeAlias = tuple[int, str, SagaRef]


class DueIndex:
    """Rows by lane and shard, in their order. With `lag`, it is read from a copy that only `settle` brings up to date.

    Its user has the lock.
    """

    def __init__(self, shards: int, *, lag: bool) -> None:
        self._shards = shards
        self._rows: dict[tuple[str, int], list[_Row]] = defaultdict(list)
        self._seen = defaultdict(list) if lag else self._rows

    def put(self, head: Head) -> None:
        """Add a head, if it is due at some time."""
        if head.due_at is not None:
            insort(self._of(head), _row(head), key=_place)

    def remove(self, head: Head) -> None:
        """Take out a head as it was put."""
        if head.due_at is not None:
            rows = self._of(head)
            rows.pop(bisect_left(rows, _place(_row(head)), key=_place))

    def move(self, ref: SagaRef, before: int, after: int) -> None:
        """Where an item of lane `timer` is that is no head. 0: nowhere."""
        rows = self._rows[TIMER, shard_of(ref.id, self._shards)]
        if before:
            rows.remove((before, str(ref), ref))
        if after:
            insort(rows, (after, str(ref), ref), key=_place)

    def between(
        self, lane: str, shard: int, since: int, until: int, limit: int, after: Due | None
    ) -> Sequence[Due]:
        """What is due then, behind `after`."""
        rows = self._seen[lane, shard]
        first = bisect_left(rows, (since, ""), key=_place)
        if after is not None:
            first = max(first, bisect_right(rows, (after[1], str(after[0])), key=_place))
        last = bisect_left(rows, (until + 1, ""), key=_place)
        return [(ref, due_at) for due_at, _, ref in rows[first : min(last, first + limit)]]

    def settle(self) -> None:
        """Catch up; without `lag` it always has."""
        if self._seen is not self._rows:
            self._seen = defaultdict(list, {key: rows.copy() for key, rows in self._rows.items()})

    def _of(self, head: Head) -> list[_Row]:
        return self._rows[head.lane, shard_of(head.ref.id, self._shards)]


def _row(head: Head) -> _Row:
    return head.due_at or 0, str(head.ref), head.ref


def _place(row: _Row) -> tuple[int, str]:
    return row[0], row[1]
