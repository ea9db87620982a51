"""The rules of the stores that every adapter keeps, the ones in memory too: shards, sizes, delays.

No store is called here.
"""

from __future__ import annotations

import re
import zlib

from baton.errors import CorruptLog

MAX_DELAY_S = 900  # SQS's limit for a delayed message
_XML = "\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff"
_WRITE_UNIT = 1024
_PLAIN = b"{"  # what every JSON object begins with, and no zlib stream does


class ItemTooLarge(ValueError):
    """Error for an item that the store would refuse. The caller should have kept its data in a blob."""

    def __init__(self, size: int, most: int) -> None:
        super().__init__(f"the item has {size} bytes; the table takes {most}")
        self.size = size


def shard_of(saga: str, shards: int) -> int:
    """Return the index shard of a saga id: the same in every process and for ever, as `hash()` is not."""
    return zlib.crc32(saga.encode()) % shards


def is_over(expires: int, now: int) -> bool:
    """Return true if an item with this expiry, or (0) none, counts as deleted."""
    return 0 < expires <= now


def write_units(size: int) -> int:
    """Return the write units of an item of that many bytes."""
    return max(1, -(-size // _WRITE_UNIT))


def pack(data: bytes, rest: int, most: int) -> bytes:
    """Pack data for an item of `most` bytes whose other attributes have `rest` bytes.

    JSON objects stay as they are unless zlib saves a write unit. Anything else is always compressed,
    because the first byte tells the two apart. Raises `ItemTooLarge`.
    """
    plain = data.startswith(_PLAIN)
    stored = data
    if not plain or write_units(rest + len(data)) > 1:
        squeezed = zlib.compress(data)
        if not plain or write_units(rest + len(squeezed)) < write_units(rest + len(data)):
            stored = squeezed
    if rest + len(stored) > most:
        raise ItemTooLarge(rest + len(stored), most)
    return stored


def unpack(stored: bytes) -> bytes:
    """Unpack stored data; the inverse of `pack`. Raises `CorruptLog`."""
    if stored.startswith(_PLAIN):
        return stored
    try:
        return zlib.decompress(stored)
    except zlib.error as error:
        raise CorruptLog(f"stored bytes are neither JSON nor zlib: {error}") from error


def check_delay(seconds: int) -> int:
    """Return the delay. Raises `ValueError` if the queue would refuse it."""
    if not 0 <= seconds <= MAX_DELAY_S:
        raise ValueError(f"a delay of {seconds} s; the queue takes 0 to {MAX_DELAY_S}")
    return seconds


def xml_text(text: str) -> str:
    """Return the text without characters outside XML 1.0, which SQS, and receivers of SNS, refuse.

    The pattern is compiled at its first use, which is seldom: it takes long.
    """
    return re.sub(f"[^{_XML}]", "\ufffd", text)
