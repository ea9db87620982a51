"""Ids of sagas that are made of what starts them, so that a second start finds the first."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import msgspec

from baton.errors import UserError

if TYPE_CHECKING:
    from baton.runtime.engine.parts import Engine
    from baton.runtime.engine.request import Caller

_TWO_KEYS = (
    "with a `correlation_key` there is one saga, however often it is started: leave the Idempotency-Key out"
)
BY_KEY, BY_TICK, BY_EVENT, BY_CORRELATION = "k", "t", "e", "n"


def in_cell(cell: int, rest: str) -> str:
    """The id that begins with `rest` in a cell; 0: there are none."""
    return f"c{cell}.{rest}" if cell else rest


def named_id(cell: int, kind: str, *parts: Any) -> str:
    """`kind` is one of those above; equal `parts` give equal ids."""
    return in_cell(cell, kind + hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:25])


def correlated_id(cell: int, tenant: str, workflow: str, key: str) -> str:
    """The id of the one saga of a workflow that is started with this correlation key."""
    return named_id(cell, BY_CORRELATION, tenant, workflow, key)


def id_of_start(
    engine: Engine, caller: Caller, workflow: str, key: str, correlation_key: str
) -> tuple[str, str]:
    """(What makes a second start find the first, the id): for a caller's start. Raises `UserError` for two keys."""
    cell = engine.store.cell
    if correlation_key and key:
        raise UserError(_TWO_KEYS)
    if correlation_key:
        return correlation_key, correlated_id(
            cell, caller.tenant, workflow.partition("@")[0], correlation_key
        )
    if key:
        return key, named_id(cell, BY_KEY, caller.tenant, caller.user, key)
    return "", in_cell(cell, f"s{engine.clock.now():011x}{engine.entropy.token(56)}")


def new_trace(engine: Engine) -> str:
    """The `traceparent` of a saga whose caller has none."""
    return f"00-{engine.entropy.token(128)}-{engine.entropy.token(64)}-01"
