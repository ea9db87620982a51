"""Folds of undoing; for the table of fold.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from baton.core.failures.codes import class_of
from baton.core.log import events as ev
from baton.core.log.folding.failure_folds import question_closed as answered
from baton.core.log.folding.workflow_limits import pay
from baton.core.log.incarnations import Keys, from_round, numbers_with
from baton.core.log.questions import TRY_AGAIN, USE
from baton.core.log.slots import Slot
from baton.core.log.state import UNKNOWN_OUTCOME, Failing, State, clear_open_work, with_progress, without
from baton.core.log.undos import (
    NAMED_IN_STATE,
    NotUndone,
    Undoable,
    Undoing,
    undoes_left_call,
)

if TYPE_CHECKING:
    from baton.core.graph.graph import Node


def with_keys(keys: Keys) -> Undoable:
    """Return the undoable effects of a saga with the keys of those that were in its place before it."""
    return Undoable(incarnation=keys.incarnation)


def links_of(events: Sequence[ev.Event], below: int = -1) -> list[tuple[int, ev.Reversible]]:
    """Return the events of an entry that are in the list of effects, with their indexes.

    `below`: only those before this event; -1: all.
    """
    found = enumerate(events if below < 0 else events[:below])
    return [(index, one) for index, one in found if isinstance(one, ev.Reversible) and one.prior is not None]


def undone_by(nodes: Mapping[str, Node], event: ev.Reversible) -> str:
    """Return the child or the tool that undoes the work of an event; empty: nothing does."""
    node = nodes.get(event.node)
    if node is None or event.lasting:
        return ""
    inverse = None if event.child else node.inverse(event.tool, event.item)
    return event.child or ("" if inverse is None else inverse.step.tool)


def link_undoable(state: State, e: ev.StepSucceeded | ev.ChildClosed | ev.StepStopped) -> State:
    """Record the step as the newest that can be undone, or as a step without an inverse.

    It stands for itself where its outcome was unknown before a fork.
    """
    undo = _known(state.undo, e.slot)
    is_lasting = not isinstance(e, ev.StepStopped) and e.lasting
    return replace(
        state,
        undo=replace(
            undo,
            head=state.version + 1,
            below=-1,
            can=undo.can + (not is_lasting),
            cannot=undo.cannot + is_lasting,
        ),
    )


def fold_abandoned(state: State, e: ev.ChildrenAbandoned) -> State:
    """Forget these children, except for those that ended by themselves: a fork from here goes on with their
    end.

    With `undo`, they come first when the saga undoes its effects.
    """
    gone = set(e.children)
    over = {
        slot
        for slot, child in state.children.items()
        if child.saga in gone and (e.undo or child.status in ("", "cancelled"))
    }
    undo, children = state.undo, state.children
    if e.undo:
        place: dict[str, Any] = {"version": state.version + 1, "index": -1}
        first = tuple(NotUndone(slot=slot, child=children[slot].saga, **place) for slot in sorted(over))
        undo = replace(undo, failed=(*first, *undo.failed))
    return replace(
        state,
        undo=undo,
        orphaned_children=tuple(one for one in state.orphaned_children if one.saga not in gone),
        open=without(state.open, over),
        recovery=replace(state.recovery, consecutive_crashes=0),
    )


def step_stopped(state: State, e: ev.StepStopped) -> State:
    """Record a stopped step.

    The next event removes the step, lets it go on with another tool, or ends the saga.
    """
    slot = e.slot
    if e.child:
        return _child_stopped(state, slot, e)
    if e.instead and slot in state.tokens:
        return _left(state, slot, e)
    return doubtful(state, slot, e) if slot in state.tokens else state


def _child_stopped(state: State, slot: str, e: ev.StepStopped) -> State:
    work = state.child_at(slot)
    if work is None or work.saga != e.child or work.listed:
        return state
    return link_undoable(replace(state, open={**state.open, slot: replace(work, listed=True)}), e)


def _left(state: State, slot: str, e: ev.StepStopped) -> State:
    """Record a call that a step has left for another, and that may have acted."""
    undo = state.undo
    if len(undo.ways) < NAMED_IN_STATE:
        undo = replace(undo, ways=(*undo.ways, (slot, e.tool, state.version + 1)))
    if (failing := state.failing.get(slot)) is not None:
        failing = replace(failing, acted=False, kept=None, key="", left=True)
        state = replace(state, failing={**state.failing, slot: failing})
    if e.prior is None:
        return replace(state, undo=_named(undo, (slot,)))
    return replace(state, undo=replace(undo, head=state.version + 1, below=-1, doubts=undo.doubts + 1))


def doubtful(state: State, slot: str, e: ev.StepFailed | ev.StepStopped) -> State:
    """Record a step that may have happened. A step that an undoing comes to is put into the list."""
    undo = _known(state.undo, slot)
    if e.prior is None:
        return replace(state, undo=_named(undo, (slot,)))
    undo = replace(
        undo,
        head=state.version + 1,
        below=-1,
        doubts=undo.doubts + 1,
        unsure={**undo.unsure, slot: state.version + 1},
    )
    return replace(state, undo=undo)


def _known(undo: Undoable, slot: str) -> Undoable:
    """Return the effects without a step in doubt at a slot that has run again since."""
    return _settled(undo, slot, 0) if slot in undo.unsure else undo


def _named(undo: Undoable, slots: tuple[str, ...], more: int = 0) -> Undoable:
    """Return the effects with more steps that may have happened and have no inverse."""
    known = tuple(dict.fromkeys((*undo.doubtful, *slots)))
    more += max(len(known) - NAMED_IN_STATE, 0)
    return replace(undo, doubtful=known[:NAMED_IN_STATE], more_doubtful=undo.more_doubtful + more)


def undo_began(state: State, e: ev.UndoBegan) -> State:
    """Record that the saga stops and undoes its effects."""
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
        aside=state.undo.aside,
        set_aside=state.undo.set_aside,
    )
    left = tuple(one for one in state.undo.failed if one.version <= e.back_to)
    undo = _named(state.undo, e.doubtful, max(e.doubts - len(e.doubtful), 0))
    undo = replace(undo, work=work, failed=left, aside=(), set_aside=0)
    news = clear_open_work(state)
    if e.kept:
        news["outputs"] = {name: state.outputs[name] for name in e.kept if name in state.outputs}
    return replace(state, **news, undo=undo)


def undo_step_began(state: State, e: ev.UndoStepBegan) -> State:
    """Record that the undoing of a step began."""
    slot, work = e.slot, state.undo.work
    if work is None or slot in work.steps:
        return state
    step = ev.UndoStep(
        version=e.version,
        index=e.index,
        tool=e.tool,
        child=e.child,
        again=e.again,
        doubt=bool(e.doubt) and not e.way,
        stopped=e.stopped,
        way=e.way,
        not_before=e.not_before,
    )
    steps = {**work.steps, slot: step}
    undo, was = state.undo, Slot.parse(e.slot).subject.text
    if e.doubt and not e.way:
        state = replace(state, failing={**state.failing, slot: _unknown(e)})
    if e.again or e.index < 0:
        begun = (e.version, e.index, was)
        again = tuple(one for one in work.again if (one.version, one.index, one.slot) != begun)
        undo = replace(undo, work=replace(work, steps=steps, again=again))
    elif e.doubt:
        undo = replace(undo, head=e.next, below=e.below, work=replace(work, steps=steps))
        undo = _settled(undo, was, e.version if undoes_left_call(e.item) else 0)
    else:
        undo = replace(undo, head=e.next, below=e.below, can=undo.can - 1, work=replace(work, steps=steps))
    return replace(state, undo=undo, tokens={**state.tokens, slot: {e.node: True}})


def _unknown(e: ev.UndoStepBegan) -> Failing:
    """Return the failure that a person is asked about."""
    failure = ev.Failure(
        UNKNOWN_OUTCOME, e.doubt, e.node, kind=class_of(UNKNOWN_OUTCOME), tool=e.tool, at=e.at
    )
    return Failing(attempts=0, failure=failure)


def _settled(undo: Undoable, slot: str, left: int) -> Undoable:
    """Return the effects with one step in doubt fewer; `left`: the version at which the step left
    its call.
    """
    if left:
        ways = tuple(one for one in undo.ways if (one[0], one[2]) != (slot, left))
        return replace(undo, doubts=undo.doubts - 1, ways=ways)
    return replace(undo, doubts=undo.doubts - 1, unsure=without(undo.unsure, (slot,)))


def question_closed(state: State, e: ev.QuestionClosed) -> State:
    """Apply a person's answer about a step in doubt: it happened and is undone, or nothing is left
    to undo.
    """
    after, work = answered(state, e), state.undo.work
    slot = e.slot
    if work is None or after is state or slot not in work.steps or not work.steps[slot].doubt:
        return after
    if e.action == USE:
        step = replace(work.steps[slot], doubt=False, given=e.output)
        undo = replace(after.undo, work=replace(work, steps={**work.steps, slot: step}))
        return replace(after, undo=undo, failing=without(after.failing, (slot,)))
    if e.action == TRY_AGAIN:
        return _gone(after, slot)
    return after


def _gone(state: State, slot: str, **undo: Any) -> State:
    """Return the state without the step at this slot, which undoes another."""
    work = undo.pop("work", state.undo.work)
    news: dict[str, Any] = {
        name: without(getattr(state, name), (slot,))
        for name in (
            *("tokens", "open", "approved", "begun", "first_started_at", "failing", "held", "journals"),
        )
    }
    work = replace(work, steps=without(work.steps, (slot,)))
    return replace(
        state,
        **news,
        undo=replace(state.undo, work=work, **undo),
        recovery=with_progress(state.recovery, (slot,)),
    )


def spill_failed_undos(state: State, e: ev.UndoSetAside) -> State:
    """Move the steps that could not be undone out of the state."""
    gone = {(one.version, one.index, one.slot) for one in e.steps}
    left = tuple(one for one in state.undo.failed if (one.version, one.index, one.slot) not in gone)
    undo = state.undo
    if len(left) + len(e.steps) != len(undo.failed):
        return state
    aside, count = (*undo.aside, state.version + 1), undo.set_aside + len(e.steps)
    return replace(state, undo=replace(undo, failed=left, aside=aside, set_aside=count))


def resume_failed_undos(state: State, e: ev.UndoTakenUp) -> State:
    """Record that the steps of an earlier entry that could not be undone come next."""
    undo, work = state.undo, state.undo.work
    if work is None or e.version not in work.aside:
        return state
    aside = tuple(version for version in work.aside if version != e.version)
    again, left = (*e.steps, *work.again), work.set_aside - len(e.steps)
    return replace(state, undo=replace(undo, work=replace(work, aside=aside, set_aside=left, again=again)))


def undo_passed(state: State, e: ev.UndoPassed) -> State:
    """Record a step without an inverse, which the report names."""
    undo, work = state.undo, state.undo.work
    if work is None or undo.head != e.version or (undo.below >= 0 and e.index >= undo.below):
        return state
    incarnation = undo.incarnation
    if e.redone:
        if undo.unsure.get(e.slot) == e.version:  # an earlier version did not ask about it
            undo = _settled(undo, e.slot, 0)
        return replace(state, undo=replace(undo, head=e.next, below=e.below))
    if e.polled:
        tries = {
            one.slot
            for one in undo.failed
            if (place := Slot.parse(one.slot)).node == e.node and place.iteration[:-1] == e.iteration[:-1]
        }
        lowest = work.lowest if tries else min(work.lowest, e.version)
        work = replace(work, rounds=_since(work.rounds, e.node, e.iteration), lowest=lowest)
        if tries:
            incarnation = numbers_with(incarnation, [(e.slot, -1)])
        undo = replace(undo, head=e.next, below=e.below, can=undo.can - 1, work=work, incarnation=incarnation)
        return replace(state, undo=undo)
    work = replace(work, lasting=(*work.lasting, e.slot)[:NAMED_IN_STATE], lasts=work.lasts + 1)
    if e.stands and not (e.item and work.back_to):
        work = replace(work, rounds=_since(work.rounds, e.node, e.iteration))
        incarnation = numbers_with(incarnation, [(e.slot, -1)])
    cannot = max(undo.cannot - 1, 0)
    undo = replace(undo, head=e.next, below=e.below, cannot=cannot, work=work, incarnation=incarnation)
    return replace(state, undo=undo)


Rounds = dict[str, tuple[int, ...]]


def _since(rounds: Rounds, node: str, iteration: tuple[int, ...]) -> Rounds:
    """Record that the undoing comes to this round of the node."""
    return {**rounds, node: min(iteration, rounds.get(node, iteration))}


def undone(state: State, slot: str, failure: ev.Failure | None = None) -> State:
    """End the step that undoes another, with or without a failure."""
    undo, work = state.undo, state.undo.work
    assert work is not None, "the caller has looked"
    step, place = work.steps[slot], Slot.parse(slot)
    was = place.subject.text
    rounds, is_item, is_left = work.rounds, was != place.owner, undoes_left_call(place.item)
    # Items of one round have one place in `rounds`, which says nothing where only some of them are undone.
    is_alone = is_item and work.back_to > 0
    if not step.again and not is_alone:
        rounds = _since(rounds, place.node, place.iteration)
    incarnation, failed = undo.incarnation, undo.failed
    if failure is None:
        lowest = min(step.version, work.lowest or step.version)
        work = replace(work, done=work.done + 1, rounds=rounds, lowest=lowest)
        if is_alone or (step.again and not is_left):
            incarnation = numbers_with(incarnation, [(was, 1)])
    else:
        work = replace(work, rounds=rounds)
        if not step.again and not is_alone and not is_left:
            incarnation = numbers_with(
                incarnation, [(was, -1)]
            )  # its round is raised, and it keeps its number
        told = NotUndone(
            slot=was,
            version=step.version,
            index=step.index,
            tool=failure.tool,
            code=failure.code,
            message=failure.message[:500],
            child=step.child if step.index < 0 else "",
            doubt=step.doubt,
            left=is_left,
            unsure=not step.doubt
            and not step.child
            and (failure.says_nothing or failure.code == UNKNOWN_OUTCOME),
        )
        failed = (*failed, told)
    return _gone(state, slot, work=work, failed=failed, incarnation=incarnation)


def child_undone(state: State, e: ev.ChildUndone) -> State:
    """Record the undoing of a child's effects."""
    slot, work = e.slot, state.undo.work
    if work is None or slot not in work.steps:
        return state
    state = pay(state, slot, e.cost)
    if e.nothing:
        return _gone(state, slot, work=replace(work, empty=work.empty + 1))
    return undone(state, slot, e.failure)


