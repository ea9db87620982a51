"""`Blobs` in memory."""

from __future__ import annotations

import threading

from baton.errors import CorruptLog
from baton.ports.blobs import reference_of


class MemoryBlobs:
    """Content-addressed bytes. `stored` is open, so that a test can tamper with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.stored: dict[tuple[str, str], bytes] = {}

    def put(self, tenant: str, data: bytes, period: str = "") -> str:
        ref = reference_of(data, period)
        with self._lock:
            self.stored[tenant, ref] = data
        return ref

    def get(self, tenant: str, ref: str) -> bytes:
        with self._lock:
            data = self.stored.get((tenant, ref))
        if data is None:
            raise CorruptLog(f"blob {ref} is not there")
        if reference_of(data, ref.partition("@")[2]) != ref:
            raise CorruptLog(f"blob {ref} does not hold what its name says")
        return data
