"""What a bill of AWS counts, and what it depends on besides the log of a saga. usage.py adds it up, dollars are in costs.py."""

from __future__ import annotations

import zlib

import msgspec

from baton.core.limits import Limits

WRITE_BYTES, READ_BYTES = 1_024, 4_096
REQUESTS_PER_MESSAGE = 3  # it is sent, received and deleted; batches make it less


class Deployment(msgspec.Struct, frozen=True, kw_only=True):
    """What a bill depends on besides the log. Memory in MB, times in ms, sizes in bytes.

    Four times are assumptions, for a DynamoDB that answers within 5 to 10 ms: `init`, what a new process of the worker is billed for before it begins;
    `handover`, from a worker's start to its first step and from its last entry to its end; `request` and `passing`, one invocation of the API and of the relay.
    """

    worker_mb: int = 1_024
    api_mb: int = 1_024
    relay_mb: int = 512
    init: int = 800
    handover: int = 50
    request: int = 30
    passing: int = 15
    snapshot_tail: int = 8_192
    snapshot_blob: int = 65_536
    news_every: int = 5_000
    lease_grace: int = 1_000
    fork_deadline: int = 60_000
    timer_by_message: int = 900_000
    limits: Limits = Limits()

    @classmethod
    def of(cls, limits: Limits) -> Deployment:
        """As the engine is set up; the rest as it is."""
        return cls(
            worker_mb=limits.worker_memory_mb,
            snapshot_tail=limits.snapshot_tail_bytes,
            snapshot_blob=limits.snapshot_blob_bytes,
            news_every=limits.news_every_ms,
            lease_grace=limits.lease_grace_ms,
            fork_deadline=limits.fork_deadline_ms,
            timer_by_message=limits.timer_by_message_ms,
            limits=limits,
        )


class Usage(msgspec.Struct, frozen=True, kw_only=True):
    """What was used. `gb_seconds`: Lambda's time by its memory, all functions together."""

    write_units: int = 0
    read_units: int = 0
    sqs_requests: int = 0
    http_requests: int = 0
    lambda_requests: int = 0
    gb_seconds: float = 0.0
    blob_puts: int = 0
    blob_gets: int = 0


def units(size: int, of: int = WRITE_BYTES) -> int:
    """DynamoDB's units for so many bytes: one for each `of` begun, and one at least."""
    return max(1, -(-size // of))


def stored_bytes(data: bytes, around: int) -> int:
    """Bytes of an item with this JSON and `around` bytes of other attributes: compressed if that saves a unit."""
    plain = around + len(data)
    if units(plain) == 1:
        return plain
    packed = around + len(zlib.compress(data))
    return packed if units(packed) < units(plain) else plain
