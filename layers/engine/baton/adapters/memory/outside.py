"""The world outside in memory: entities, objects and mail. For tests, of applications too."""

from __future__ import annotations

import copy
import hashlib
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from baton.ports.outside import KEYS_KEPT, Entity, Letter, StoredObject, Written

_NOTHING = Entity(version=0, data=None)


@dataclass(frozen=True)
class _Kept:
    """An entity, None if there is none; how often it was written, the keys
    of its newest writes, and what the last one has replaced.
    """

    entity: Entity | None = None
    version: int = 0
    keys: tuple[str, ...] = ()
    before: Entity | None = None


class MemoryEntities:
    """`Entities` in memory."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str, str], _Kept] = {}
        self._lock = threading.Lock()

    def put(
        self,
        tenant: str,
        type: str,
        id: str,
        data: Any,
        *,
        key: str,
        expected: int | None = None,
        keeps_before: bool = False,
    ) -> Written:
        def written(there: _Kept) -> _Kept:
            before = (there.entity or _NOTHING) if keeps_before else None
            made = Entity(version=there.version + 1, data=copy.deepcopy(data))
            return replace(there, entity=made, before=before)

        return self._write((tenant, type, id), written, key, expected)

    def delete(self, tenant: str, type: str, id: str, *, key: str, expected: int) -> Written:
        return self._write(
            (tenant, type, id), lambda there: replace(there, entity=None, before=None), key, expected
        )

    def _write(
        self, where: tuple[str, str, str], written: Callable[[_Kept], _Kept], key: str, expected: int | None
    ) -> Written:
        with self._lock:
            there = self.stored.get(where, _Kept())
            if key in there.keys:
                since = len(there.keys) - 1 - there.keys.index(key)
                before = None if since else copy.deepcopy(there.before)
                return Written(version=there.version - since, before=before)
            now = 0 if there.entity is None else there.version
            if expected is not None and expected != now:
                return Written(version=now, conflict=True)
            keys = (*there.keys, key)
            kept = keys[KEYS_KEPT // 2 :] if len(keys) >= KEYS_KEPT else keys
            made = self.stored[where] = replace(written(there), version=there.version + 1, keys=kept)
            return Written(version=made.version, is_new=True, before=copy.deepcopy(made.before))

    def get(self, tenant: str, type: str, id: str) -> Entity | None:
        found = self.stored.get((tenant, type, id))
        return None if found is None else copy.deepcopy(found.entity)


class MemoryObjects:
    """`Objects` in memory."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str, str], tuple[bytes, str]] = {}

    def put(self, tenant: str, name: str, data: bytes, content_type: str, *, key: str = "") -> StoredObject:
        digest = hashlib.sha256(data).hexdigest()
        is_new = (tenant, name, digest) not in self.stored
        _, by = self.stored.setdefault((tenant, name, digest), (data, key))
        is_new = is_new or bool(key and by == key)
        ref = f"memory://T/{tenant}/objects/{name}.{digest}"
        return StoredObject(ref=ref, sha256=digest, size=len(data), is_new=is_new)

    def get(self, tenant: str, name: str, sha256: str) -> bytes | None:
        data, _ = self.stored.get((tenant, name, sha256), (None, ""))
        return data

    def delete(self, tenant: str, name: str, sha256: str) -> None:
        self.stored.pop((tenant, name, sha256), None)


class MemoryMailer:
    """`Mailer`; `sent` has every letter."""

    def __init__(self) -> None:
        self.sent: list[Letter] = []

    def send(self, letter: Letter) -> str:
        self.sent.append(letter)
        return f"letter-{len(self.sent)}"
