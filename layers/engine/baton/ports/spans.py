"""Spans, as the worker sends them."""

from __future__ import annotations

from typing import Protocol

from baton.core.tracing import Span


class Spans(Protocol):
    """Keeps spans until they are sent. No step is worse off if they cannot be."""

    def note(self, span: Span) -> None: ...

    async def flush(self, within_ms: int) -> None:
        """Sends what there is; what the receiver does not take in this time is lost. Raises nothing."""
        ...
