"""Folds of the events that stop a saga as a whole, hold it back or let it go on.

The table of all folds is in fold.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from baton.core.limits import Limits
from baton.core.log import events as ev
from baton.core.log.folding import received
from baton.core.log.folding.failure_folds import forget_answers, resolve_incidents
from baton.core.log.questions import WHOLE, about_parking
from baton.core.log.slots import Slot, slot_of
from baton.core.log.state import CHANGE_KEY, FORK_KEY, WAITING, EarlierGraph, Failing, State, Used
from baton.core.on_demand import OnDemand

if TYPE_CHECKING:
    from baton.core.failures.strategies import registry
else:
    registry = OnDemand("baton.core.failures.strategies.registry")


def stop_saga(state: State, **news: Any) -> State:
    """Return the state of a saga that stops, with `news`: its cancellation, failure or result.

    It is no longer parked, except for a defect in a member of its scope, which must be mended first. A paused
    saga whose step fails stays paused; a cancel lets it go on to its end.
    """
    is_held = state.undo.work is not None or (state.is_paused and "cancel" not in news)
    parked = state.parked if is_held and state.stands_still else None
    recovery = replace(news.pop("recovery", state.recovery), consecutive_crashes=0)
    return replace(state, parked=parked, recovery=recovery, **news)


def fold_cancelled(state: State, e: ev.CancelRequested) -> State:
    """Record a cancellation.

    Its key is kept with those of forks, with a negative version that no fork has.
    """
    first = state.cancel
    if e.key:
        state = replace(state, keys={**state.keys, FORK_KEY + e.key: str(-state.version - 1)})
    if first is None:
        return stop_saga(state, cancel=e)
    return stop_saga(state, cancel=first.with_another(e))


def fold_limited(state: State, e: ev.LimitReached) -> State:
    """Record that the saga reached a limit, and fails."""
    if e.stays and state.failure is None:
        state = state.with_effects_kept()
    return stop_saga(state, failure=state.failure or e.failure)


def fold_parked(state: State, e: ev.Parked) -> State:
    """Park the saga. A stopping saga is parked only for crashes of its workers, for defects in the members
    of its scope, and by a person.

    An older log may still park it for money. A pause stays over whatever else holds the saga.
    """
    first = state.parked
    if first is not None and first.is_pause and not e.is_pause:
        e = replace(e, at=first.at if e.at else 0)  # its time stands still since then
        return replace(_parked(state, e), parked=first.with_reason(e))
    if e.is_pause:
        if first is not None and any(one.code == e.code for one in first.all):
            return state
        at = first.at if first is not None and first.at else e.at
        return replace(state, parked=replace(e, at=at, over=first))
    if first is not None and first.at:  # its time stands still since then, whatever else it is parked for
        e = replace(e, at=first.at, build=e.build or first.build)
    after = _parked(state, e)
    is_held = state.undo.work is not None and e.at
    if state.is_stopping and not after.kills_workers and not is_held:
        return state
    ask = about_parking(after)
    return after if ask is None else received.with_question_row(after, ask)


def _parked(state: State, e: ev.Parked) -> State:
    after = replace(state, parked=e, parked_in=state.version + 1)
    if e.at and not e.until:  # its own code has a mistake, or is gone: it goes on with other code
        after = replace(after, pinned="")
    return after


def fold_resumed(state: State, e: ev.Resumed) -> State:
    """Let the saga go on: steps of incidents are tried again; after a deployment, only those that it may have
    mended.
    """
    if e.code:
        return _unpaused(state, e)
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


def _unpaused(state: State, e: ev.Resumed) -> State:
    """End one pause. What else holds the saga still does."""
    held = state.parked
    if held is None or all(one.code != e.code for one in held.all):
        return state
    left = held.without(e.code)
    if left is None or not left.at:
        state = resumed_after_defect(state, e.at)
    after = replace(state, parked=left)
    ask = about_parking(after)
    return after if ask is None else received.with_question_row(after, ask)


def _tried_with(state: State, build: str) -> State:
    """Try the steps again that other code may have mended. Other open incidents leave the saga parked."""
    after, parked = resolve_incidents(state, build), state.parked
    if parked is not None and any(registry.of(failing.strategy).parks for failing in after.failing.values()):
        return replace(after, parked=replace(parked, at=0, build=""))
    return replace(after, parked=None)


SAGA = ""


def resumed_after_defect(state: State, at: int) -> State:
    """Return the state of a saga whose time stood still for a defect or a pause, when it goes on at a time.

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
    """Return the failing step with as much time left as before for its question and its attempts."""
    failing = replace(failing, began=failing.began and failing.began + later)
    history = failing.history
    if history.since:
        failing = replace(failing, history=replace(history, since=history.since + later))
    return failing if failing.ask is None else replace(failing, ask=failing.ask.postponed(later))


def graph_changed(state: State, e: ev.GraphChanged) -> State:
    """Go on with another graph. What its limits count, and the graph before did not, begins at zero."""
    if e.key and CHANGE_KEY + e.key in state.keys:
        return state
    before = state.origin
    earlier = EarlierGraph(
        graph=before.graph, workflow=before.workflow, document=before.document, last=state.version
    )
    if e.renamed:
        state = _renamed(state, e.renamed)
    return replace(
        state,
        origin=replace(before, graph=e.graph, workflow=e.workflow, document=e.document),
        graphs=(*state.graphs, earlier),
        outputs={**state.outputs, **e.outputs},
        used={**dict.fromkeys(e.counts, Used()), **state.used},
        keys=received.remember(state, {CHANGE_KEY + e.key: received.fingerprint(e.patch or ev.Value())})
        if e.key
        else state.keys,
    )


_V = TypeVar("_V")


def _renamed(state: State, names: Mapping[str, str]) -> State:
    """Return the state with other names of nodes. None of these has begun."""

    def at(slot: str) -> str:
        place = Slot.parse(slot)
        if place.node not in names:
            return slot
        return slot_of(names[place.node], place.iteration, place.item)

    def by_slot(values: Mapping[str, _V]) -> dict[str, _V]:
        return {at(slot): value for slot, value in values.items()}

    def by_name(values: Mapping[str, _V]) -> dict[str, _V]:
        return {names.get(name, name): value for name, value in values.items()}

    def by_round(values: Mapping[str, _V]) -> dict[str, _V]:
        return {
            "/".join(names.get(name, name) for name in key.split("/")): value for key, value in values.items()
        }

    return replace(
        state,
        tokens={at(slot): by_name(senders) for slot, senders in state.tokens.items()},
        errors={at(slot): by_name(senders) for slot, senders in state.errors.items()},
        closed={
            at(slot): tuple(names.get(name, name) for name in left) for slot, left in state.closed.items()
        },
        admitted=tuple(map(at, state.admitted)),
        begun=by_slot(state.begun),
        first_started_at=by_slot(state.first_started_at),
        outputs=by_name(state.outputs),
        previous=by_round(state.previous),
        pauses=by_slot(state.pauses),
        used=by_name(state.used),
    )


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
