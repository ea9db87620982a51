"""The other stores: registered definitions, blobs, and counters of requests."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Protocol

import msgspec


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a workflow: its graph's hash and the blobs of document and graph."""

    tenant: str
    name: str
    version: int
    graph: str
    document: str
    created: int
    by: str


class Definitions(Protocol):
    """Registered workflow documents, by name and version."""

    def put(self, definition: Definition) -> bool:
        """False when that version exists."""
        ...

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        """That version, or the newest; strongly consistent."""
        ...

    def names(self, tenant: str, after: str = "", limit: int | None = None) -> Sequence[str]:
        """A tenant's names above `after`, sorted; at most `limit` of them when it is given."""
        ...

    def versions(self, tenant: str, name: str, limit: int) -> Sequence[Definition]:
        """The newest `limit` versions of a name, newest first; strongly consistent."""
        ...


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


class Rates(Protocol):
    """How many requests each tenant has made, by window of time."""

    def spend(self, tenant: str, window: int, count: int) -> int:
        """Add `count` to what was spent in the window that began at `window`; the sum before that.

        Atomic: of two callers, one gets the sum with the other's count. It need not be exact where a call
        is repeated, and it is forgotten some time after the window.
        """
        ...
