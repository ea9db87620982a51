"""What a state is like when its time goes on after it has stood still: whatever would have run out meanwhile has as much left as before.

Loaded with the first saga that goes on after a defect. That it stands still is `State.stands_still`.
"""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.log.state import Failing, State

SAGA = ""


def gone_on(state: State, at: int) -> State:
    """A saga that is parked for a defect, when it goes on at a time. A pause that is over meanwhile is over."""
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
    """The person asked has as much time left as before, and so have the retries and what undoes a step."""
    failing = replace(failing, began=failing.began and failing.began + later)
    history = failing.history
    if history.since:
        failing = replace(failing, history=replace(history, since=history.since + later))
    return failing if failing.ask is None else replace(failing, ask=failing.ask.postponed(later))
