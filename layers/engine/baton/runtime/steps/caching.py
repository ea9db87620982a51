"""Kept results of tools that declare a `cache`: for equal calls of the same user, until their time is over.

A store that is slow, or refuses, is a miss: a step never fails for its cache. `POST /warm` has a tool called
ahead of its steps, by a saga of one step (runtime/requests/warming.py).
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from baton.core.effects.toolspec import ToolSpec
from baton.core.log.events import HIT, MISS
from baton.errors import EngineFault
from baton.ports import CheckpointRow, StepContext
from baton.runtime.invocation.attempt import AttemptInput
from baton.runtime.invocation.context import InvocationContext

MOST_BYTES: Final = 100_000
"""Of a result that is kept, as JSON."""
_WAIT_S: Final = (
    1.0  # for the store, before the tool and after it, and at most a quarter of what is left of the attempt
)
_SHARE: Final = 4
logger = logging.getLogger("baton.worker")


class _Kept(msgspec.Struct, array_like=True):
    """A result, and the time (epoch ms) until which it answers calls."""

    until: int
    result: Any


_encode = msgspec.json.Encoder().encode
_encode_sorted = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(_Kept).decode


async def answered(
    at: InvocationContext,
    one: AttemptInput,
    spec: ToolSpec,
    context: StepContext,
    call: Callable[[], Awaitable[Any]],
) -> Any:
    """Return the kept result of an attempt, or that of a call, which is kept. `one.cache` gets HIT or MISS.

    An attempt that a person may have to approve, or that does not call the tool alone, is always made; and
    that of a saga that was forked, because a person wants to know again. Raises as `call`.
    """
    if one.may_ask or one.callback or one.step.way or one.step.hooks:
        return await call()
    place = context.tenant, _thread(context.user), _key(spec, one.step.arguments)
    kept = None if one.state.lineage.branch else await _read(at, place, context)
    if kept is not None and kept.until > at.clock.now():
        one.cache = HIT
        return kept.result
    result = await call()
    one.cache = MISS
    await _keep(at, place, context, _Kept(at.clock.now() + spec.cache_ms, result))
    return result


def _thread(user: str) -> str:
    return f"~cache/{hashlib.sha256(user.encode()).hexdigest()[:32]}"


def _key(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    of = [spec.name, spec.version, spec.schema_hash, arguments]
    return hashlib.sha256(_encode_sorted(of)).hexdigest()[:32]


def _wait(at: InvocationContext, context: StepContext) -> asyncio.Timeout:
    left = max(context.deadline_ms - at.clock.now(), 0) / 1_000
    return asyncio.timeout(min(_WAIT_S, left / _SHARE))


async def _read(at: InvocationContext, place: tuple[str, str, str], context: StepContext) -> _Kept | None:
    tenant, thread, key = place
    try:
        async with _wait(at, context):
            rows = await at.call(at.store.checkpoints.rows, tenant, thread, key, key, 1)
        return _decode(rows[0].data) if rows else None
    except (EngineFault, TimeoutError, msgspec.DecodeError) as fault:
        logger.info("the cache was not read", extra={"fault": repr(fault)})
        return None


async def _keep(
    at: InvocationContext, place: tuple[str, str, str], context: StepContext, kept: _Kept
) -> None:
    tenant, thread, key = place
    data = _encode(kept)
    if len(data) > MOST_BYTES:
        return
    row = CheckpointRow(key=key, data=data, expires=kept.until)
    try:
        async with _wait(at, context):
            await at.call(at.store.checkpoints.put, tenant, thread, row)
    except (EngineFault, TimeoutError) as fault:
        logger.info("a result was not kept", extra={"fault": repr(fault)})
