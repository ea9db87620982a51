"""What a saga has cost so far: its whole log read, page by page, and replayed through the formula of core/read/usage.py.

No prices and no formula here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

from baton.core.log.codec import decode_entry
from baton.core.log.status import status_of
from baton.core.read.bill import Deployment
from baton.core.read.claims import Claims
from baton.core.read.costs import cost_view
from baton.core.read.model_costs import ModelCosts
from baton.core.read.usage import Ledger, fork_of
from baton.ports import Clock, Log, Record
from baton.runtime.engine.request import Opened
from baton.runtime.invocation.store_retrier import StoreRetrier
from baton.runtime.log.history import records_of
from baton.runtime.log.longlogs import ReadingTime

_FORK = b'"forked"'  # the tag of its event
PAGE = 200  # entries read at once, so that a long log is never in memory as a whole


async def cost_of(
    log: Log, call: StoreRetrier, clock: Clock, opened: Opened, deployment: Deployment
) -> dict[str, Any]:
    """The answer of `GET /sagas/{id}/cost`; what it costs is read off the log. See `Ledger`.

    The log of a saga that was forked is read twice: first for where. Raises `TooLarge` for one that takes too much of
    the request's time.
    """
    head, state, program = opened.head, opened.history.state, opened.program
    time = ReadingTime(clock, call.deadline)
    cuts = set()
    if state.lineage.branch:
        async for record in _records(log, call, opened, time):
            # Decoding takes far longer than looking, and forks are rare.
            if _FORK in record.data and (fork := fork_of(decode_entry(record.data))) is not None:
                cuts.add(fork.cut)
    models = ModelCosts()
    ledger = Ledger(program, deployment, cuts=cuts, claims=Claims.of(program.graph))
    async for record in _records(log, call, opened, time):
        entry = decode_entry(record.data)
        ledger.add(entry, record.data, record.size)
        models.add(entry)
    usage = ledger.total(head.epoch, is_held=bool(head.owner) or state.epoch > head.epoch)
    return cost_view(
        state.origin.saga,
        status_of(state, program),
        usage,
        ledger.steps,
        state.counts.invocations,
        models.lines(),
        models.agent_steps,
    )


async def _records(log: Log, call: StoreRetrier, opened: Opened, time: ReadingTime) -> AsyncIterator[Record]:
    """No further than the state: what came since may belong to a lease that the head does not know."""
    state = opened.history.state
    async with aclosing(records_of(log, call, opened.head.ref, state.lineage.branch + 1, 0, PAGE)) as pages:
        async for page in pages:
            for record in page:
                if record.version <= state.version:
                    yield record
            if page[-1].version >= state.version:
                return
            time.check("added up", state.version, page[-1].version)
