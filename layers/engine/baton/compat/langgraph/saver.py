"""A checkpoint saver on the table and the bucket of a deployment, for threads that outlast a saga."""

from __future__ import annotations

import copy
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    CheckpointTuple,
    get_checkpoint_id,
    get_checkpoint_metadata,
    writes_sort_key,
)
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from baton.core.limits import DAY_MS
from baton.ports import CheckpointRow, StepContext, ThreadStore
from baton.ports.log import period_of

INLINE_BYTES: Final = 8_192
"""Size above which a value goes to the bucket."""
KEPT_DAYS: Final = 400
_CHECKPOINT, _WRITE = "C", "W"
_END = "\U0010ffff"
STEP: ContextVar[StepContext | None] = ContextVar("graph_step", default=None)


class _Checkpoint(msgspec.Struct, array_like=True):
    """A stored checkpoint with its metadata, as the serializer writes them."""

    parent: str
    checkpoint: tuple[str, bytes]
    metadata: tuple[str, bytes]


class _Write(msgspec.Struct, array_like=True):
    task: str
    channel: str
    value: tuple[str, bytes]
    path: str


class BatonSaver(BaseCheckpointSaver[str]):
    """LangGraph's checkpoints in the one table, by tenant and `thread_id`; large ones in the bucket.

    store: where they are kept; without it, the store of the step that runs. It reads types of its own in
    strict mode: others come back as plain data, unless `serde` allows them. keep: days after which the store
    deletes what was written, 0 never.
    """

    def __init__(self, store: ThreadStore | None = None, *, serde: Any = None, keep: int = KEPT_DAYS) -> None:
        super().__init__(serde=serde or JsonPlusSerializer(allowed_msgpack_modules=None))
        self.store, self._keep = store, keep

    @property
    def _store(self) -> ThreadStore:
        if self.store is not None:
            return self.store
        step = STEP.get()
        if step is None or step.threads is None:
            raise ValueError("no saga runs this graph: write `BatonSaver(thread_store(…))`")
        return step.threads()

    # ---- reading

    def get_tuple(self, config: Any) -> CheckpointTuple | None:
        """Return the checkpoint that a configuration names, or the newest of its thread."""
        thread, ns, checkpoint_id = _place(config)
        rows = self._rows(thread, _CHECKPOINT, ns, checkpoint_id, limit=1)
        return next((self._tuple(thread, row) for row in rows), None)

    def list(
        self, config: Any, *, filter: Any = None, before: Any = None, limit: int | None = None
    ) -> Iterator[CheckpointTuple]:
        """Yield the checkpoints of a thread, the newest first. All threads cannot be listed."""
        if config is None:
            raise ValueError("`BatonSaver` lists one thread: give its `thread_id`")
        thread, ns, checkpoint_id = _place(config)
        everywhere = "checkpoint_ns" not in config["configurable"]
        rows = self._rows(thread, _CHECKPOINT, None if everywhere else ns, checkpoint_id)
        until = None if before is None else get_checkpoint_id(before)
        count = 0
        for row in sorted(rows, key=lambda row: _parts(row.key)[1], reverse=True):
            if (until is not None and _parts(row.key)[1] >= until) or (limit is not None and count >= limit):
                continue
            found = self._tuple(thread, row)
            metadata: dict[str, Any] = dict(found.metadata)
            if all(metadata.get(key) == value for key, value in (filter or {}).items()):
                count += 1
                yield found

    def _rows(
        self,
        thread: str,
        kind: str,
        ns: str | None = None,
        checkpoint_id: str | None = None,
        limit: int | None = None,
    ) -> Sequence[CheckpointRow]:
        """Return rows of a kind: of all namespaces, of one, or of one checkpoint there."""
        first = f"{kind}#" if ns is None else _key(kind, ns, checkpoint_id or "")
        last = f"{first}{'' if kind == _CHECKPOINT and checkpoint_id and ns is not None else _END}"
        store = self._store
        rows = store.checkpoints.rows(store.tenant, thread, first, last, limit)
        return rows if checkpoint_id is None else [row for row in rows if _parts(row.key)[1] == checkpoint_id]

    def _tuple(self, thread: str, row: CheckpointRow) -> CheckpointTuple:
        ns, checkpoint_id = _parts(row.key)
        found = msgspec.msgpack.decode(self._data(row), type=_Checkpoint)
        writes = []
        for one in self._rows(thread, _WRITE, ns, checkpoint_id):
            write = msgspec.msgpack.decode(self._data(one), type=_Write)
            writes.append((writes_sort_key(write.path, write.task, int(one.key.rpartition("#")[2])), write))
        return CheckpointTuple(
            config=config_of(thread, ns, checkpoint_id),
            checkpoint=self.serde.loads_typed(found.checkpoint),
            metadata=self.serde.loads_typed(found.metadata),
            parent_config=config_of(thread, ns, found.parent) if found.parent else None,
            pending_writes=[
                (write.task, write.channel, self.serde.loads_typed(write.value))
                for _, write in sorted(writes, key=lambda one: one[0])
            ],
        )

    def _data(self, row: CheckpointRow) -> bytes:
        store = self._store
        return row.data or store.blobs.get(store.tenant, row.ref)

    # ---- writing

    def put(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """Store a checkpoint, whole."""
        thread, ns, parent = _place(config)
        stored = _Checkpoint(
            parent or "",
            self.serde.dumps_typed(checkpoint),
            self.serde.dumps_typed(get_checkpoint_metadata(config, metadata)),
        )
        self._put(thread, _key(_CHECKPOINT, ns, checkpoint["id"]), stored)
        return config_of(thread, ns, checkpoint["id"])

    def put_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Store what a task has written. The first regular write of a place stays."""
        thread, ns, checkpoint_id = _place(config)
        for number, (channel, value) in enumerate(writes):
            place = WRITES_IDX_MAP.get(channel, number)
            stored = _Write(task_id, channel, self.serde.dumps_typed(value), task_path)
            key = f"{_key(_WRITE, ns, checkpoint_id or '')}#{_quoted(task_id)}#{place}"
            self._put(thread, key, stored, is_new=place >= 0)

    def _put(self, thread: str, key: str, value: msgspec.Struct, *, is_new: bool = False) -> None:
        store, data = self._store, msgspec.msgpack.encode(value)
        now = store.clock.now()
        expires = now + self._keep * DAY_MS if self._keep else 0
        row = CheckpointRow(key=key, data=data, expires=expires)
        if len(data) > INLINE_BYTES:
            ref = store.blobs.put(store.tenant, data, period_of(now, expires))
            row = CheckpointRow(key=key, ref=ref, expires=expires)
        store.checkpoints.put(store.tenant, thread, row, is_new=is_new)

    def delete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints of a thread. Blobs of large ones expire."""
        self._delete(thread_id, lambda ns, checkpoint_id: True)

    def _delete(self, thread: str, has_to_go: Callable[[str, str], bool]) -> None:
        rows = [*self._rows(thread, _CHECKPOINT), *self._rows(thread, _WRITE)]
        keys = [row.key for row in rows if has_to_go(*_parts(row.key))]
        store = self._store
        store.checkpoints.delete(store.tenant, thread, keys, store.clock.now())

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy all checkpoints of a thread, with their writes, to another."""
        store = self._store
        for row in (*self._rows(source_thread_id, _CHECKPOINT), *self._rows(source_thread_id, _WRITE)):
            store.checkpoints.put(store.tenant, target_thread_id, row)

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads but the newest of each namespace, or with `delete` all.

        A thread with a `DeltaChannel` keeps all.
        """
        for thread in thread_ids:
            newest: dict[str, str] = {}
            if strategy == "keep_latest":
                for row in self._rows(thread, _CHECKPOINT):
                    newest.setdefault(*_parts(row.key))
                if any(self._has_deltas(thread, ns) for ns in newest):
                    continue
            self._delete(thread, lambda ns, checkpoint_id, kept=newest: kept.get(ns) != checkpoint_id)  # type: ignore[misc]

    def _has_deltas(self, thread: str, ns: str) -> bool:
        found = self.get_tuple(config_of(thread, ns, ""))
        return found is not None and bool(found.metadata.get("counters_since_delta_snapshot"))

    def get_next_version(self, current: Any, channel: None) -> str:
        """Return a greater version, unlike that of another writer."""
        return InMemorySaver.get_next_version(self, current, channel)  # type: ignore[arg-type]  # no field of it

    # ---- the same on an event loop

    async def _call(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method where requests may wait. The store of the step is known here only."""
        saver = copy.copy(self)
        saver.store = store = self._store
        return await store.call(getattr(saver, name), *args, **kwargs)

    async def aget_tuple(self, config: Any) -> CheckpointTuple | None:
        """See `get_tuple`."""
        found: CheckpointTuple | None = await self._call("get_tuple", config)
        return found

    async def alist(
        self, config: Any, *, filter: Any = None, before: Any = None, limit: int | None = None
    ) -> AsyncIterator[CheckpointTuple]:
        """See `list`."""
        for one in await self._call("_listed", config, filter=filter, before=before, limit=limit):
            yield one

    def _listed(self, config: Any, **options: Any) -> Sequence[CheckpointTuple]:
        return [*self.list(config, **options)]

    async def aput(self, config: Any, checkpoint: Any, metadata: Any, new_versions: Any) -> Any:
        """See `put`."""
        return await self._call("put", config, checkpoint, metadata, new_versions)

    async def aput_writes(
        self, config: Any, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """See `put_writes`."""
        await self._call("put_writes", config, writes, task_id, task_path)

    async def adelete_thread(self, thread_id: str) -> None:
        """See `delete_thread`."""
        await self._call("delete_thread", thread_id)

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """See `copy_thread`."""
        await self._call("copy_thread", source_thread_id, target_thread_id)

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """See `prune`."""
        await self._call("prune", thread_ids, strategy=strategy)


def config_of(thread: str, ns: str, checkpoint_id: str) -> Any:
    """Return the configuration of a checkpoint; without an id, of the newest."""
    return {
        "configurable": {
            "thread_id": thread,
            "checkpoint_ns": ns,
            **({"checkpoint_id": checkpoint_id} if checkpoint_id else {}),
        }
    }


def _place(config: Any) -> tuple[str, str, str | None]:
    of = config["configurable"]
    return of["thread_id"], of.get("checkpoint_ns", ""), get_checkpoint_id(config)


def _quoted(text: str) -> str:
    return quote(text, safe=":|-")


def _key(kind: str, ns: str, checkpoint_id: str) -> str:
    return f"{kind}#{_quoted(ns)}#{_quoted(checkpoint_id)}"


def _parts(key: str) -> tuple[str, str]:
    _, ns, checkpoint_id, *_ = key.split("#")
    return unquote(ns), unquote(checkpoint_id)
