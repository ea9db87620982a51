"""What the standard tools need, in memory: entities, objects, mail. For tests, of applications too.

HTTP has no double here: a test starts a server on loopback.
"""

from __future__ import annotations

import copy
import hashlib
import threading
from typing import Any

from baton.ports.outside import KEYS_KEPT, Entity, Letter, StoredObject, Written


class MemoryEntities:
    """`Entities`."""

    def __init__(self) -> None:
        self._stored: dict[tuple[str, str, str], tuple[Entity, list[str]]] = {}
        self._lock = threading.Lock()

    def put(
        self, tenant: str, type: str, id: str, data: Any, *, key: str, expected: int | None = None
    ) -> Written:
        with self._lock:
            there, keys = self._stored.get((tenant, type, id), (Entity(version=0, data=None), []))
            if key in keys:
                return Written(version=there.version - (len(keys) - 1 - keys.index(key)))
            if expected is not None and expected != there.version:
                return Written(version=there.version, conflict=True)
            written = Entity(version=there.version + 1, data=copy.deepcopy(data))
            keys = [*keys, key]
            self._stored[tenant, type, id] = (
                written,
                keys[KEYS_KEPT // 2 :] if len(keys) >= KEYS_KEPT else keys,
            )
            return Written(version=written.version, is_new=True)

    def get(self, tenant: str, type: str, id: str) -> Entity | None:
        found = self._stored.get((tenant, type, id))
        return None if found is None else copy.deepcopy(found[0])


class MemoryObjects:
    """`Objects`."""

    def __init__(self) -> None:
        self._stored: dict[tuple[str, str, str], bytes] = {}

    def put(self, tenant: str, name: str, data: bytes, content_type: str) -> StoredObject:
        digest = hashlib.sha256(data).hexdigest()
        is_new = (tenant, name, digest) not in self._stored
        self._stored[tenant, name, digest] = data
        ref = f"memory://T/{tenant}/objects/{name}.{digest}"
        return StoredObject(ref=ref, sha256=digest, size=len(data), is_new=is_new)

    def get(self, tenant: str, name: str, sha256: str) -> bytes | None:
        return self._stored.get((tenant, name, sha256))


class MemoryMailer:
    """`Mailer`; `sent` has every letter."""

    def __init__(self) -> None:
        self.sent: list[Letter] = []

    def send(self, letter: Letter) -> str:
        self.sent.append(letter)
        return f"letter-{len(self.sent)}"