def after_undoing(state: State) -> State:
    """Return the state after an undoing: the rounds that run anew, and the versions from which no saga goes
    on.

    Effects that may have happened are not repeated: their old keys find them again.
    """
    undo, work = state.undo, state.undo.work
    assert work is not None, "the caller has looked"
    raises = [one for node, first in work.rounds.items() for one in from_round(node, first)]
    keeps = [
        (slot, -1)
        for slot in (*undo.doubtful, *undo.unsure)
        if (place := Slot.parse(slot)).node in work.rounds and work.rounds[place.node] <= place.iteration
    ]
    incarnation = numbers_with(undo.incarnation, (*raises, *keeps))
    spans = (*undo.spans, (work.lowest, work.first)) if work.lowest else undo.spans
    return replace(state, undo=replace(undo, work=None, incarnation=incarnation, spans=spans))


TABLE: dict[type, Callable[[State, Any], State]] = {
    ev.UndoBegan: undo_began,
    ev.UndoStepBegan: undo_step_began,
    ev.UndoPassed: undo_passed,
    ev.UndoSetAside: spill_failed_undos,
    ev.UndoTakenUp: resume_failed_undos,
    ev.ChildUndone: child_undone,
    ev.StepStopped: step_stopped,
    ev.ChildrenAbandoned: fold_abandoned,
    ev.QuestionClosed: question_closed,
}
"""The folds of these events, for the table of fold.py."""
