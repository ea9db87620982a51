"""What else a store keeps besides sagas: registered definitions, and counters of requests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

Heard = tuple[tuple[str, str, int], ...]


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a workflow: its graph's hash and the blobs of document and graph.

    `types`: of events that it has rules for. `past`: those that an earlier version had rules for, whose subscriptions may still be there.
    `heard`: by what sagas of earlier versions are found that have other rules for signals: type of the event, template of the
    correlation key, and until when (epoch ms) such sagas can last.
    """

    tenant: str
    name: str
    version: int
    graph: str
    document: str
    created: int
    by: str
    types: tuple[str, ...] = ()
    past: tuple[str, ...] = ()
    heard: Heard = ()


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


class Rates(Protocol):
    """How many requests each tenant has made, by window of time."""

    def spend(self, tenant: str, window: int, count: int) -> int:
        """Add `count` to the sum of the window that began at `window`. Returns the sum before that.

        Atomic: of two callers, one gets the sum with the other's count. It need not be exact where a call
        is repeated, and it is forgotten some time after the window.
        """
        ...
