"""What the engine knows of a tool: name, version, schemas, effect. Not the function itself."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import Any

import msgspec

from baton.core.effects.keys import KeyRule
from baton.core.effects.risk import Risk

PURE, IDEMPOTENT, ONCE = "pure", "idempotent", "once"
EFFECTS = (PURE, IDEMPOTENT, ONCE)
CALL, ASK = "call", "ask"
"""Answers for a step in doubt when a rollback comes to it: call its inverse in any case, or ask a person."""


class Merits(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """The rating of an alternative: each from 0 to 1, but cost and latency, which are relative to the usual ones, 1."""

    reliability: float = 0.9
    cost: float = 1.0
    latency: float = 1.0
    fit: float = 1.0
    preference: float = 0.5


class ToolSpec(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True, dict=True):
    """`parameters` and `result` are JSON Schemas; `timeout_ms` 0 means the engine's default.

    `domain` is what it is about (core/failures/matrix.py). `cost` is reserved for each attempt, in micro-dollars. `key`
    says what makes two calls the same one; `verify` is the tool that knows whether a call of this one has happened.
    `instead_of` names tools (patterns) that this one can stand in for, `carries_out` the hints and hooks that it carries
    out, for the tools of `for_tools`. `fallbacks` are values of a parameter to try one after the other; `context` is
    the parameter that can be shortened. `sees_key` False: its function has no `Context`, and so no use for a key.
    `repeatable`: an agent that calls it again with equal arguments has it called again. `requires_approval`: a person
    approves every call of it first; `risk`: those that are risky. `undo`: the tool that takes back what a call of this one has done;
    `in_doubt`: whether it is called where that is not known , empty where that does no harm.
    `breaker`: the circuit breaker of its target (core/failures/breakers.py); empty: none.
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
    sees_key: bool = True
    requires_approval: bool = False
    repeatable: bool = False
    risk: Risk | None = None
    undo: str = ""
    breaker: str = ""
    in_doubt: str = ""

    @property
    def may_ask(self) -> bool:
        """Whether a person may have to approve a call of it."""
        return self.requires_approval or self.risk is not None

    @property
    def is_verified(self) -> bool:
        """Tell whether it is idempotent and has a tool that looks up whether a call of it has happened."""
        return self.effect == IDEMPOTENT and bool(self.verify)

    @cached_property
    def schema_hash(self) -> str:
        """Twelve hexadecimal digits that change whenever a schema does."""
        data = msgspec.json.encode([self.parameters, self.result], order="deterministic")
        return hashlib.sha256(data).hexdigest()[:12]
