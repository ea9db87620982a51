"""What is recorded of an effect that happens once: how it ended, its result in the item or in a blob, and for how long.

When it is recorded is in effect_claims.py; how a result becomes bytes, in claims.py.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.effects.toolspec import ToolSpec
from baton.core.limits import DAY_MS
from baton.core.log.events import Value
from baton.ports import Effect, StepFailure
from baton.ports.blobs import period_of
from baton.ports.effects import COMPLETED
from baton.runtime.invocation.context import InvocationContext
from baton.runtime.steps.claims import Done, Recorded, decode, encode, place_of


class EffectRecords:
    """For one invocation."""

    def __init__(self, context: InvocationContext) -> None:
        self._blobs = context.blobs
        self._clock = context.clock
        self._limits = context.limits
        self._call = context.call

    async def completed(self, claim: Effect, spec: ToolSpec, outcome: Recorded) -> Effect:
        """The effect with its outcome: in the item, or in a blob if it is large."""
        data, ref = encode(outcome), ""
        if len(data) > 2 * self._limits.inline_bytes:
            data, ref = b"", await self._call(self._blobs.put, claim.tenant, data, self._period(spec))
        return replace(self.ended(claim, COMPLETED, spec), data=data, ref=ref)

    def ended(self, claim: Effect, status: str, spec: ToolSpec) -> Effect:
        """The effect with how it ended: remembered for longer than its saga lasts, shared as long as its tool says."""
        now, keep, lasts = self._clock.now(), spec.key.keep_ms, self._lasts(spec)
        return replace(
            claim,
            status=status,
            updated=now,
            shared_until=now + keep if keep else 0,
            expires=-(-(now + lasts) // 1_000) * 1_000,  # in whole seconds, as the table's time to live is
        )

    def _lasts(self, spec: ToolSpec) -> int:
        """How long it is remembered what came of an effect, in ms."""
        days = max(self._limits.effect_ttl_days, self._limits.saga_days)
        return max(days * DAY_MS, spec.key.keep_ms)

    async def value(self, spec: ToolSpec, tenant: str, result: Any) -> Value:
        """The result as a value. Raises `StepFailure` for one that is too large: the claim stays, for it has happened."""
        data = encode(result)
        if len(data) > self._limits.result_bytes:
            limit = self._limits.result_bytes
            raise StepFailure("result_too_large", f"the result is larger than {limit} bytes")
        if len(data) <= self._limits.inline_bytes:
            return Value(v=result)
        ref = await self._call(self._blobs.put, tenant, data, self._period(spec))
        return Value(ref=ref, size=len(data))

    def _period(self, spec: ToolSpec) -> str:
        """Where what came of an effect goes: the last saga that is given it may only just have begun then."""
        now, limits = self._clock.now(), self._limits
        life = (limits.saga_days + limits.retention_days) * DAY_MS
        return period_of(now, now + self._lasts(spec) + life)

    async def recorded(self, there: Effect, mine: Effect) -> Done:
        """The recorded result. Only the saga that acted gets the rows: its entry writes them, however often it is tried."""
        data = there.data or await self._call(self._blobs.get, there.tenant, there.ref)
        outcome = decode(data)
        is_own = (there.scope or there.saga) == (mine.scope or mine.saga)
        return Done(
            outcome.value,
            outcome.rows if is_own else (),
            is_recorded=True,
            is_own=is_own,
            is_here=place_of(there) == place_of(mine),
        )
