"""How long a worker goes on with its sagas while other wakes wait, and in which order several tenants' wakes follow.

A long saga needs no other worker, so it would keep its own for a whole invocation. When wakes wait, the sagas of a batch
yield after a turn: they go to the end of their tenant's line, and the queue hands out those of other tenants first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TypeVar

from baton.core.limits import Limits
from baton.errors import EngineFault
from baton.ports import Offload, Queue
from baton.runtime.invocation.deadline import Turn

T = TypeVar("T")
logger = logging.getLogger("baton.worker")

CONFIRM_S = 1
"""Between two looks at a backlog: a wake that is just being received is none."""


def by_turns(items: Iterable[T], tenant: Callable[[T], str]) -> list[T]:
    """One of each tenant, then the next of each; a tenant's own keep their order."""
    rounds: Counter[str] = Counter()
    numbered = []
    for item in items:
        whose = tenant(item)
        numbered.append((rounds[whose], item))
        rounds[whose] += 1
    return [item for _, item in sorted(numbered, key=lambda pair: pair[0])]


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
