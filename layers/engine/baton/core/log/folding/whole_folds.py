"""What stops a saga as a whole, holds it back or lets it go on, as folds. The table of all folds is in fold.py."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.answers import WHOLE, about_parking
from baton.core.log.folding import inbox
from baton.core.log.folding.failure_folds import decided, forget_answers
from baton.core.log.state import FORK_KEY, State, without
from baton.core.log.undos import NotUndone


def stopped(state: State, **news: Any) -> State:
    """A cancelled or failed saga ends, whatever it was parked for; but a defect of what undoes its steps is to be mended first."""
    parked = state.parked if state.undo.work is not None and state.stands_still else None
    recovery = replace(news.pop("recovery", state.recovery), consecutive_crashes=0)
    return replace(state, parked=parked, recovery=recovery, **news)


def cancelled(state: State, e: ev.CancelRequested) -> State:
    """A second request may only shorten the grace of the first, or want more of the end.

    A key is kept with those of forks. Its version is negative: it is no fork's.
    """
    first = state.cancel
    if e.key:
        state = replace(state, keys={**state.keys, FORK_KEY + e.key: str(-state.version - 1)})
    if first is None:
        return stopped(state, cancel=e)
    wanted = replace(e, result=e.result or first.result)
    if first.undo:
        wanted = replace(wanted, undo=True, back_to=first.back_to, together=first.together)
    if first.at + first.grace_ms <= e.at + e.grace_ms:
        undo = {"undo": wanted.undo, "back_to": wanted.back_to, "together": wanted.together}
        wanted = replace(first, **undo) if wanted.undo != first.undo else first
    return stopped(state, cancel=wanted)


def abandoned(state: State, e: ev.ChildrenAbandoned) -> State:
    """Forgets these children, but for those that ended by themselves: a fork from here goes on with their end.

    Those that the saga has `undo` come first when it undoes what it has done.
    """
    gone = set(e.children)
    over = {
        slot
        for slot, child in state.children.items()
        if child.saga in gone and (e.undo or child.status in ("", "cancelled"))
    }
    undo = state.undo
    if e.undo:
        place: dict[str, Any] = {"version": state.version + 1, "index": -1}
        first = tuple(NotUndone(slot=slot, child=state.children[slot].saga, **place) for slot in sorted(over))
        undo = replace(undo, failed=(*first, *undo.failed))
    return replace(
        state,
        undo=undo,
        orphaned_children=tuple(one for one in state.orphaned_children if one.saga not in gone),
        open=without(state.open, over),
        recovery=replace(state.recovery, consecutive_crashes=0),
    )


def limited(state: State, e: ev.LimitReached) -> State:
    undo = replace(state.undo, stays=True) if e.stays and state.failure is None else state.undo
    return stopped(state, failure=state.failure or e.failure, undo=undo)


def parked(state: State, e: ev.Parked) -> State:
    """A saga that stops is parked only for crashes of its workers, and for defects of what undoes its steps; an older log may still park it for money."""
    first = state.parked
    if first is not None and first.at:  # its time stands still since then, whatever else it is parked for
        e = replace(e, at=first.at, build=e.build or first.build)
    after = replace(state, parked=e, parked_in=state.version + 1)
    is_undoing = state.undo.work is not None and e.at
    if state.is_stopping and not after.kills_workers and not is_undoing:
        return state
    ask = about_parking(after)
    return after if ask is None else inbox.opened(after, ask)


def resumed(state: State, e: ev.Resumed) -> State:
    """The steps that the person on call was asked about are tried again; where code was deployed, those that it may have mended."""
    if state.stands_still:
        from baton.core.log.folding.standstill import gone_on  # few sagas have

        state = gone_on(state, e.at)
    if e.build:
        return _tried_with(state, e.build)
    return replace(
        decided(forget_answers(state, (WHOLE,))),
        parked=None,
        recovery=replace(state.recovery, consecutive_crashes=0, interruptions={}),
        money=replace(state.money, budget=max(state.money.budget, e.budget)),
    )


def _tried_with(state: State, build: str) -> State:
    """Other code may have mended its defects. What else people are asked about leaves it parked."""
    from baton.core.failures.strategies.registry import of  # few sagas have failed

    after, parked = decided(state, build), state.parked
    if parked is not None and any(of(failing.strategy).parks for failing in after.failing.values()):
        return replace(after, parked=replace(parked, at=0, build=""))
    return replace(after, parked=None)
