"""A saga that no caller asks for: it is started by a rule of a registered document, for the user who has registered it.

Ticks of schedules (ticking.py) and events from outside (event_desk.py) start sagas so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from baton.core.log.records import Sent
from baton.ports import Definition, SagaRef
from baton.runtime.engine.parts import Engine, Parts
from baton.runtime.starting.start import Beginning


async def start_by_rule(
    engine: Engine,
    parts: Parts,
    ref: SagaRef,
    definition: Definition,
    *,
    given: Any,
    user: str,
    body_hash: str,
    labels: Mapping[str, str],
    sent: Sent | None = None,
) -> bool:
    """Make the saga exist, where it was found not to. Raises as the start of a caller does, `TooManyRequests` among others."""
    await engine.ledger_cache.refuse_the_blocked(parts.call, ref.tenant, user, parts.clock.now())
    await parts.quota.admit(ref.tenant)
    return await parts.starter.start(
        Beginning(
            ref=ref,
            definition=definition,
            graph=await parts.catalog.graph(ref.tenant, definition.graph),
            given=given,
            user=user,
            invocation=parts.invocation.id,
            traceparent=_trace_of(ref),
            body_hash=body_hash,
            labels=labels,
            sent=sent,
        )
    )


def _trace_of(ref: SagaRef) -> str:
    digest = hashlib.sha256(str(ref).encode()).hexdigest()
    return f"00-{digest[:32]}-{digest[32:48]}-01"
