"""What a log says of undoing: a place for each step that undoes another, and what became of the step that is undone.

For the story of a saga in story.py, which loads this with the first event about undoing.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from baton.core.decide.program import Program
from baton.core.log import events as ev
from baton.core.log.state import UNKNOWN_OUTCOME, owner_of, slot_of
from baton.core.log.undos import undone_item
from baton.core.read.places import FAILED, RAN, SKIPPED, Arrival, Attempt, End, Moment, Place
from baton.core.read.wording import said

Seen: TypeAlias = ev.UndoBegan | ev.UndoStepBegan | ev.UndoPassed | ev.ChildUndone | ev.StepStopped


class Story(Protocol):
    """What is changed here of the story in story.py."""

    program: Program
    places: dict[str, Place]
    ended: list[str]
    items: dict[str, list[Place]]
    undoing: tuple[ev.UndoBegan, Moment] | None
    reopened: list[tuple[Place, End]]

    def place(self, slot: str, node: str, iteration: tuple[int, ...], item: str = "") -> Place: ...
    def close(self, slot: str, end: End) -> None: ...


STAYS = "nothing undoes it, so it stays"
MAYBE = "it was stopped while it acted, and may have happened"
NOTHING = "nothing to undo: its child had done nothing that can be undone"


def see(story: Story, event: Seen, when: Moment) -> None:
    """An event about undoing. That of a step that undoes another is told to `settle`."""
    if isinstance(event, ev.UndoBegan):
        story.undoing = (event, when)
        for was, end in story.reopened:  # a rollback after the end repeats nothing
            story.close(was.slot, end)
        story.reopened = []
    elif isinstance(event, ev.UndoStepBegan):
        _begin(story, event, when)
    elif isinstance(event, ev.UndoPassed | ev.StepStopped):
        if (place := story.places.get(slot_of(event.node, event.iteration, event.item))) is not None:
            place.fate = STAYS if isinstance(event, ev.UndoPassed) else _stopped(event)
    else:
        became = FAILED if event.failure else SKIPPED if event.nothing else RAN
        settle(story, event, became, event.failure, when)
        undone = _undone(story, event)
        if event.nothing and undone is not None:
            undone.fate = NOTHING


def _stopped(event: ev.StepStopped) -> str:
    if event.instead and event.instead == event.tool:
        return f"an earlier call of `{event.tool}`, with other arguments, may have happened, too"
    if event.instead:
        return f"`{event.tool}`, which it has left for `{event.instead}`, may have happened, too"
    return f"child {event.child} was stopped; a rollback undoes what it has done" if event.child else MAYBE


def settle(
    story: Story,
    event: ev.ChildUndone | ev.Settles,
    became: str,
    failure: ev.Failure | None,
    when: Moment,
) -> None:
    """A step that undoes another has ended."""
    slot = slot_of(event.node, event.iteration, event.item)
    place = story.places.get(slot)
    if place is None or place.end is not None:
        return
    story.close(slot, End(became, when, failure=failure))
    if (undone := _undone(story, event)) is not None:
        undone.fate = f"undone {place.said}" if failure is None else f"could not be undone: {said(failure)}"


def _begin(story: Story, event: ev.UndoStepBegan, when: Moment) -> None:
    slot = slot_of(event.node, event.iteration, event.item)
    is_new = slot not in story.places
    place = story.place(slot, event.node, event.iteration, event.item)
    if place.end is not None:  # it had failed, and is tried again
        place.end = None
        story.ended.remove(slot)
    if event.doubt and not event.way:  # the failure that a person is asked about
        failure = ev.Failure(UNKNOWN_OUTCOME, event.doubt, event.node)
        place.attempts.append(Attempt(0, event.tool, failure, 0, 0, when))
    undone = _undone(story, event)
    if undone is not None:
        undone.fate = "is being undone"
    place.label = "undo" + (f" of {undone.label}" if undone is not None and undone.label else "")
    place.said = f"by {_by(story, event)}"
    place.arrivals[event.node] = Arrival(event.node, True, (), owner_of(slot), when, False)
    if is_new:
        story.items.setdefault(owner_of(slot), []).append(place)


def _by(story: Story, event: ev.UndoStepBegan) -> str:
    if event.child:
        return f"child {event.child}"
    found = story.program.nodes[event.node].inverse(event.tool, undone_item(event.item))
    return "no tool" if found is None else f"`{found.step.tool}`"


def _undone(story: Story, event: ev.UndoStepBegan | ev.ChildUndone | ev.Settles) -> Place | None:
    """The place of the step that is undone."""
    return story.places.get(slot_of(event.node, event.iteration, undone_item(event.item)))
