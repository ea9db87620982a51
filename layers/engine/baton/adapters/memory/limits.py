"""What the store in memory takes at most: as much as the deployed table, so that a test finds what would not fit there."""

from __future__ import annotations

from baton.core.effects.rows import RowRoom
from baton.ports import StoreLimits

ITEM_BYTES = 400 * 1024
OPEN_RESERVATIONS = 200


def limits(shards: int, status_shards: int) -> StoreLimits:
    """Those of a store whose indexes are spread over so many partitions."""
    rows = RowRoom(rows=90, bytes=3_500_000)
    return StoreLimits(item_bytes=ITEM_BYTES, rows=rows, due_shards=shards, status_shards=status_shards)
