"""What DynamoDB takes at most, from "Constraints" and "Item sizes and formats" of its developer guide."""

from __future__ import annotations

from baton.core.effects.rows import RowRoom
from baton.ports import StoreLimits

ITEM_BYTES = 400 * 1024  # names included
ROWS = RowRoom(rows=90, bytes=3_500_000)  # a transaction has 100 items and 4 MB at most, the entry among them
OPEN_RESERVATIONS = 200  # the item they are in must stay small


def limits(shards: int, status_shards: int) -> StoreLimits:
    """Those of a table whose indexes are spread over so many partitions."""
    return StoreLimits(item_bytes=ITEM_BYTES, rows=ROWS, due_shards=shards, status_shards=status_shards)
