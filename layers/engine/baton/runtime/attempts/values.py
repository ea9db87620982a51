"""Values of the log: inline where they are small, else blobs in the bucket."""

from __future__ import annotations

from typing import Any

import msgspec

from baton.core.log.events import Value
from baton.core.log.state import Origin
from baton.ports.blobs import period_of, reference_of
from baton.runtime.invocation.context import InvocationContext

_encode = msgspec.json.Encoder().encode


class Values:
    """Stores values for one invocation. `owner`: whose value it is."""

    def __init__(self, context: InvocationContext) -> None:
        self._blobs = context.blobs
        self._clock = context.clock
        self._limits = context.limits
        self._call = context.call

    async def value(self, owner: Origin, result: Any) -> Value | None:
        """A JSON value inline or as a blob, whichever is cheaper; None when it is over the limit."""
        data = _encode(result)
        if len(data) > self._limits.result_bytes:
            return None
        return Value(v=result) if len(data) <= self._limits.inline_bytes else await self._blob(owner, data)

    def unstored(self, owner: Origin, result: Any) -> tuple[Value, bytes] | None:
        """A JSON value as `value` would give it, with the bytes of its blob, which is not written yet.

        None when it is over the limit; no bytes for a value inline.
        """
        data = _encode(result)
        if len(data) > self._limits.result_bytes:
            return None
        if len(data) <= self._limits.inline_bytes:
            return Value(v=result), b""
        return Value(ref=reference_of(data, self._period(owner)), size=len(data)), data

    async def inline_or_blob(self, owner: Origin, result: Any, most: int | None = None) -> Value:
        """A JSON value inline or as a blob, whichever is cheaper; `most`: so many bytes inline, if that is less."""
        data = _encode(result)
        limit = self._limits.inline_bytes if most is None else min(most, self._limits.inline_bytes)
        return Value(v=result) if len(data) <= limit else await self._blob(owner, data)

    async def blob(self, owner: Origin, result: Any) -> Value:
        """A JSON value as a blob, however small."""
        return await self._blob(owner, _encode(result))

    async def _blob(self, owner: Origin, data: bytes) -> Value:
        ref = await self._call(self._blobs.put, owner.tenant, data, self._period(owner))
        return Value(ref=ref, size=len(data))

    def _period(self, owner: Origin) -> str:
        """Where its blobs go, which it needs as long as it is there."""
        return period_of(self._clock.now(), owner.expires)
