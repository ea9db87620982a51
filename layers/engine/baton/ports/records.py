"""Registered definitions, counters of requests, and effects that happen once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

Heard = tuple[tuple[str, str, int], ...]


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a workflow: its graph's hash and the blobs of document and graph.

    `types`: of events that it has rules for. `past`: those that an earlier version had rules for, whose
    subscriptions may still be there. `heard`: by what sagas of earlier versions are found that have other
    rules for signals: type of the event, template of the correlation key, and until when (epoch ms) such
    sagas can last.
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


IN_PROGRESS, COMPLETED, FAILED, FREED = "in_progress", "completed", "failed", "freed"


class Effect(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One effect, by its idempotency key.

    `owner` names one try of one attempt, and no other: with `status` it says which state of the effect this
    is. `saga` and `slot` are where that attempt belongs. `until`: when it has ended in any case. `first` and
    `updated`: when the effect was first claimed, and last written. `scope` is the place of that saga in all
    branches. `about`: a hash of the parameters, where the key is made of something else and they have to be
    the same all the same. Completed, it has `data` (or `ref`, the blob that holds it): what came of it.
    Failed, it has `code`, `message` and `kind`. `shared_until`: until then other places than its own are
    given what came of it; 0 as long as it is there. `expires`: after that the store may delete it; 0 never.
    """

    tenant: str
    key: str
    status: str
    owner: str
    tool: str
    saga: str
    slot: str
    until: int
    first: int
    updated: int
    generation: int = 0
    about: str = ""
    scope: str = ""
    data: bytes = b""
    ref: str = ""
    code: str = ""
    message: str = ""
    kind: str = ""
    shared_until: int = 0
    expires: int = 0


class Effects(Protocol):
    """Claims of once-only effects. Each write is one conditional write of one item."""

    def claim(self, effect: Effect) -> Effect | None:
        """Put a claim. None when it was put, else the stored effect (strongly read), and nothing is written.

        One that was freed counts as not there; one that has expired and is not deleted yet is there.
        """
        ...

    def change(self, seen: Effect, effect: Effect) -> Effect | None:
        """Replace `seen` by `effect`. None when it was put.

        Else another writer was first: the stored effect (strongly read), and nothing is written.
        If `seen` is gone,
        `effect` is put.
        """
        ...

    def read(self, tenant: str, key: str) -> Effect | None:
        """Strongly consistent."""
        ...
