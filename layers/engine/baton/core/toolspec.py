"""What the engine knows of a tool: name, version, schemas, effect. Not the function itself."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

EFFECTS = ("pure", "idempotent")


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`parameters` and `result` are JSON Schemas; `timeout_ms` 0 means the engine's default."""

    name: str
    version: str
    effect: str
    parameters: dict[str, Any]
    result: dict[str, Any]
    timeout_ms: int = 0
    description: str = ""

    @property
    def schema_hash(self) -> str:
        """Twelve hexadecimal digits that change whenever a schema does."""
        data = msgspec.json.encode([self.parameters, self.result], order="deterministic")
        return hashlib.sha256(data).hexdigest()[:12]


def closest(name: str, known: Iterable[str]) -> str:
    """The most similar known name, or an empty string."""
    return next(iter(difflib.get_close_matches(name, list(known), n=1, cutoff=0.5)), "")


def nearest(name: str, known: Iterable[str]) -> str:
    """`did you mean ...?` for the most similar known name, or an empty string."""
    close = closest(name, known)
    return f"did you mean `{close}`?" if close else ""
