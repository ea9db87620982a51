"""One attempt of one step: run the tool within its time, and say what became of it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import msgspec

from baton.core.decide import RunStep
from baton.core.events import Failure, Value
from baton.core.failures import sanitised
from baton.core.keys import idempotency_key
from baton.core.limits import Limits
from baton.core.money import micro_dollars
from baton.core.outcomes import Outcome
from baton.core.state import State
from baton.core.toolspec import ToolSpec
from baton.ports import Blobs, Clock, Performer, StepContext, StepFailure
from baton.runtime.patience import Patience

_encode = msgspec.json.Encoder().encode


class Steps:
    """Performs steps for one invocation."""

    def __init__(
        self,
        performer: Performer,
        tools: Mapping[str, ToolSpec],
        blobs: Blobs,
        clock: Clock,
        limits: Limits,
        call: Patience,
    ) -> None:
        self._performer = performer
        self._tools = tools
        self._blobs = blobs
        self._clock = clock
        self._limits = limits
        self._call = call

    def timeout(self, step: RunStep) -> int:
        """Milliseconds that one attempt of this step may take."""
        return step.node.timeout_ms or self._limits.step_timeout_ms

    async def run(self, state: State, step: RunStep, traceparent: str, spent: list[Decimal]) -> Outcome:
        """The outcome of one attempt. Cancelling it interrupts the tool; engine faults pass through.

        What the tool spends is added to `spent`, where it is found even if there never is an outcome.
        """
        started = self._clock.now()
        timeout = self.timeout(step)
        output: Value | None = None
        failure: Failure | None = None
        context = StepContext(
            saga=state.saga,
            tenant=state.tenant,
            user=state.user,
            node=step.node.name,
            iteration=step.iteration,
            attempt=step.attempt,
            idempotency_key=idempotency_key(
                state.tenant, state.user, state.saga, step.node.tool, step.arguments, step.iteration
            ),
            deadline_ms=started + timeout,
            traceparent=traceparent,
            spent=spent,
        )
        try:
            async with asyncio.timeout(timeout / 1_000):
                result = await self._performer.perform(step.node.tool, step.arguments, context)
        except TimeoutError:
            failure = Failure("timeout", f"no answer within {timeout} ms", step.node.name)
        except StepFailure as error:
            # What a tool says may quote what it was told by others, keys and passwords among it.
            message = sanitised(error.message[:20_000])[:2_000]
            failure = Failure(error.code, message, step.node.name)
        else:
            output = await self.value(state.tenant, result)
            if output is None:
                limit = self._limits.result_bytes
                failure = Failure(
                    "result_too_large", f"the result is larger than {limit} bytes", step.node.name
                )
        spec = self._tools.get(step.node.tool)
        return Outcome(
            slot=step.slot,
            attempt=step.attempt,
            started_at=started,
            ended_at=self._clock.now(),
            tool_version=spec.version if spec else "",
            schema_hash=spec.schema_hash if spec else "",
            output=output,
            failure=failure,
            rows=tuple(context.rows) if output is not None else (),
            cost=micro_dollars(spent),
        )

    async def value(self, tenant: str, result: Any) -> Value | None:
        """A JSON value inline or as a blob, whichever is cheaper; None when it is over the limit."""
        data = _encode(result)
        return None if len(data) > self._limits.result_bytes else await self._value(tenant, result, data)

    async def inline_or_blob(self, tenant: str, result: Any) -> Value:
        """A JSON value inline or as a blob, whichever is cheaper."""
        return await self._value(tenant, result, _encode(result))

    async def blob(self, tenant: str, result: Any) -> Value:
        """A JSON value as a blob, however small."""
        return await self._blob(tenant, _encode(result))

    async def _value(self, tenant: str, result: Any, data: bytes) -> Value:
        return Value(v=result) if len(data) <= self._limits.inline_bytes else await self._blob(tenant, data)

    async def _blob(self, tenant: str, data: bytes) -> Value:
        return Value(ref=await self._call(self._blobs.put, tenant, data), size=len(data))
