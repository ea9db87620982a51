"""fork_to(before, at_cut, entry) -> state: the fold of an entry that goes back in time and on in a new
branch.

All other entries are folded by fold.py.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import reduce

from msgspec.structs import replace

from baton.core.log import events as ev
from baton.core.log.folding.failure_folds import asked_anew, resolve_incidents
from baton.core.log.folding.fold import apply
from baton.core.log.folding.received import cancelling_signal, completions_of
from baton.core.log.folding.whole_folds import fold_cancelled, fold_parked, with_time
from baton.core.log.folding.workflow_limits import cut_back
from baton.core.log.records import Paused
from baton.core.log.state import (
    ANSWER,
    FORK_KEY,
    Counts,
    Failing,
    Lineage,
    Money,
    Outbox,
    Recovery,
    Segment,
    State,
    clear_open_work,
)
from baton.core.log.undos import Undoable
from baton.errors import CorruptLog

_STOPPED = ("cancelled", "rolled_back", "rollback_failed")
"""Ends of a child that its stopping parent has caused."""


def fork_to(before: State, at_cut: State, entry: ev.Entry, fork: ev.Forked) -> State:
    """Return the state with which branch `fork.branch` begins. Events behind `fork` in its entry are folded
    forward on that.

    `before` is the state before the fork's entry, `at_cut` the one at version `fork.cut` of the same history.
    Versions never go down: the new branch starts behind the fork's entry. Counters of real events and the
    money spent are kept; limited time begins anew. The fork resets revivals, cancels, parking and incidents,
    forgets the signals after the cut, and has the notices of questions open at the cut sent again. Models are
    asked again, whatever their answers were.
    A child that is open on both sides goes on; any other open child is left behind, to be cancelled, and
    opened anew if the cut needs it. The same holds for work elsewhere; its completions are kept, because it
    reports nothing twice. A recovery needs no state before its entry, because entries between cannot be read.
    """
    changes = entry.events[entry.events.index(fork) + 1 :]
    return reduce(apply, changes, _branched(before, at_cut, entry, fork))


def _branched(before: State, at_cut: State, entry: ev.Entry, fork: ev.Forked) -> State:
    first = entry.events[0]
    if isinstance(first, ev.WorkflowRecovered):
        return _recovered(at_cut, entry, first, fork)
    if entry.version != before.version + 1 or entry.branch != before.lineage.branch:
        raise CorruptLog(
            f"fork {entry.branch}/{entry.version} cannot follow {before.lineage.branch}/{before.version}"
        )
    if fork.undo:
        return _to_undo(before, entry, fork)
    if fork.source:
        return _copied(at_cut, entry, fork)
    is_ending = bool(before.ended or before.is_stopping)
    later = fork.at - at_cut.last_at
    called_off = {
        slot
        for slot, child in at_cut.children.items()
        if cancelling_signal(before, child) is not None and cancelling_signal(at_cut, child) is None
    }
    stopped = {
        slot for slot, child in at_cut.children.items() if at_cut.is_stopping and child.status in _STOPPED
    }
    after = {
        slot: work.after_fork(
            before.open.get(slot),
            is_ending=is_ending or slot in called_off,
            later=later,
        )
        for slot, work in at_cut.open.items()
        if slot not in stopped
    }
    kept = {slot: work for slot, work in after.items() if work is not None}
    said = completions_of(kept, before)
    staying = {work.orphan.saga for work in kept.values() if work.orphan is not None}
    running = [work.orphan for work in before.open.values() if work.orphan is not None]
    forks = {key: value for key, value in before.keys.items() if key.startswith(FORK_KEY)}
    if fork.key:
        forks[FORK_KEY + fork.key] = _remembered(fork)
    forked = replace(
        at_cut,
        version=entry.version,
        lineage=Lineage(branch=fork.branch, first=entry.version + 1, closed=lineage_to(at_cut)),
        last_at=entry.at,
        epoch=before.epoch,
        invocation=before.invocation,
        counts=replace(before.counts, steps=at_cut.counts.steps),
        begun=dict.fromkeys(at_cut.begun, fork.at),
        money=before.money,
        used=cut_back(before, at_cut, fork.at),
        failing={slot: with_time(failing, later) for slot, failing in at_cut.failing.items()},
        outbox=before.outbox,
        keys={**at_cut.keys, **forks, **{key: before.keys[key] for key in said}},
        signals=(*at_cut.signals, *(one for one in said.values() if one not in at_cut.signals)),
        open=kept,
        corrections={},
        undo=_undoable(before.undo, at_cut.undo, at_cut.tokens),
        held={},
        pauses=_paused_for(at_cut, later),
        orphaned_children=(
            *before.orphaned_children,
            *(child for child in running if child.saga not in staying),
        ),
    )
    return asked_anew(without_whole_saga_stops(forked), fork.at)


def is_stable(entry: ev.Entry, after: State, undo: Undoable) -> bool:
    """Return true if a step has ended well in an entry, or an answer was taken in, and nothing has failed in
    the state `after` it. `undo`: that of the present state, which knows what is undone since.
    """
    has_failed = bool(after.failing or after.is_stopping or after.ended)
    is_held = after.parked is not None and not after.is_paused
    if has_failed or is_held or any(first <= after.version <= last for first, last in undo.spans):
        return False
    return any(
        isinstance(event, ev.Closing | ev.QuestionClosed)
        or (isinstance(event, ev.SignalReceived) and event.name == ANSWER)
        for event in entry.events
    )


def _remembered(fork: ev.Forked) -> str:
    """Return the text by which a repeated request for the fork is recognised."""
    return f"{fork.cut} {fork.asked}" if fork.asked else str(fork.cut)


def _copied(at_cut: State, entry: ev.Entry, fork: ev.Forked) -> State:
    """Return the state with which a new saga goes on from the copied entries of another one.

    Effects before the cut, their cost, and what is under way elsewhere belong to that one. Children and work
    elsewhere begin anew, with ids of this saga; calls are approved and questions are asked anew.
    """
    later = fork.at - at_cut.last_at
    after = {slot: work.after_fork(None, is_ending=True, later=later) for slot, work in at_cut.open.items()}
    used = cut_back(at_cut, at_cut, fork.at)
    forked = replace(
        at_cut,
        version=entry.version,
        lineage=Lineage(branch=fork.branch, first=entry.version + 1, closed=lineage_to(at_cut)),
        last_at=entry.at,
        origin=replace(at_cut.origin, copied=fork.cut if fork.source == at_cut.origin.source else 0),
        counts=Counts(steps=at_cut.counts.steps),
        begun=dict.fromkeys(at_cut.begun, fork.at),
        money=Money(budget=at_cut.money.budget),
        used={scope: replace(one, cost=0, tokens=0, turns=0) for scope, one in used.items()},
        failing={slot: _of_other(with_time(one, later)) for slot, one in at_cut.failing.items()},
        held={},
        corrections={},
        recovery=Recovery(),
        outbox=Outbox(),
        keys={key: value for key, value in at_cut.keys.items() if not key.startswith(FORK_KEY)},
        open={slot: work for slot, work in after.items() if work is not None},
        approved={},
        undo=Undoable(),
        pauses=_paused_for(at_cut, later),
        orphaned_children=(),
    )
    return asked_anew(without_whole_saga_stops(forked), fork.at)


def _of_other(failing: Failing) -> Failing:
    """Return a failing step without what is known of its calls: those are the other saga's to undo."""
    return replace(failing, kept=None, key="", acted=False, left=False, decided="", given=None)


