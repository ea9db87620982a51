"""What a Python condition asks of the sandbox, and what comes back: data that the log and the runtime pass on."""

from __future__ import annotations

import msgspec


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """One evaluation of `evaluate(output, context)`. Equal questions have equal answers."""

    key: str
    """SHA-256 of all the rest, in hexadecimal."""
    code: str
    data: bytes
    """JSON `{"output": …, "context": …}`."""
    timeout_ms: int
    memory_mb: int


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it: `value`, or None with a failure's code and message, ready for the log."""

    value: bool | None
    code: str = ""
    message: str = ""
