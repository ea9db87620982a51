"""What a saga has cost so far: its whole log read, page by page, and replayed through the formula of core/usage.py.

No prices and no formula here.
"""

from __future__ import annotations

from typing import Any

from baton.core.costs import cost_view
from baton.core.events import decode_entry
from baton.core.program import Program
from baton.core.state import State, status_of
from baton.core.usage import Deployment, Ledger
from baton.ports import Head, Log
from baton.runtime.patience import Patience

PAGE = 200  # entries read at once, so that a long log is never in memory as a whole


async def cost_of(
    log: Log, call: Patience, head: Head, state: State, program: Program, deployment: Deployment
) -> dict[str, Any]:
    """The answer of `GET /sagas/{id}/cost`; `head` and `state` as they were read before. See `Ledger`."""
    ledger = Ledger(program.joins, deployment, has_forks=state.branch > 0)
    after = 0
    for branch in range(state.branch + 1):
        page = PAGE
        while page == PAGE and after < state.version:
            records = await call(log.read_tail, head.ref, branch, after, PAGE)
            page = len(records)
            for record in records:
                # No further than the state: what came since may belong to a lease that the head does not know.
                if record.version <= state.version:
                    ledger.add(decode_entry(record.data), record.data, record.size)
                    after = record.version
    usage = ledger.total(head.epoch, is_held=bool(head.owner) or state.epoch > head.epoch)
    status = status_of(state, program.joins)
    return cost_view(state.saga, status, usage, ledger.steps, state.invocations)
