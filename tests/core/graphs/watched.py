"""What the mirror knows of maps and of children: which have begun, how they were heard to end, and how a map goes on.

A part of mirror.py, which holds the events of nodes and steps against the interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from baton.core.decide.unknown_outcomes import ROUND
from baton.core.graph.graph import graph_name, split
from baton.core.log import events as ev
from baton.core.log.records import Child
from tests.core.graphs.facts import Breaks, Slot, slot_name, slot_of
from tests.core.graphs.failing import CLASSES, class_of
from tests.core.graphs.items import BEGIN, FAIL, OVER
from tests.core.graphs.known import Outer
from tests.core.graphs.language import render
from tests.core.graphs.world import World

HANDLER = "failure-handler"
OWN_CODES = {
    *("odd", "join_failed", "loop_exhausted", "input_unbound"),
    *("poll_exhausted", "map_failed", "map_invalid", "child_failed"),
    *CLASSES,
}
"""All other codes are about conditions: the interpreter knows only that they break."""


def plain(value: Any) -> Any:
    """A value without the messages of failures, and with one code for all that conditions break with."""
    if isinstance(value, Mapping):
        # What a child of a batch has failed with, `errors`, is nothing that the interpreter knows.
        if value.keys() - {"errors"} == {"code", "message"}:
            return {"code": code_of(value["code"])}
        if value.keys() >= {"node", "code", "message"}:
            return {"node": value["node"], "code": code_of(value["code"])}
        return {key: plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    is_code = isinstance(value, str) and value.startswith(("condition_", "branch_"))
    return "condition" if is_code else value


def code_of(code: str) -> str:
    return code if code in OWN_CODES else "condition"


class Report(NamedTuple):
    """How a child has ended: whether another may follow it, where it has failed with `code`.

    `kind`: the class of what was at the bottom of that.
    """

    status: str
    code: str
    value: Any
    again: bool
    kind: str


class Inner(NamedTuple):
    """A graph of the document that was started: what it is given and sees by the interpreter, and by the engine."""

    name: str
    given: Any
    seen: Outer
    got: Any
    got_to_see: Any


def place_of(event: Any, rounds: tuple[int, ...] = ()) -> Slot:
    """The slot that an event is about; one that names only a node is in these rounds."""
    item = getattr(event, "item", "")
    name = getattr(event, "node", "") + (f"#{item}" if item else "")
    return name, getattr(event, "iteration", rounds)


class Watched:
    """Of one saga: the children that have reported and have not been heard, and all that ever began."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.reports: dict[Slot, Report] = {}
        self.known_children: dict[str, Slot] = {}
        self.stopping: list[Slot] = []
        """What the entry that is looked at says it stops."""
        self.was_over = False
        """Whether the saga had ended before this entry."""
        self.graphs: dict[str, Inner] = {}
        """The children that are graphs of the document."""
        self.stopped: list[str] = []
        """The children that the saga has gone on without, and that may have done something: it is undone if the saga fails."""

    def copy_to(self, twin: Watched) -> None:
        twin.world = self.world.fork()
        twin.reports, twin.known_children = dict(self.reports), dict(self.known_children)
        twin.stopping = list(self.stopping)
        twin.graphs, twin.was_over, twin.stopped = dict(self.graphs), self.was_over, list(self.stopped)

    def broken(self, slot: Slot) -> Any:
        """With what the node at this slot fails by itself; something else, if it does not."""
        run = self.world.maps.get(slot)
        if run is not None and not run.begun:
            found = self.world.turn(slot)
            if found is not None and found.what == FAIL:
                return Breaks(found.code)
        return self.world.open.get(slot)

    def handles(self, child: Child) -> None:
        """The failure handler begins: it sees all that was given, and the failure of the saga."""
        world = self.world
        assert world.ended is not None
        said, end = world.plan.document["failure_handler"], world.ended
        assert (end.status, graph_name(child.workflow)) == ("failed", said["graph"])
        got, outer = split(child.workflow, child.input.v)
        its = Outer(world.fork(), ("", ()), {"code": end.code, "node": end.node})
        given = render(said.get("with", "${input}"), its.ask)
        assert plain(got) == plain(given), f"the failure handler got {got}, not {given}"
        self.graphs[HANDLER] = Inner(said["graph"], given, its, got, outer)

    def undoes(self, slot: str, child: str) -> ev.ChildUndone:
        """A child is to undo what it has done, the one that was stopped last first; none of these has done anything."""
        assert self.stopped.pop() == child, f"{child} is not the next to be undone"
        name, rounds = slot_of(slot.partition("#")[0])
        item = slot.partition("#")[2]
        return ev.ChildUndone(node=name, iteration=rounds, item=item, child=child, nothing=True)

    def look_on_many(self, event: ev.Event, now: int) -> bool:
        """Whether the event was one of these, and is as it has to be."""
        looks: dict[type[ev.Event], Callable[[Any], None]] = {
            ev.MapBegan: self._map_began,
            ev.ItemsBegan: self._items_began,
            ev.ItemsGathered: lambda event: None,
            ev.MapStopped: self._map_stopped,
            ev.MapEnded: self._map_ended,
            ev.ChildReported: self._reported,
            ev.ChildrenAbandoned: self._abandoned,
            ev.StepStopped: self._stopped,
            ev.UndoBegan: lambda event: None,
            ev.UndoStepBegan: lambda event: None,
            ev.ChildUndone: lambda event: None,
        }
        if isinstance(event, ev.ChildOpened):
            assert not self.was_over, f"{event.child} begins, and the saga has ended"
            if self.world.ended is None:
                self._child_opened(event, now)
            else:  # what is ready beside the end may be written down with it
                self.known_children[event.child] = place_of(event)
            return True
        look = looks.get(type(event))
        if look is not None and (self.world.ended is None or isinstance(event, ev.ChildrenAbandoned)):
            look(event)
        return look is not None

    def _map_began(self, event: Any) -> None:
        run = self.world.maps.get(place_of(event))
        assert run is not None, f"it is not the turn of {event.node}"
        found = self.world.turn(place_of(event))
        assert found is not None, f"no item of {event.node} begins now"
        assert found.what == BEGIN, "nothing begins for a list that is too short"
        assert (event.size, event.over.v) == (len(run.over), run.over)

    def _items_began(self, event: Any) -> None:
        slot = place_of(event)
        assert slot in self.world.maps, f"the map at {slot_name(slot)} has ended"
        found = self.world.turn(slot)
        begun = self.world.maps[slot].begun
        assert found is not None, f"no item of {slot_name(slot)} begins now"
        assert (found.what, found.count, begun) == (BEGIN, event.count, event.first), f"{event}, not {found}"
        self.world.begin_items(slot, event.count)

    def _map_stopped(self, event: Any) -> None:
        slot = place_of(event)
        found = self.world.turn(slot)
        assert found is not None, f"{slot_name(slot)} has not failed"
        assert found.what == FAIL, f"{slot_name(slot)} has not failed, but {found}"
        self.world.stop_items(slot, found)

    def _map_ended(self, event: Any) -> None:
        slot = place_of(event)
        if event.why == ROUND:
            self.stopping.append(slot)
            return
        if slot not in self.world.maps:
            assert event.why, f"{slot_name(slot)} has left nothing running"
            return
        found = self.world.turn(slot)
        assert found is not None, f"items of {slot_name(slot)} still run"
        assert found.what == OVER, f"{slot_name(slot)} is not over, but {found}"
        assert not event.emits
        self.world.map_over(slot)

    def check_rounds(self) -> None:
        """What was said to stop has stopped with this entry."""
        for slot in self.stopping if self.world.ended is None else ():
            is_there = slot in self.world.open or slot in self.world.maps
            assert not is_there, f"{slot_name(slot)} goes on behind this entry"
        self.stopping.clear()

    def _child_opened(self, event: Any, now: int) -> None:
        world, slot = self.world, place_of(event)
        assert slot in world.may_start(now), f"{event.child} begins too early"
        assert slot not in world.children, f"{slot_name(slot)} has a child: {world.children[slot]}"
        assert event.child not in self.known_children, f"{event.child} has begun before"
        given, node, outer, got = world.given_to(slot), world.plan.of(slot[0]), None, event.input.v
        assert graph_name(event.workflow) == node.get("graph", ""), (
            f"{slot_name(slot)} starts {event.workflow}"
        )
        if "graph" in node:
            got, outer = split(event.workflow, got)
            its = Outer(world.fork(), slot)
            self.graphs[event.child] = Inner(node["graph"], given, its, got, outer)
        assert plain(got or {}) == plain(given or {}), f"{event.child} got {got}, not {given}"
        world.children[slot] = event.child
        self.known_children[event.child] = slot

    def _reported(self, event: Any) -> None:
        slot = slot_of(event.slot)
        if self.world.children.get(slot) == event.child and slot not in self.reports:
            why = event.failure
            code = why.code if why else ""
            first = why.errors[0] if code == "child_failed" and why.errors else why
            kind = first.kind or class_of(first.code) if first else ""
            again = event.status in ("failed", "rolled_back")
            self.reports[slot] = Report(event.status, code, event.output.v, again, kind)

    def _stopped(self, event: Any) -> None:
        slot = place_of(event)
        # The interpreter may have skipped its node with an earlier event of the entry, and then waits for it no more.
        is_left = self.known_children.get(event.child) == slot and slot not in self.world.open
        assert is_left or self.world.children.get(slot) == event.child, f"{event.child} is not waited for"
        assert event.child not in self.graphs, "nothing undoes what a graph of the document does"
        self.stopped.append(event.child)

    def _abandoned(self, event: Any) -> None:
        for child in event.children:
            slot = self.known_children[child]
            is_wanted = self.world.ended is None and self.world.children.get(slot) == child
            assert not is_wanted, f"{child} is asked to stop, and {slot_name(slot)} waits for it"
            if event.undo and child not in self.graphs:
                self.stopped.append(child)
