"""The maps of a saga that the interpreter carries on: how each goes on, what its items gave, and what stops with it or runs on."""

from __future__ import annotations

from dataclasses import replace

from tests.core.graphs.facts import Breaks, Slot, owner_of
from tests.core.graphs.items import Item, Turn, turn
from tests.core.graphs.known import Known


class Mapped(Known):
    """What a map is to the interpreter, besides its place in the graph."""

    stopped: set[Slot]

    def turn(self, slot: Slot) -> Turn | None:
        """How the map at this slot goes on by itself; None while it waits for its items."""
        return turn(self.plan.nodes[slot[0]], self.maps[slot])

    def stop_items(self, slot: Slot, found: Turn) -> None:
        """Too many items have failed: so does the map."""
        self.open[slot] = Breaks(found.code, found.attempt, found.batch)

    def _item(self, slot: Slot, ended: Item) -> None:
        run = self.maps[owner_of(slot)]
        self.maps[owner_of(slot)] = replace(run, ended={**run.ended, int(slot[0].partition("#")[2]): ended})

    def _leaves(self, slot: Slot) -> bool:
        """Whether a map is done whose other items run on."""
        found = self.turn(slot) if slot in self.maps else None
        if found is None or not found.leaves:
            return False
        self.maps[slot] = replace(self.maps[slot], late=True)
        return True

    def _clear(self, slot: Slot) -> None:
        """What still runs of a map that has ended stops."""
        if self.maps.pop(slot, None) is not None:
            gone = [other for other in self.open if "#" in other[0] and owner_of(other) == slot]
            self.stopped.update(gone)
            for other in gone:
                del self.open[other]
