"""Folds of the events that stop a saga as a whole, hold it back or let it go on.

The table of all folds is in fold.py.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.folding import received
from baton.core.log.folding.failure_folds import forget_answers, resolve_incidents
from baton.core.log.folding.received import with_progress
from baton.core.log.folding.workflow_limits import count_node
from baton.core.log.questions import WHOLE, about_parking
from baton.core.log.scopes import Map, with_late
from baton.core.log.state import FORK_KEY, WAITING, Failing, State, carriers, owner_of, slot_of, without
from baton.core.log.undos import NotUndone


def stop_saga(state: State, **news: Any) -> State:
    """End the parking of a cancelled or failed saga, except for a defect in an inverse, which must be mended
    first.
    """
    parked = state.parked if state.undo.work is not None and state.stands_still else None
    recovery = replace(news.pop("recovery", state.recovery), consecutive_crashes=0)
    return replace(state, parked=parked, recovery=recovery, **news)


def fold_cancelled(state: State, e: ev.CancelRequested) -> State:
    """Record a cancellation.

    A second request may only shorten the grace of the first, or want more of the end.
    Its key is kept with those of forks, with a negative version that no fork has.
    """
    first = state.cancel
    if e.key:
        state = replace(state, keys={**state.keys, FORK_KEY + e.key: str(-state.version - 1)})
    if first is None:
        return stop_saga(state, cancel=e)
    wanted = replace(e, result=e.result or first.result)
    if first.undo:
        wanted = replace(wanted, undo=True, back_to=first.back_to, together=first.together)
    if first.at + first.grace_ms <= e.at + e.grace_ms:
        undo = {"undo": wanted.undo, "back_to": wanted.back_to, "together": wanted.together}
        wanted = replace(first, **undo) if wanted.undo != first.undo else first
    return stop_saga(state, cancel=wanted)


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
    undo = state.undo
    if e.undo:
        place: dict[str, Any] = {"version": state.version + 1, "index": -1}
        children = state.children
        first = tuple(NotUndone(slot=slot, child=children[slot].saga, **place) for slot in sorted(over))
        undo = replace(undo, failed=(*first, *undo.failed))
    return replace(
        state,
        undo=undo,
        orphaned_children=tuple(one for one in state.orphaned_children if one.saga not in gone),
        open=without(state.open, over),
        recovery=replace(state.recovery, consecutive_crashes=0),
    )


def fold_limited(state: State, e: ev.LimitReached) -> State:
    """Record that the saga reached a limit, and fails."""
    undo = replace(state.undo, stays=True) if e.stays and state.failure is None else state.undo
    return stop_saga(state, failure=state.failure or e.failure, undo=undo)


def fold_parked(state: State, e: ev.Parked) -> State:
    """Park the saga. A stopping saga is parked only for crashes of its workers, and for defects in inverses.

    An older log may still park it for money.
    """
    first = state.parked
    if first is not None and first.at:  # its time stands still since then, whatever else it is parked for
        e = replace(e, at=first.at, build=e.build or first.build)
    after = replace(state, parked=e, parked_in=state.version + 1)
    is_undoing = state.undo.work is not None and e.at
    if state.is_stopping and not after.kills_workers and not is_undoing:
        return state
    ask = about_parking(after)
    return after if ask is None else received.with_question_row(after, ask)


def fold_resumed(state: State, e: ev.Resumed) -> State:
    """Let the saga go on: steps of incidents are tried again; after a deployment, only those that it may have
    mended.
    """
    if state.stands_still:
        state = resumed_after_defect(state, e.at)
    if e.build:
        return _tried_with(state, e.build)
    return replace(
        resolve_incidents(forget_answers(state, (WHOLE,))),
        parked=None,
        recovery=replace(state.recovery, consecutive_crashes=0, interruptions={}),
        money=replace(state.money, budget=max(state.money.budget, e.budget)),
    )


def _tried_with(state: State, build: str) -> State:
    """Try the steps again that other code may have mended. Other open incidents leave the saga parked."""
    from baton.core.failures.strategies.registry import of  # few sagas have failed

    after, parked = resolve_incidents(state, build), state.parked
    if parked is not None and any(of(failing.strategy).parks for failing in after.failing.values()):
        return replace(after, parked=replace(parked, at=0, build=""))
    return replace(after, parked=None)


def emit(
    state: State,
    emits: tuple[ev.Token, ...],
    gone: Collection[str] = (),
    blame: tuple[ev.Failure, ...] = (),
    carried_by: Collection[tuple[str, str]] = (),
) -> dict[str, Any]:
    """Return the tokens in flight once these are emitted and those at the slots `gone` are removed.

    Those of `carried_by` (sender, receiver) carry `blame`.
    """
    tokens = state.tokens.copy()
    for slot in gone:
        tokens.pop(slot, None)
    errors, closed = without(state.errors, gone), without(state.closed, gone)
    for token in emits:
        slot = slot_of(token.dst, token.iteration)
        if slot in closed:
            closed = {**closed, slot: tuple(src for src in closed[slot] if src != token.src)}
        elif token.src not in tokens.get(slot, ()):
            tokens[slot] = {**tokens.get(slot, {}), token.src: token.alive}
            if carried_by and (token.src, token.dst) in carried_by:
                errors = {**errors, slot: {**errors.get(slot, {}), token.src: blame}}
    return {"tokens": tokens, "errors": errors, "closed": closed}


def consume(
    state: State, event: ev.Settles, output: ev.Value | None, *, stays: bool = False, **more: Any
) -> State:
    """Replace the tokens at the event's slot by the ones it emits; all the bookkeeping of a settled node.

    A join that fired early stays closed: late tokens are absorbed, and nodes that lead only to it do not
    begin. The end of a round removes its joins. `stays`: the work at the slot and its items go on beside the
    nodes after it.
    """
    slot = slot_of(event.node, event.iteration, event.item)
    if slot not in state.tokens:
        return state
    if event.fault is not None and not event.emits:
        # Its tokens stay, so that a fork from here begins with this node and not behind it.
        return stop_saga(state, failure=state.failure or event.fault)
    if event.ends:  # as above
        return state if state.is_stopping else stop_saga(state, result=output)
    still_closed = state.closed.get(slot)
    gone = set(event.drops) if stays else {slot, *event.drops}
    if state.items and (not event.item or event.drops):
        gone |= {one for one in state.items if owner_of(one) in gone}
    if still_closed is not None:
        state = replace(state, closed=without(state.closed, (slot,)))
    news = emit(state, event.emits, gone, event.errors, carriers(event))
    if still_closed is not None and slot not in event.drops:
        news["closed"] = {**news["closed"], slot: still_closed}
    outputs, previous = state.outputs, state.previous
    if output is not None and not event.item:
        outputs = {**outputs, event.node: output}
    if event.carry:
        previous = {**previous, **{key: outputs[key.partition("/")[2]] for key in event.carry}}
    if event.forget:
        outputs, previous = without(outputs, event.forget), without(previous, event.forget)
    news |= _counted(state, event) | _emptied(state, gone, event)
    if event.item:
        news |= _of_item(state, event, slot, output)
    if state.signals:
        state = forget_answers(state, gone)
    # Any progress: the saga as a whole is not stuck.
    news |= {"outputs": outputs, "previous": previous, "recovery": with_progress(state.recovery, gone)}
    return replace(state, **news, **more)


def _of_item(state: State, event: ev.Settles, slot: str, output: ev.Value | None) -> dict[str, Any]:
    """Return the items with the output of this one; for a map that has gone on, the numbers of
    ended items.
    """
    owner = owner_of(slot)
    work = state.open.get(owner)
    if not isinstance(work, Map) or work.late is None:
        return {"items": {**state.items, slot: output}}
    work = with_late(work, succeeded=not isinstance(event, ev.StepFailed))
    return {"items": without(state.items, (slot,)), "open": {**without(state.open, (slot,)), owner: work}}


def _counted(state: State, event: ev.Settles) -> dict[str, Any]:
    is_run = not isinstance(event, ev.NodeSkipped | ev.MapEnded) and not event.item
    news: dict[str, Any] = {"used": count_node(state.used, event, is_run=is_run)} if state.used else {}
    if is_run:
        news["counts"] = replace(state.counts, steps=state.counts.steps + 1)
    return news


def _emptied(state: State, gone: Collection[str], event: ev.Settles) -> dict[str, Any]:
    """Return the maps by slot without those that are `gone`, and with the pause that begins; a saga of plain
    steps has none.
    """
    news: dict[str, Any] = {}
    for name in (
        "open",
        "approved",
        "items",
        "begun",
        "first_started_at",
        "failing",
        "held",
        "corrections",
        "pauses",
    ):
        if known := getattr(state, name):
            news[name] = without(known, gone)
    if event.paused is not None:
        (token,) = event.emits
        left = news.get("pauses", state.pauses)
        news["pauses"] = {**left, slot_of(token.dst, token.iteration): event.paused}
    if state.admitted:
        news["admitted"] = tuple(other for other in state.admitted if other not in gone)
    if state.open:
        orphans = tuple(
            work.orphan for key, work in state.open.items() if key in gone and work.orphan is not None
        )
        news["orphaned_children"] = state.orphaned_children + orphans
    return news


SAGA = ""


def resumed_after_defect(state: State, at: int) -> State:
    """Return the state of a saga parked for a defect, when it goes on at a time.

    A pause that has run out meanwhile is over.
    """
    assert state.parked is not None, "the caller has looked"
    later = max(at - state.parked.at, 0)
    used = state.used
    if SAGA in used:
        since = used[SAGA].since or state.origin.started_at
        used = {**used, SAGA: replace(used[SAGA], since=since + later)}
    return replace(
        state,
        stood=state.stood + later,
        used=used,
        open={slot: work.postponed(later) for slot, work in state.open.items()},
        failing={slot: with_time(failing, later) for slot, failing in state.failing.items()},
        begun={slot: since + later for slot, since in state.begun.items()},
        pauses={
            slot: replace(paused, ends_by=paused.ends_by and paused.ends_by + later)
            for slot, paused in state.pauses.items()
        },
    )


def with_time(failing: Failing, later: int) -> Failing:
    """Return the failing step with as much time left as before for its question, its retries and
    its inverse.
    """
    failing = replace(failing, began=failing.began and failing.began + later)
    history = failing.history
    if history.since:
        failing = replace(failing, history=replace(history, since=history.since + later))
    return failing if failing.ask is None else replace(failing, ask=failing.ask.postponed(later))


class SweepSchedule(Struct, frozen=True, kw_only=True):
    """Intervals of the sweep: they double from `shortest` to `longest`. All times are in milliseconds."""

    shortest: int = Limits().sweep_shortest_ms
    longest: int = Limits().sweep_longest_ms
    margin: int = Limits().timer_by_message_ms

    @classmethod
    def of(cls, limits: Limits, *, is_quiet: bool) -> SweepSchedule:
        """Return the pace of a saga.

        A saga that is not quiet may have missed more than a wake, so the sweep visits it sooner.
        """
        shortest = limits.sweep_shortest_ms
        return cls(
            shortest=shortest if is_quiet else min(shortest, limits.busy_sweep_ms),
            longest=limits.sweep_longest_ms,
            margin=limits.timer_by_message_ms,
        )

    def next(self, since: int, now: int) -> int:
        """Return the time of the visit after one at `now`, if nothing has happened since `since`."""
        return now + max(self.shortest, min(now - since, self.longest))

    def comes_before(self, timer: int, look: int) -> bool:
        """Return true if a timer replaces a visit of the sweep: a visit may come late, and so would a timer
        shortly behind it.
        """
        return timer <= look + self.margin


def may_sweep_without_lease(state: State, status: str) -> bool:
    """Return true if the saga can have missed nothing but a wake for an entry in its log.

    The end of a child may not be in its log yet, and only the holder of its lease sends notices.
    """
    return status in WAITING and not (
        state.children or state.orphaned_children or received.pending_notices(state)
    )
