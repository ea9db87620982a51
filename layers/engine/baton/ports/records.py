"""Records of definitions, request counters, and effects that happen once, and the ports to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from baton.core.log.records import Parked

Heard = tuple[tuple[str, str, int], ...]


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a workflow: its graph's hash and the blobs of document and graph.

    `types`: types of events that it has rules for. `past`: types that an earlier version had rules for, whose
    subscriptions may still be stored. `heard`: keys by which events find sagas of earlier versions that have
    other rules for signals: type of the event, template of the correlation key, and until when (epoch ms)
    such sagas can last. `pauses`: on the newest version, those with which new sagas of the workflow begin.
    `mcp`: it is a tool at `/mcp`. `tag`: the tag by which it was found; it is not stored.
    `description`: of the change that made this version of the one before.
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
    pauses: tuple[Parked, ...] = ()
    mcp: bool = False
    tag: str = ""
    description: str = ""


class TagMove(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A tag was set to a version, or deleted (version 0), at a time (epoch ms)."""

    version: int
    by: str
    at: int
    reason: str = ""


class Tag(msgspec.Struct, frozen=True, kw_only=True):
    """A tag of a workflow with its moves, newest first. `writes`: number of times that it was written."""

    tenant: str
    workflow: str
    name: str
    writes: int
    moves: tuple[TagMove, ...]

    @property
    def version(self) -> int:
        """The version that it names; 0 once it is deleted."""
        return self.moves[0].version


class Definitions(Protocol):
    """Registered workflow documents, by name and version."""

    def put(self, definition: Definition) -> bool:
        """Write a version. Return false when it exists."""
        ...

    def get(self, tenant: str, name: str, version: int | None = None) -> Definition | None:
        """Return that version, or the newest; strongly consistent."""
        ...

    def write_pauses(self, seen: Definition, pauses: Sequence[Parked]) -> bool:
        """Replace the pauses of a version. Return false if it has others than `seen`, or does not exist.

        Version 0 has no document and is in no list: it is written if it does not exist.
        """
        ...

    def names(self, tenant: str, after: str = "", limit: int | None = None) -> Sequence[str]:
        """Return a tenant's names above `after`, sorted; at most `limit` of them if it is set."""
        ...

    def versions(self, tenant: str, name: str, limit: int) -> Sequence[Definition]:
        """Return the newest `limit` versions of a name, newest first; strongly consistent."""
        ...

    def tag(self, tenant: str, workflow: str, name: str) -> Tag | None:
        """Return a tag, deleted or not; strongly consistent. None if it was never set."""
        ...

    def tags(self, tenant: str, workflow: str) -> Sequence[Tag]:
        """Return the tags of a workflow by name, deleted ones too; strongly consistent."""
        ...

    def write_tag(self, tag: Tag) -> bool:
        """Write the state of a tag that follows the stored one (`writes` one higher, from 1). Return false if
        another writer was first.
        """
        ...


class Rates(Protocol):
    """Number of requests of each tenant, by window of time."""

    def spend(self, tenant: str, window: int, count: int) -> int:
        """Add `count` to the sum of the window that began at `window`.
        Return the sum before that.

        Atomic: of two callers, one gets the sum with the other's count. The sum need not be exact if a call
        is repeated, and is deleted some time after the window.
        """
        ...


IN_PROGRESS, COMPLETED, FAILED, FREED = "in_progress", "completed", "failed", "freed"


class Effect(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """State of one effect, by its idempotency key.

    `owner` names one try of one attempt, and no other: with `status` it identifies the state of the effect.
    `saga`, `slot` and `attempt` are those of that attempt (0: not known). `until`: when the attempt has ended
    in any case. `first` and `updated`: when the effect was first claimed, and last written. `scope` is the
    place of that saga in all branches. `about`: a hash of the parameters, which must be equal even if the key
    is made of something else. A completed effect has its result in `data` (or in the blob `ref`). A failed
    one has `code`, `message` and `kind`. One that an operator has freed has `by`, the operator, and their
    reason as its `message`. `shared_until`: until then other places than its own get the result; 0: as long
    as it is stored. `expires`: after that the store may delete it; 0 never.
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
    attempt: int = 0
    by: str = ""


class Effects(Protocol):
    """Claims of once-only effects. Each write is one conditional write of one item."""

    def claim(self, effect: Effect) -> Effect | None:
        """Write a claim.
        Return None if it was written, else the stored effect (strongly consistent).

        An effect that was freed counts as absent; one that has expired and is not deleted yet is present.
        """
        ...

    def change(self, seen: Effect, effect: Effect) -> Effect | None:
        """Replace `seen` by `effect`, or write it if `seen` is gone.
        Return None if it was written.

        Return the stored effect (strongly consistent), and write nothing, if another writer was first.
        """
        ...

    def read(self, tenant: str, key: str) -> Effect | None:
        """Read an effect, strongly consistent. Return None if none is stored."""
        ...


class CheckpointRow(msgspec.Struct, frozen=True, kw_only=True):
    """Row of a thread of an agent: `data`, or the blob `ref` that has it. The store may delete it after
    `expires`; 0: never.
    """

    key: str
    data: bytes = b""
    ref: str = ""
    expires: int = 0


class Checkpoints(Protocol):
    """Rows of threads, by tenant, thread and key. Each write is one write of one item."""

    def put(self, tenant: str, thread: str, row: CheckpointRow, *, is_new: bool = False) -> bool:
        """Write a row, in place of one with its key. `is_new`: if there is one, return false."""
        ...

    def rows(
        self, tenant: str, thread: str, first: str, last: str, limit: int | None = None
    ) -> Sequence[CheckpointRow]:
        """Return the rows with keys from `first` to `last`, the greatest first; strongly consistent."""
        ...

    def delete(self, tenant: str, thread: str, keys: Sequence[str], now: int) -> None:
        """Delete the data of these rows: from now on they count as absent."""
        ...
