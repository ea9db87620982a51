"""How moments are written."""

from __future__ import annotations

from datetime import UTC, datetime


def iso(milliseconds: int) -> str:
    """`2026-11-21T10:00:00.123Z`."""
    moment = datetime.fromtimestamp(milliseconds / 1_000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
