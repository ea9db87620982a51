"""What the engine knows of a tool: name, version, schemas, effect. Not the function itself."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Iterable
from typing import Any

import msgspec

from baton.core.keys import KeyRule

PURE, IDEMPOTENT, ONCE = "pure", "idempotent", "once"
EFFECTS = (PURE, IDEMPOTENT, ONCE)


class Merits(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What speaks for a way: each from 0 to 1, but cost and latency, which are relative to the usual ones, 1."""

    reliability: float = 0.9
    cost: float = 1.0
    latency: float = 1.0
    fit: float = 1.0
    preference: float = 0.5


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`parameters` and `result` are JSON Schemas; `timeout_ms` 0 means the engine's default.

    `domain` is what it is about (core/failures/matrix.py). `cost` is reserved for each attempt, in micro-dollars. `key`
    says what makes two calls the same one; `verify` is the tool that knows whether a call of this one has happened.
    `instead_of` names tools (patterns) that this one can stand in for, `carries_out` the hints and hooks that it carries
    out, for the tools of `for_tools`. `fallbacks` are values of a parameter to try one after the other; `context` is
    the parameter that can be shortened.
    """

    name: str
    version: str
    effect: str
    parameters: dict[str, Any]
    result: dict[str, Any]
    timeout_ms: int = 0
    description: str = ""
    domain: str = ""
    cost: int = 0
    key: KeyRule = KeyRule()
    verify: str = ""
    instead_of: tuple[str, ...] = ()
    carries_out: tuple[str, ...] = ()
    for_tools: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()
    merits: Merits = Merits()
    fallbacks: dict[str, tuple[Any, ...]] = {}
    context: str = ""

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


def hinted(said: str, hint: str) -> str:
    """Both as sentences; the hint may be empty."""
    return f"{said}. {hint[:1].upper()}{hint[1:]}".rstrip()
