"""What deaths and ends of invocations make of a state, and what ends the memory of them; for the table of fold.py."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.folding.model_sums import UNANSWERED, with_models
from baton.core.log.folding.workflow_limits import pay
from baton.core.log.replans import Replanning
from baton.core.log.state import FAULT, Recovery, State, node_of, slot_of
from baton.core.models.usage import Usage

_NO_CRASHES = Recovery()


def progressed(recovery: Recovery, gone: Collection[str]) -> Recovery:
    """A node is settled: the crashes before are over."""
    if recovery == _NO_CRASHES:
        return recovery
    running = tuple(slot for slot in recovery.possibly_running if slot not in gone)
    deaths = {slot: count for slot, count in recovery.deaths.items() if slot not in gone}
    return Recovery(epoch=recovery.epoch, possibly_running=running, deaths=deaths)


def without_running(recovery: Recovery, slot: str) -> Recovery:
    """The log says what became of the slot: it is not at work."""
    running = tuple(other for other in recovery.possibly_running if other != slot)
    return replace(recovery, possibly_running=running, deaths=_without(recovery.deaths, slot))


def _without(deaths: dict[str, int], slot: str) -> dict[str, int]:
    return {other: count for other, count in deaths.items() if other != slot}


def interrupted(state: State, e: ev.StepInterrupted) -> State:
    slot = slot_of(e.node, e.iteration, e.item)
    state = with_models(pay(state, slot, e.cost, is_late=bool(e.why)), slot, e.usage, e.assumed)
    if slot in state.recovery.deaths and e.cost:
        deaths = _without(state.recovery.deaths, slot)
        state = replace(state, recovery=replace(state.recovery, deaths=deaths))
    if slot not in state.tokens or e.why not in ("", FAULT):
        return state
    recovery, running = state.recovery, state.recovery.possibly_running
    if slot not in running:
        recovery = replace(recovery, possibly_running=(*running, slot))
    if e.why:
        return replace(state, recovery=recovery)
    counted_by_slot = {**recovery.interruptions, slot: recovery.interruptions.get(slot, 0) + 1}
    return replace(
        state,
        recovery=replace(recovery, interruptions=counted_by_slot),
        counts=replace(state.counts, interrupted=state.counts.interrupted + 1),
    )


def revived(state: State, e: ev.Revived) -> State:
    """Deaths in a row: only the death of the last revival itself follows on from it.

    What an invocation settled before it died has set them to zero. A step that has failed keeps its place, and does not act.
    """
    recovery = state.recovery
    failed = state.failure.node if state.failure is not None and state.failure.attempt else ""
    asking = {
        slot
        for slot, work in state.open.items()
        if (work.ask is not None and work.ask.digest) or isinstance(work, Replanning)
    }
    # An attempt before the question may have acted all the same.
    asking -= set(recovery.possibly_running)
    for slot, cost in e.assumed.items():
        tokens = e.tokens.get(slot, ())
        usage = (Usage(model=UNANSWERED, input=tokens[0], output=sum(tokens[1:])),) if tokens else ()
        state = with_models(pay(state, slot, cost, is_late=True), slot, usage, cost)
    running = tuple(slot for slot in state.tokens if slot not in asking and node_of(slot)[0] != failed)
    unsaid = {slot: recovery.deaths.get(slot, 0) + 1 for slot in running if slot not in e.assumed}
    return replace(
        state,
        recovery=replace(
            recovery,
            consecutive_crashes=recovery.consecutive_crashes + 1 if e.dead_epoch == recovery.epoch else 1,
            possibly_running=running,
            deaths={**recovery.deaths, **unsaid},
        ),
        counts=replace(state.counts, revivals=state.counts.revivals + 1),
    )


def gave_up(state: State, e: ev.GaveUp) -> State:
    """What was under way has been told of before: it is as if the lease had been given back."""
    return state