def _paused_for(at_cut: State, later: int) -> dict[str, Paused]:
    return {
        slot: replace(paused, ends_by=paused.ends_by and paused.ends_by + later)
        for slot, paused in at_cut.pauses.items()
    }


def fork_in(entry: ev.Entry) -> ev.Forked | None:
    """Return the fork of an entry that goes back in time; None for other entries."""
    return next((one for one in entry.events[:2] if isinstance(one, ev.Forked)), None)


def recovery_cut(entry: ev.Entry) -> int | None:
    """Return the version from which a recovery goes on; None for other entries."""
    for event in entry.events:
        if isinstance(event, ev.Forked) and isinstance(entry.events[0], ev.WorkflowRecovered):
            return event.cut
    return None


def _recovered(at_cut: State, entry: ev.Entry, recovery: ev.WorkflowRecovered, fork: ev.Forked) -> State:
    """Return the state at the cut as it was, in a new branch behind the entries that cannot be read.

    Nothing starts afresh: what stopped the saga, or parked it, still does. Notices of questions that are open
    at the cut are sent again, because the inbox may not show them any more.
    """
    open_ones = {child.saga for child in at_cut.children.values()}
    children = (one for one in recovery.children if one.saga not in open_ones)
    forks = {FORK_KEY + fork.key: str(fork.cut)} if fork.key else {}
    state = replace(
        at_cut,
        version=entry.version,
        lineage=Lineage(branch=fork.branch, first=entry.version + 1, closed=lineage_to(at_cut)),
        last_at=entry.at,
        money=replace(at_cut.money, spent=at_cut.money.spent + recovery.spent),
        keys={**at_cut.keys, **forks},
        outbox=replace(at_cut.outbox, rows={**recovery.shown, **at_cut.outbox.rows}),
        orphaned_children=(*at_cut.orphaned_children, *children),
    )
    if recovery.ended is not None:
        ended = {"ended": recovery.ended, "result": None, "orphaned_children": ()}
        return replace(state, **clear_open_work(state), **ended)
    if recovery.cancel is not None:
        state = fold_cancelled(state, recovery.cancel)
    for pause in recovery.pauses:
        state = fold_parked(state, pause)
    return asked_anew(state, fork.at)


