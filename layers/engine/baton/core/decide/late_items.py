"""The items that a map has left running: what is read for them, and what stops them and other steps with a round.

A map goes on without them, see core/nodes/map.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec.structs import replace

from baton.core.decide.context import NOTHING, EvaluationContext, Found
from baton.core.decide.program import Program
from baton.core.decide.stopped_steps import told
from baton.core.decide.transitions import forgotten
from baton.core.log import events as ev
from baton.core.log.folding.fold import apply
from baton.core.log.maps import Map, late_end
from baton.core.log.state import State, node_of, owner_of, slot_of

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
    program: Program, state: State, slot: str, now: int, running: Collection[str], found: Found
) -> Iterator[ev.Event]:
    """What is told of items of a node that are stopped while they act. Raises `LackingError`."""
    for item in state.items_of(slot):
        one = f"{slot}#{item}"
        if one in state.tokens:
            yield from told(EvaluationContext(program, state, found, one), now, running)


def ended(
    program: Program, state: State, slot: str, now: int, running: Collection[str], found: Found, why: str
) -> list[ev.Event]:
    """The items that a map has left running are stopped. Nothing follows from that. Raises `LackingError`."""
    work, (name, iteration) = state.open[slot], node_of(slot)
    assert isinstance(work, Map), "the caller has looked"
    doubts = doubts_of(program, state, slot, now, running, found)
    end = late_end(name, iteration, work, len(state.items_of(slot)), why)
    return [*doubts, over(program, state, end, slot)]


def ends_first(
    program: Program, state: State, event: ev.Event, now: int, running: Collection[str], found: Found
) -> list[ev.Event]:
    """The event behind what is told of the steps that it stops, because their round is over with it. Raises `LackingError`.

    The maps that have gone on in that round end first. The join of such a map, where its loop begins with it, goes on absorbing
    what comes from outside of the loop.
    """
    drops = getattr(event, "drops", ())
    if not drops:
        return [event]
    assert isinstance(event, ev.Settles), "no other event ends a round"
    gone, own = state.late.intersection(drops), slot_of(event.node, event.iteration, event.item)
    first: list[ev.Event] = []
    for slot in drops:
        if slot in state.tokens and owner_of(slot) not in gone and owner_of(slot) != own:
            first += told(EvaluationContext(program, state, found, slot), now, running)
    for slot in sorted(gone):
        its = ended(program, state, slot, now, running, found, ROUND)
        first += its
        for one in its:
            state = apply(state, one)
    if not gone:
        return [*first, event]
    closed = {
        slot for slot in gone if slot in state.closed and node_of(slot)[0] not in program.index.tails_of
    }
    left = tuple(slot for slot in drops if owner_of(slot) not in gone or slot in closed)
    return [*first, replace(event, drops=left)]
