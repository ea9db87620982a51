"""Blobs: content-addressed bytes, outside of the store."""

from __future__ import annotations

import hashlib
from typing import Protocol

CAS = "cas://sha256/"


def reference_of(data: bytes) -> str:
    """The reference under which `Blobs` keep these bytes, whether or not they are stored yet."""
    return CAS + hashlib.sha256(data).hexdigest()


class Blobs(Protocol):
    """Content-addressed bytes, per tenant. A reference is `cas://sha256/<hex>`."""

    def put(self, tenant: str, data: bytes) -> str:
        """Store and return the reference; storing the same bytes again is a no-op."""
        ...

    def get(self, tenant: str, ref: str) -> bytes:
        """Raises `CorruptLog` when it is not there or its content does not match its name."""
        ...
