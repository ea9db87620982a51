"""What is done about a step in doubt when an undoing comes to it: what undoes it is called in any case, or a person is asked.

Whether it may be called is said where a graph is made (core/documents/nodes/undone.py).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.decide.unknown_outcomes import doubt_notice
from baton.core.log import events as ev
from baton.core.log.state import State, item_of, node_of, slot_of
from baton.core.log.undos import CALL, NAMED, undone_item


def way_of(program: Program, event: Any, at: int) -> dict[str, Any]:
    """The way, and when it may be gone at the earliest: no call that is still under way may come after what undoes it. `at`: when the event was written."""
    node = program.nodes.get(event.node)
    undo = None if node is None else node.inverse(event.tool, event.item)
    if node is None or undo is None or undo.in_doubt != CALL or node.work.callback is not None:
        return {}
    if undo.keyed and not event.key:
        return {}  # it was cut off, and under which key is not known
    began = getattr(event, "started_at", at)
    longest = node.work.timeout_ms or program.timeout_ms
    return {"way": CALL, "not_before": began + longest + program.skew_ms}


def refused_notice(state: State, slot: str, failure: ev.Failure, now: int) -> ev.Notice | None:
    """That a step could not be undone, for the first of them."""
    if len(state.undo.failed) >= NAMED or state.undo.set_aside:
        return None
    name, iteration = node_of(slot)
    was, notice = slot_of(name, iteration, undone_item(item_of(slot))), doubt_notice(state, slot, now)
    text = (
        f"`{was}` is not undone: `{failure.tool}` has failed for good ({failure.code}: {failure.message[:500]}). Mend what is in the way; "
        "a rollback calls it once more"
    )
    return replace(notice, key=f"{notice.key}.refused", code=failure.code, message=text)
