"""Damage to a saga in memory, as no writer of ours leaves it: entries, snapshots, heads and graphs."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.adapters.memory.log import MemoryLog
from baton.ports import Head, SagaRef
from tests.kit.world import TENANT, World

GARBAGE = b"\x00 no entry"


def ref_of(saga: str) -> SagaRef:
    return SagaRef(TENANT, saga)


def head_of(world: World, saga: str) -> Head:
    head = world.log.read_head(ref_of(saga))
    assert head is not None
    return head


def branch_of(log: MemoryLog, saga: str, version: int) -> int:
    return next(b for (ref, b), entries in log._entries.items() if ref.id == saga and version in entries)


def spoil(world: World, saga: str, version: int, data: bytes = GARBAGE) -> None:
    """Replace the bytes of an entry."""
    entries = world.log._entries[ref_of(saga), branch_of(world.log, saga, version)]
    entries[version] = replace(entries[version], data=data)


def lose(world: World, saga: str, version: int) -> None:
    """Take an entry out of the log."""
    key = ref_of(saga), branch_of(world.log, saga, version)
    del world.log._entries[key][version]
    world.log._versions[key].remove(version)


def rewrite_head(world: World, saga: str, **changes: Any) -> None:
    """Write attributes of a head as no release does."""
    world.log._update(ref_of(saga), lambda head: replace(head, **changes))


def lose_graph(world: World, saga: str) -> bytes:
    """Take the object of a saga's graph out of its bucket, and out of the memory of all processes."""
    graph = head_of(world, saga).graph.partition("#")[0]
    world._idle.clear()
    return world.blobs.stored.pop((TENANT, f"cas://sha256/{graph}"))


def spoil_snapshots(world: World, saga: str) -> None:
    for (ref, _), snapshots in world.log._snapshots.items():
        if ref.id == saga:
            snapshots.update({v: replace(one, data=GARBAGE) for v, one in snapshots.items()})
