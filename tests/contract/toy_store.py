"""A third store, on SQLite in memory: what it takes to write one, and that the contracts hold it.

The log, definitions, effects and rates are its own. Each keeps structs as JSON under a kind, a place and a sort key, and does a call under one lock.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from baton.adapters.memory.budgets import MemoryBudgets
from baton.adapters.memory.notices import MemoryIncidents
from baton.adapters.memory.outside import MemoryEntities
from baton.adapters.rules import ItemTooLarge, shard_of
from baton.core.effects.rows import Row, RowRoom
from baton.ports import (
    Definition,
    Due,
    Effect,
    Head,
    Listed,
    Place,
    Record,
    Release,
    SagaRef,
    StoreLimits,
    Wake,
)
from baton.ports.effects import FREED
from tests.contract.stores import SHARDS, LocalStores

T = TypeVar("T")
LIMITS = StoreLimits(item_bytes=600_000, rows=RowRoom(rows=200), shards=SHARDS)


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


class _Head(msgspec.Struct):
    """A head, and when its group last changed."""

    head: Head
    changed: int


class ToyLog:
    """`Log`. `stream` has the wakes of all items that were written."""

    def __init__(self, kept: Kept) -> None:
        self.limits = LIMITS
        self._kept = kept
        self.stream: list[tuple[SagaRef, Wake]] = []

    def create_head(self, head: Head) -> Head | None:
        with self._kept.alone():
            there = self.read_head(head.ref)
            if there is None:
                self._kept.put("head", str(head.ref), "", _Head(head, head.created))
                self._tell(head.ref, head.wake)
            return there

    def read_head(self, ref: SagaRef) -> Head | None:
        found = self._kept.get("head", str(ref), "", _Head)
        return None if found is None else found.head

    def take(self, ref: SagaRef, owner: str, until: int, epoch: int, due_at: int) -> Head | None:
        return self._change(
            ref,
            lambda head: head.epoch == epoch or (head.owner, head.epoch) == (owner, epoch + 1),
            owner=owner,
            until=until,
            due_at=due_at,
            epoch=epoch + 1,
            wake=None,
        )

    def leave_wake(self, ref: SagaRef, owner: str, epoch: int, version: int) -> bool:
        def may(head: Head) -> bool:
            return (head.owner, head.epoch) == (owner, epoch) and head.pending_wake < version

        return self._change(ref, may, pending_wake=version) is not None

    def release(self, ref: SagaRef, owner: str, epoch: int, release: Release) -> bool:
        def may(head: Head) -> bool:
            is_mine = (head.owner, head.epoch) == (owner, epoch)
            return is_mine and head.pending_wake <= release.folded and head.armed == release.armed

        same = ("folded", "status", "branch", "snapshot", "due_at", "wake")
        fields: dict[str, Any] = {name: getattr(release, name) for name in same}
        fields |= {"start": b""} if release.clear_start else {}
        fields |= {} if release.group_at is None else {"group": release.group}
        fields |= {"owner": "", "until": 0, "pending_wake": 0}
        return self._change(ref, may, changed=release.group_at, **fields) is not None

    def arm(self, seen: Head, until: int) -> bool:
        due_at = until if seen.due_at is None else min(seen.due_at, until)
        armed = max(seen.armed, until)
        return self._change(seen.ref, lambda head: head == seen, armed=armed, due_at=due_at) is not None

    def postpone(self, ref: SagaRef, now: int, until: int) -> bool:
        def may(head: Head) -> bool:
            return head.due_at is not None and head.due_at <= now

        return self._change(ref, may, due_at=until) is not None

    def _change(
        self, ref: SagaRef, may: Callable[[Head], bool], *, changed: int | None = None, **fields: Any
    ) -> Head | None:
        with self._kept.alone():
            found = self._kept.get("head", str(ref), "", _Head)
            if found is None or not may(found.head):
                return None
            after = replace(found.head, **fields)
            self._kept.put("head", str(ref), "", _Head(after, found.changed if changed is None else changed))
            if after != found.head:
                self._tell(ref, after.wake)
            return found.head

    def append(self, ref: SagaRef, record: Record, wake: Wake | None = None) -> bool:
        return self.append_with_rows(ref, record, (), wake)

    def append_with_rows(
        self, ref: SagaRef, record: Record, rows: Sequence[Row], wake: Wake | None = None
    ) -> bool:
        with self._kept.alone():
            sort = _sort(record.branch, record.version)
            if self._kept.get("entry", str(ref), sort, Record) is not None:
                return False
            self._put("entry", ref, record)
            for row in rows:
                self._kept.put("row", ref.tenant, f"{row.key}\0{row.sort}", row.attributes)
            self._tell(ref, wake)
            return True

    def _put(self, kind: str, ref: SagaRef, record: Record) -> None:
        stored = replace(record, size=len(record.data))
        self._kept.put(kind, str(ref), _sort(record.branch, record.version), stored)

    def _tell(self, ref: SagaRef, wake: Wake | None) -> None:
        if wake is not None:
            self.stream.append((ref, wake))

    def read_tail(self, ref: SagaRef, branch: int, after: int, limit: int | None = None) -> Sequence[Record]:
        first, last = _sort(branch, after + 1), _sort(branch, 10**10 - 1)
        return list(self._kept.between("entry", str(ref), first, last, Record))[:limit]

    def put_snapshot(self, ref: SagaRef, record: Record) -> None:
        with self._kept.alone():
            self._put("snapshot", ref, record)

    def read_snapshot(self, ref: SagaRef, branch: int, at_most: int) -> Record | None:
        first, last = _sort(branch, 0), _sort(branch, at_most)
        return next(reversed(list(self._kept.between("snapshot", str(ref), first, last, Record))), None)

    def _heads(self, shard: int) -> list[_Head]:
        found = (one for _, _, one in self._kept.all("head", _Head))
        return [one for one in found if shard_of(one.head.ref.id, SHARDS) == shard]

    def due(self, shard: int, since: int, until: int, limit: int, after: Due | None = None) -> Sequence[Due]:
        heads = (one.head for one in self._heads(shard))
        due = [(head.due_at, str(head.ref), head.ref) for head in heads if head.due_at is not None]
        last = (after[1], str(after[0])) if after else (0, "")
        found = (one for one in sorted(due, key=lambda one: one[:2]) if since <= one[0] <= until)
        return [(ref, at) for at, name, ref in found if (at, name) > last][:limit]

    def at_work(self, tenant: str, shard: int, most: int) -> int:
        heads = (one.head for one in self._heads(shard))
        return min(sum((head.ref.tenant, head.group) == (tenant, "open") for head in heads), most)

    def listed(
        self,
        tenant: str,
        group: str,
        shard: int,
        *,
        limit: int,
        since: int = 0,
        workflow: str = "",
        status: str = "",
        after: Place | None = None,
    ) -> tuple[Sequence[Listed], Place | None]:
        found = [
            Listed(
                id=one.head.ref.id,
                workflow=one.head.workflow,
                status=one.head.status,
                user=one.head.user,
                created=one.head.created,
                changed=one.changed,
            )
            for one in self._heads(shard)
            if (one.head.ref.tenant, one.head.group) == (tenant, group) and one.changed >= since
        ]
        rows = sorted(found, key=lambda row: row.place, reverse=True)
        rows = [row for row in rows if after is None or row.place < after]
        page = rows[:limit]
        wanted = [row for row in page if workflow in ("", row.workflow) and status in ("", row.status)]
        return wanted, page[-1].place if len(rows) > limit else None


def _sort(branch: int, version: int) -> str:
    return f"{branch:04d}#{version:010d}"


class ToyDefinitions:
    """`Definitions`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def put(self, definition: Definition) -> bool:
        with self._kept.alone():
            is_new = self.get(definition.tenant, definition.name, definition.version) is None
            if is_new:
                place = f"{definition.tenant}\0{definition.name}"
                self._kept.put("definition", place, f"{definition.version:09d}", definition)
            return is_new

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        if version is None:
            return next(iter(self.versions(tenant, name, 1)), None)
        return self._kept.get("definition", f"{tenant}\0{name}", f"{version:09d}", Definition)

    def names(self, tenant: str, after: str = "", limit: int | None = None) -> Sequence[str]:
        found = (one for _, _, one in self._kept.all("definition", Definition))
        return sorted({one.name for one in found if one.tenant == tenant and one.name > after})[:limit]

    def versions(self, tenant: str, name: str, limit: int) -> Sequence[Definition]:
        found = list(self._kept.between("definition", f"{tenant}\0{name}", "0", "9" * 9, Definition))
        return found[::-1][:limit]


