"""What a store takes at most, as data: each store says it of itself, and everything above it asks there."""

from __future__ import annotations

import msgspec

from baton.core.effects.rows import RowRoom


class StoreLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Sizes are in bytes, names and keys included.

    item: the largest entry, snapshot or effect. rows: of tools' own rows, beside the entry that they are written with.
    due_shards, status_shards: partitions that the due index, and the lists of each tenant, are spread over.
    """

    item_bytes: int
    rows: RowRoom
    due_shards: int
    status_shards: int
