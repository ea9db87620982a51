"""What undoing makes of a state; for the table of fold.py."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.recovery_folds import progressed
from baton.core.log.state import State, item_of, node_of, slot_of, without
from baton.core.log.undos import NAMED, NotUndone, Undoing, undo_item, undone_item
from baton.core.log.workflow_limits import pay


def linked(state: State, e: ev.StepSucceeded | ev.ChildClosed) -> State:
    """The step is the newest that can be undone, or that nothing undoes. What could not be undone there before is this step's again."""
    undo, slot = state.undo, slot_of(e.node, e.iteration, e.item)
    return replace(
        state,
        undo=replace(
            undo,
            head=state.version + 1,
            below=-1,
            can=undo.can + (not e.lasting),
            cannot=undo.cannot + e.lasting,
            failed=tuple(one for one in undo.failed if one.slot != slot) if undo.failed else (),
        ),
    )


def doubtful(state: State, slot: str) -> State:
    """A step has failed that may have happened."""
    undo = state.undo
    return replace(state, undo=replace(undo, doubtful=(*undo.doubtful, slot)[-NAMED:]))


def emptied(state: State) -> dict[str, Any]:
    """What a saga no longer has once it goes no further."""
    return {
        "tokens": {},
        "errors": {},
        "closed": {},
        "admitted": (),
        "begun": {},
        "first_started_at": {},
        "failing": {},
        "held": {},
        "corrections": {},
        "outputs": {},
        "previous": {},
        "open": {},
        "approved": {},
        "items": {},
        "made": {},
        "signals": (),
        "recovery": replace(state.recovery, interruptions={}, possibly_running=()),
    }


def undo_began(state: State, e: ev.UndoBegan) -> State:
    if state.undo.work is not None:
        return state
    work = Undoing(
        reason=e.reason,
        by=e.by,
        at=e.at,
        back_to=e.back_to,
        together=e.together,
        first=state.version + 1,
        again=tuple(one for one in state.undo.failed if one.version > e.back_to),
    )
    left = tuple(one for one in state.undo.failed if one.version <= e.back_to)
    doubtful = tuple(dict.fromkeys((*state.undo.doubtful, *e.doubtful)))[-NAMED:]
    undo = replace(state.undo, work=work, failed=left, doubtful=doubtful)
    return replace(state, **emptied(state), undo=undo)


def undo_step_began(state: State, e: ev.UndoStepBegan) -> State:
    slot, work = slot_of(e.node, e.iteration, e.item), state.undo.work
    if work is None or slot in work.steps:
        return state
    step = ev.UndoStep(version=e.version, index=e.index, tool=e.tool, child=e.child, again=e.again)
    steps = {**work.steps, slot: step}
    undo = state.undo
    if e.again or e.index < 0:
        was = slot_of(e.node, e.iteration, undone_item(e.item))
        begun = (e.version, e.index, was)
        again = tuple(one for one in work.again if (one.version, one.index, one.slot) != begun)
        undo = replace(undo, work=replace(work, steps=steps, again=again))
    else:
        undo = replace(undo, head=e.next, below=e.below, can=undo.can - 1, work=replace(work, steps=steps))
    return replace(state, undo=undo, tokens={**state.tokens, slot: {e.node: True}})


def undo_passed(state: State, e: ev.UndoPassed) -> State:
    """The report names it."""
    undo, work = state.undo, state.undo.work
    if work is None or undo.head != e.version or (undo.below >= 0 and e.index >= undo.below):
        return state
    slot, standing = slot_of(e.node, e.iteration, e.item), undo.standing
    work = replace(work, lasting=(*work.lasting, slot)[:NAMED], lasts=work.lasts + 1)
    if e.stands:
        work = replace(work, rounds=_since(work.rounds, e.node, e.iteration))
        standing = _kept(standing, slot)
    cannot = max(undo.cannot - 1, 0)
    undo = replace(undo, head=e.next, below=e.below, cannot=cannot, work=work, standing=standing)
    return replace(state, undo=undo)


Rounds = dict[str, tuple[int, ...]]


def _since(rounds: Rounds, node: str, iteration: tuple[int, ...]) -> Rounds:
    """The undoing comes to this round of the node."""
    return {**rounds, node: min(iteration, rounds.get(node, iteration))}


def _kept(standing: dict[str, int], slot: str) -> dict[str, int]:
    """The slot is not undone when the rounds of its node are: it keeps its key."""
    return {**standing, slot: standing.get(slot, 0) + 1}


def undone(state: State, slot: str, failure: ev.Failure | None = None) -> State:
    """The step that undoes another has ended, well or not."""
    undo, work = state.undo, state.undo.work
    assert work is not None, "the caller has looked"
    step, (name, iteration) = work.steps[slot], node_of(slot)
    was = slot_of(name, iteration, undone_item(item_of(slot)))
    work = replace(work, steps=without(work.steps, (slot,)))
    rounds = work.rounds
    if not step.again:
        rounds = _since(rounds, name, iteration)
    standing, failed = undo.standing, undo.failed
    if failure is None:
        lowest = min(step.version, work.lowest or step.version)
        work = replace(work, done=work.done + 1, rounds=rounds, lowest=lowest)
        if step.again and was in standing:
            left = standing[was] - 1
            standing = {**standing, was: left} if left else without(standing, (was,))
    else:
        work = replace(work, rounds=rounds)
        if not step.again:
            standing = _kept(standing, was)
        told = NotUndone(
            slot=was,
            version=step.version,
            index=step.index,
            tool=failure.tool,
            code=failure.code,
            message=failure.message[:500],
            child=step.child if step.index < 0 else "",
        )
        failed = (*failed, told)
    news: dict[str, Any] = {
        name: without(getattr(state, name), (slot,))
        for name in ("tokens", "open", "approved", "begun", "first_started_at", "failing", "held")
    }
    return replace(
        state,
        **news,
        undo=replace(undo, work=work, failed=failed, standing=standing),
        recovery=progressed(state.recovery, (slot,)),
    )


def child_undone(state: State, e: ev.ChildUndone) -> State:
    slot, work = slot_of(e.node, e.iteration, e.item), state.undo.work
    if work is None or slot not in work.steps:
        return state
    return undone(pay(state, slot, e.cost), slot, e.failure)


def after_undoing(state: State) -> State:
    """What is kept of an undoing that has ended: which rounds are done anew, and from where no saga goes on.

    What may have happened is not done anew: under its old key it is met again.
    """
    undo, work = state.undo, state.undo.work
    if work is None:
        return state
    standing = undo.standing
    for slot in undo.doubtful:
        name, iteration = node_of(slot)
        if name in work.rounds and work.rounds[name] <= iteration:
            standing = _kept(standing, slot)
    rounds = {
        **undo.rounds,
        **{node: (*undo.rounds.get(node, ()), first) for node, first in work.rounds.items()},
    }
    spans = (*undo.spans, (work.lowest, work.first)) if work.lowest else undo.spans
    return replace(state, undo=replace(undo, work=None, rounds=rounds, standing=standing, spans=spans))


__all__ = [
    "after_undoing",
    "child_undone",
    "doubtful",
    "emptied",
    "linked",
    "undo_began",
    "undo_item",
    "undo_passed",
    "undo_step_began",
    "undone",
]
