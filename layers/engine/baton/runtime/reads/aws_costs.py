"""What AWS has charged for a tenant's sagas of a day, estimated: the log of each is read when it is asked for.

Nothing is written for it, and no saga pays for it that is not asked about: see ADR 16.
"""

from __future__ import annotations

import asyncio
from typing import Final

from baton.core.money import MICRO
from baton.core.read.bill import Deployment
from baton.core.read.day_costs import DayCosts
from baton.errors import NotFound, TooLarge, Unreadable
from baton.ports import Listed
from baton.runtime.engine.request import Request
from baton.runtime.reads.cost import cost_of
from baton.runtime.reads.day_costs import GROUPS, rows_of_day

MOST: Final = 50
"""Sagas whose logs one page reads."""
_AT_ONCE: Final = 10


async def aws_costs(
    request: Request, day: int, by: str, cursor: str
) -> tuple[DayCosts, int, str | None, list[str]]:
    """The sums of the next sagas of a day, how many these are, the cursor behind them, and those that could not be read.

    A saga counts on the day of its row, with all that it has cost so far, as its models do.
    """
    engine, call, rows = request.engine, request.parts.call, list[Listed]()
    looked, after = await rows_of_day(
        engine.log, call, request.caller.tenant, day, cursor, rows.append, GROUPS, MOST
    )
    sums, left_out = DayCosts(by), list[str]()

    async def add(row: Listed) -> None:
        try:
            opened = await request.open(row.id)
            found = await cost_of(engine.log, call, engine.clock, opened, Deployment.of(engine.limits))
        except (NotFound, TooLarge, Unreadable):
            left_out.append(row.id)
        else:
            sums.add(row.workflow, row.user, {"": (0, 0, found["usd"]["aws"] * MICRO)})

    for first in range(0, len(rows), _AT_ONCE):
        await asyncio.gather(*(add(row) for row in rows[first : first + _AT_ONCE]))
    return sums, looked, after, sorted(left_out)
