"""What a saga has cost so far: its whole log read, page by page, and replayed through the formula of core/usage.py.

No prices and no formula here.
"""

from __future__ import annotations

from contextlib import aclosing
from typing import Any

from baton.core.costs import cost_view
from baton.core.events import decode_entry
from baton.core.state import status_of
from baton.core.toolspec import ONCE
from baton.core.usage import Deployment, Ledger
from baton.errors import TooLarge
from baton.ports import Clock, Log
from baton.runtime.history import records_of
from baton.runtime.patience import Patience
from baton.runtime.request import Opened

PAGE = 200  # entries read at once, so that a long log is never in memory as a whole


async def cost_of(
    log: Log, call: Patience, clock: Clock, opened: Opened, deployment: Deployment
) -> dict[str, Any]:
    """The answer of `GET /sagas/{id}/cost`; what it costs is read off the log. See `Ledger`.

    Raises `TooLarge` for a log that cannot be read before the end of the request.
    """
    head, state, program = opened.head, opened.history.state, opened.program
    once = frozenset(node.name for node in program.graph.nodes if node.effect == ONCE)
    ledger = Ledger(program, deployment, has_forks=state.branch > 0, once=once)
    async with aclosing(records_of(log, call, head.ref, state.branch + 1, 0, PAGE)) as pages:
        async for page in pages:
            # No further than the state: what came since may belong to a lease that the head does not know.
            for record in (record for record in page if record.version <= state.version):
                ledger.add(decode_entry(record.data), record.data, record.size)
            if page[-1].version >= state.version:
                break
            if clock.now() >= call.deadline:
                raise TooLarge(
                    f"the log of this saga is too long to be added up within one request: of {state.version} "
                    f"versions it came to {page[-1].version}"
                )
    usage = ledger.total(head.epoch, is_held=bool(head.owner) or state.epoch > head.epoch)
    return cost_view(state.saga, status_of(state, program), usage, ledger.steps, state.invocations)
