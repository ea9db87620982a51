"""The breaker for corrections: a model that is told again and again what was wrong is not asked any more until a person has spoken.

A correction is a request behind an answer that was of no use: it was refused, or none of the calls that it asked for could be made
or has succeeded. They count by node, across the turns of an agent, and of a map by item; a call that succeeds and the end of the node begin anew.
"""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.log.maps import is_index
from baton.core.log.state import State, item_of, owner_of, without

MOST, WINDOW_MS = 3, 60_000
"""More corrections than these within so much time open the breaker."""


def corrected(state: State, slot: str, at: int) -> State:
    """With one more at `slot`; `at`: when its answer, or the last of its calls, was over."""
    place = _place_of(slot)
    times = (*state.corrections.get(place, ()), at)[-MOST - 1 :]
    return replace(state, corrections={**state.corrections, place: times})


def useful(state: State, slot: str) -> State:
    """After a success, or the word of a person."""
    if not state.corrections:
        return state
    return replace(state, corrections=without(state.corrections, (_place_of(slot),)))


def breaker_of(state: State, slot: str) -> str:
    """Why no model is asked at `slot`; empty where one is."""
    times = state.corrections.get(_place_of(slot), ()) if state.corrections else ()
    if len(times) <= MOST or times[-1] - times[0] >= WINDOW_MS:
        return ""
    return f"{len(times)} answers within {WINDOW_MS // 1_000} seconds were of no use"


def _place_of(slot: str) -> str:
    """Where the corrections of a slot are counted: an item of a map is asked about apart, a turn or a call belongs to its agent."""
    return slot if is_index(item_of(slot)) else owner_of(slot)
