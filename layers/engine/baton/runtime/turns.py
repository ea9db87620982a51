"""How long a worker goes on with the sagas of its batch while other wakes wait for a worker.

A long saga needs no other worker, so it would keep its own for a whole invocation. When wakes wait, the sagas of a batch
yield after a turn: they go to the end of their tenant's line, and the queue hands out those of other tenants first.
"""

from __future__ import annotations

import asyncio
import logging

from baton.core.limits import Limits
from baton.errors import EngineFault
from baton.ports import Offload, Queue
from baton.runtime.budget import Turn

logger = logging.getLogger("baton.worker")

CONFIRM_S = 1
"""Between two looks at a backlog: a wake that is just being received is none."""


async def end_in_turn(turn: Turn, queue: Queue, offload: Offload, limits: Limits) -> None:
    """End the turn once it has lasted `turn_ms` and wakes wait. While none wait, ask again after as long."""
    while not turn.is_over:
        await asyncio.sleep(limits.turn_ms / 1_000)
        if await _backlog(queue, offload):
            await asyncio.sleep(CONFIRM_S)
            turn.is_over = await _backlog(queue, offload) > 0


async def _backlog(queue: Queue, offload: Offload) -> int:
    """None where it cannot be known: nothing depends on it but who goes first."""
    try:
        return await offload(queue.backlog)
    except EngineFault as error:
        logger.info("whether wakes wait is not known", extra={"fault": repr(error)})
        return 0