class ToyEffects:
    """`Effects`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def claim(self, effect: Effect) -> Effect | None:
        return self._put(effect, lambda there: there.status == FREED)

    def change(self, seen: Effect, effect: Effect) -> Effect | None:
        return self._put(effect, lambda there: (there.owner, there.status) == (seen.owner, seen.status))

    def _put(self, effect: Effect, may: Callable[[Effect], bool]) -> Effect | None:
        with self._kept.alone():
            there = self.read(effect.tenant, effect.key)
            if there is None or may(there):
                self._kept.put("effect", effect.tenant, effect.key, effect)
                return None
            return there

    def read(self, tenant: str, key: str) -> Effect | None:
        return self._kept.get("effect", tenant, key, Effect)


class ToyRates:
    """`Rates`."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept

    def spend(self, tenant: str, window: int, count: int) -> int:
        with self._kept.alone():
            before = self._kept.get("rate", tenant, str(window), int) or 0
            self._kept.put("rate", tenant, str(window), before + count)
            return before


class ToyStore:
    """`Store`. Money, notices and entities are those of the store in memory: it need not bring all of its own."""

    def __init__(self) -> None:
        self.limits = LIMITS
        self.kept = Kept()
        self.log = ToyLog(self.kept)
        self.definitions = ToyDefinitions(self.kept)
        self.effects = ToyEffects(self.kept)
        self.rates = ToyRates(self.kept)
        self.budgets = MemoryBudgets()
        self.incidents = MemoryIncidents()
        self.entities = MemoryEntities()


class ToyStores(LocalStores):
    """What the contracts are held against."""

    @cached_property
    def store(self) -> ToyStore:
        return ToyStore()

    def wakes(self) -> list[tuple[SagaRef, Wake]]:
        return self.store.log.stream

    def rows(self, tenant: str) -> dict[tuple[str, str], Any]:
        rows = self.store.kept.all("row", dict[str, Any])
        return {(sort.split("\0")[0], sort.split("\0")[1]): row for of, sort, row in rows if of == tenant}
