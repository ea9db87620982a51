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
    """A cancelled or failed saga ends, whatever it was parked for."""
    recovery = replace(news.pop("recovery", state.recovery), consecutive_crashes=0)
    return replace(state, parked=None, recovery=recovery, **news)


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
    return stopped(state, failure=state.failure or e.failure)


def parked(state: State, e: ev.Parked) -> State:
    """A saga that stops is parked only for crashes of its workers; an older log may still park it for money."""
    after = replace(state, parked=e, parked_in=state.version + 1)
    if state.is_stopping and not after.kills_workers:
        return state
    ask = about_parking(after)
    return after if ask is None else inbox.opened(after, ask)


def resumed(state: State, e: ev.Resumed) -> State:
    """The steps that the person on call was asked about are tried again."""
    return replace(
        decided(forget_answers(state, (WHOLE,))),
        parked=None,
        recovery=replace(state.recovery, consecutive_crashes=0, interruptions={}),
        money=replace(state.money, budget=max(state.money.budget, e.budget)),
    )
