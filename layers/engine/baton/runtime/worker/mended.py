"""Incidents that a deploy has ended: a step that had a defect has come
to its end with other code, and a person need not decide.

Loaded with the first such step.
"""

from __future__ import annotations

import logging
from collections.abc import Collection

from baton.core.log.state import item_of, node_of, slot_of
from baton.core.log.undos import is_undo, undone_item
from baton.errors import EngineFault
from baton.runtime.engine.parts import Parts
from baton.runtime.engine.run import Run
from baton.runtime.requests.answers import IncidentDesk

logger = logging.getLogger("baton.worker")
BY = "deploy"


async def resolve(parts: Parts, run: Run, slots: Collection[str]) -> None:
    """Resolve the incidents of these steps. One that cannot be, stays open: an operator resolves it."""
    given_up = {one.slot for one in run.history.state.undo.failed}
    desk = IncidentDesk(parts.context.store.notice_record, parts.call, parts.clock, run.lease.ref.tenant, BY)
    try:
        for node in {node_of(slot)[0]: None for slot in slots if _was(slot) not in given_up}:
            await desk.resolve_all(run.lease.ref.id, node)
    except EngineFault:
        logger.warning("an incident is left open", exc_info=True, extra={"saga": run.lease.ref.id})


def _was(slot: str) -> str:
    """The step that is undone at a slot of an undoing; else nothing that can be given up."""
    name, iteration = node_of(slot)
    return slot_of(name, iteration, undone_item(item_of(slot))) if is_undo(slot) else ""