def without_whole_saga_stops(at_cut: State) -> State:
    """Return the state at a cut without the reasons that had stopped the saga as a whole: a fork starts
    afresh.
    """
    recovery = replace(at_cut.recovery, consecutive_crashes=0, interruptions={})
    free = replace(at_cut, cancel=None, failure=None, result=None, parked=None, ended=None, recovery=recovery)
    return resolve_incidents(free)


def _undoable(before: Undoable, at_cut: Undoable, waiting: Collection[str]) -> Undoable:
    """Return the undoable effects after a fork: undone work stays undone, and the list at the cut has the
    steps whose inverses have failed since. What nothing undoes is met again if it is `waiting` at the cut,
    unless its step has gone on with another call.
    """
    if not (before.incarnation or before.spans or at_cut.stays or at_cut.doubtful):
        return at_cut
    left = {slot for slot, _, _ in at_cut.ways}
    return replace(
        at_cut,
        work=None,
        stays=False,
        doubtful=tuple(slot for slot in at_cut.doubtful if slot not in waiting or slot in left),
        failed=(),
        incarnation=before.incarnation,
        spans=before.spans,
    )


def _to_undo(before: State, entry: ev.Entry, fork: ev.Forked) -> State:
    """Return the state of an ended saga that goes on to undo its effects.

    Its end reports its original failure again.
    """
    wanted = ev.CancelRequested(
        reason=fork.reason,
        by=fork.by,
        at=fork.at,
        grace_ms=0,
        undo=True,
        back_to=fork.back_to,
        together=fork.together,
    )
    forks = {FORK_KEY + fork.key: str(fork.cut)} if fork.key else {}
    return replace(
        before,
        version=entry.version,
        lineage=Lineage(branch=fork.branch, first=entry.version + 1, closed=lineage_to(before)),
        last_at=entry.at,
        ended=None,
        cancel=wanted,
        parked=None,
        recovery=replace(before.recovery, consecutive_crashes=0, interruptions={}),
        keys={**before.keys, **forks},
    )


def lineage_to(state: State) -> tuple[Segment, ...]:
    """Return all segments of the history of `state`, its own open one included."""
    lineage = state.lineage
    if state.version < lineage.first:
        return lineage.closed
    return (*lineage.closed, Segment(lineage.branch, lineage.first, state.version))
