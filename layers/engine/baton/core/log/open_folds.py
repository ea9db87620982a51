"""What opens work, and what is heard of it before it is closed; for the table of fold.py."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log import inbox
from baton.core.log.recovery_folds import without_running
from baton.core.log.state import State, slot_of
from baton.core.log.workflow_limits import pay


def opened(state: State, e: ev.Opens) -> State:
    slot = slot_of(e.node, e.iteration, e.item)
    if slot not in state.tokens or slot in state.open:
        return state
    work = e.work()
    after = replace(state, open={**state.open, slot: work})
    return after if work.ask is None else inbox.opened(after, work.ask)


def child_opened(state: State, e: ev.ChildOpened) -> State:
    after = opened(state, e)
    return after if after is state else replace(after, counts=replace(after.counts, children=e.number))


def child_reported(state: State, e: ev.ChildReported) -> State:
    work = state.open.get(e.slot)
    if work is None or not work.hears(e.child):
        return state
    state = pay(state, e.slot, e.cost)
    told = replace(work, status=e.status, output=e.output, failure=e.failure)
    return replace(state, open={**state.open, e.slot: told})


def callback_opened(state: State, e: ev.CallbackOpened) -> State:
    """The run of a tool is over: what it has spent is spent, and the deaths before it are over."""
    after = opened(state, e)
    if after is state:
        return state
    slot = slot_of(e.node, e.iteration, e.item)
    recovery = without_running(after.recovery, slot)
    recovery = replace(
        recovery,
        consecutive_crashes=0,
        interruptions={key: count for key, count in recovery.interruptions.items() if key != slot},
    )
    return pay(replace(after, recovery=recovery), slot, e.cost)
