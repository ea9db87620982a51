"""The items that a map has left running: what is read for them, who is told of those that are stopped, and what stops them with a round.

A map goes on without them, see core/nodes/map.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from baton.core.decide.context import NOTHING, EvaluationContext
from baton.core.decide.program import Program
from baton.core.decide.transitions import forgotten
from baton.core.decide.unknown_outcomes import doubt_notice, is_in_doubt
from baton.core.log import events as ev
from baton.core.log.fold import apply
from baton.core.log.maps import Map, late_end
from baton.core.log.state import State, node_of, owner_of

ROUND = "the end of its round"


def late_in(context: EvaluationContext, late: tuple[int, int] | None = (0, 0)) -> EvaluationContext:
    """The same place, where the map goes on (or, with None, is over): what its items read is read until they have ended."""
    state = context.state
    work = state.open[context.slot]
    assert isinstance(work, Map), "nothing else goes on beside its items"
    return replace(context, state=replace(state, open={**state.open, context.slot: replace(work, late=late)}))


def over(program: Program, state: State, event: ev.MapEnded, slot: str) -> ev.MapEnded:
    """The end of a map that has gone on, with the outputs that no node reads any more."""
    return replace(event, forget=forgotten(late_in(EvaluationContext(program, state, NOTHING, slot), None)))


def doubts_of(
    program: Program, state: State, slot: str, now: int, running: Collection[str]
) -> Iterator[ev.NoticeDue]:
    """The notices about items of a map that are stopped in the middle of what may happen only once."""
    for item in state.items_of(slot):
        one = f"{slot}#{item}"
        if one in state.tokens and is_in_doubt(program, state, one, running):
            yield ev.NoticeDue(notice=doubt_notice(state, one, now))


def ended(
    program: Program, state: State, slot: str, now: int, running: Collection[str], why: str
) -> list[ev.Event]:
    """The items that a map has left running are stopped. Nothing follows from that."""
    work, (name, iteration) = state.open[slot], node_of(slot)
    assert isinstance(work, Map), "the caller has looked"
    told = doubts_of(program, state, slot, now, running)
    end = late_end(name, iteration, work, len(state.items_of(slot)), why)
    return [*told, over(program, state, end, slot)]


def ends_first(
    program: Program, state: State, event: ev.Event, now: int, running: Collection[str]
) -> list[ev.Event]:
    """The event behind the ends of the maps that have gone on in a round that is over with it.

    The join of such a map, where its loop begins with it, goes on absorbing what comes from outside of the loop.
    """
    drops = getattr(event, "drops", ())
    gone = state.late.intersection(drops) if drops else ()
    if not gone:
        return [event]
    found: list[ev.Event] = []
    for slot in sorted(gone):
        its = ended(program, state, slot, now, running, ROUND)
        found += its
        for one in its:
            state = apply(state, one)
    assert isinstance(event, ev.Settles), "no other event ends a round"
    absorbs = {slot for slot in gone if node_of(slot)[0] in program.index.tails_of}
    left = tuple(slot for slot in drops if owner_of(slot) not in gone or slot in gone - absorbs)
    return [*found, replace(event, drops=left)]
