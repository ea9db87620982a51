"""What is known at a slot of a running graph: where it stands, what expressions stand for there, what catches a failure.

What happens next is in interpreter.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.core.graphs.facts import Error, Fate, Firing, Rounds, Slot, owner_of, slot_name
from tests.core.graphs.failing import class_of
from tests.core.graphs.items import Run, tells_all
from tests.core.graphs.language import Broken, holds, into
from tests.core.graphs.plan import Document, Plan, names


@dataclass(frozen=True)
class Outer:
    """The place of a document that a graph was started from, as it was then. `error`: what `last_error` says there, if not what is told at the slot."""

    world: Known
    slot: Slot
    error: Mapping[str, Any] | None = None

    def ask(self, path: tuple[str, ...]) -> Any:
        """What a name stands for there. Raises `Broken`."""
        if path[0] == "last_error" and self.error is not None:
            return into(self.error, path[1:])
        return self.world.ask(self.slot, path)


class Known:
    """The history of a saga. `became` is what became of slots; `open` are those that are ready, with their arguments."""

    def __init__(self, document: Document, given: Any, outer: Outer | None = None) -> None:
        self.plan = Plan(document)
        self.given = given
        self.outer = outer
        self.became: dict[Slot, Fate] = {}
        self.open: dict[Slot, Any] = {}
        self.fired: dict[Slot, Firing] = {}
        self.rounds: dict[Slot, int] = {}
        self.left: dict[Slot, Slot] = {}
        self.rests: dict[Slot, int] = {}
        """When rounds of loops begin that have a pause before them."""
        self.maps: dict[Slot, Run] = {}

    # ---- where everything stands ---------------------------------------------------------------------------

    def here(self, name: str) -> Rounds | None:
        """The rounds that the node is in now; None if a loop around it was left."""
        at: Rounds = ()
        for tail in self.plan.loops[name.partition("#")[0]]:
            if (tail, at) in self.left:
                return None
            at = (*at, self.rounds.get((tail, at), 0))
        return at

    def last(self, name: str, at: Rounds) -> Slot:
        """The slot of a node in the last round of each loop around it that is further in than `at`."""
        for tail in self.plan.loops[name][len(at) :]:
            at = (*at, self.rounds.get((tail, at), 0))
        return name, at

    def sender(self, source: str, name: str, at: Rounds) -> Slot:
        return self.last(source, at[: self.plan.common(source, name)])

    # ---- what catches a failure --------------------------------------------------------------------------------

    def caught(self, slot: Slot, error: Error) -> frozenset[str] | None:
        """Where it goes on from a failure by the first rule that fits; None: no rule catches it."""

        def ask(path: tuple[str, ...]) -> Any:
            return into(error.told, path[1:]) if path[0] == "last_error" else self.ask(slot, path)

        for rule in self.plan.catch(slot[0]):
            codes, classes = rule.get("code"), rule.get("class")
            if (codes and error.code not in names(codes)) or (classes and error.kind not in names(classes)):
                continue
            try:
                if holds(rule.get("if", "true"), ask):
                    return frozenset(names(rule["then"]))
            except Broken:
                continue
        return None

    def is_handled(self, slot: Slot, code: str, attempt: int) -> bool:
        """Whether the graph itself goes on from this failure."""
        node = self.plan.of(slot[0])
        if "#" in slot[0] and tells_all(node):
            return True  # it is what the item gives
        slot = owner_of(slot)
        return slot[0] in self.plan.tolerated or self.is_caught(slot, code, attempt)

    def is_caught(self, slot: Slot, code: str, attempt: int = 0) -> bool:
        return self.caught(slot, Error(slot[0], code, class_of(code), attempt)) is not None

    # ---- what a name stands for ----------------------------------------------------------------------------

    def gave(self, slot: Slot) -> Any:
        fate = self.became.get(slot)
        return fate.value if fate is not None and fate.kind == "done" else None

    def ask(self, slot: Slot, path: tuple[str, ...]) -> Any:
        """The value of an expression at a slot. Raises `Broken`."""
        root, *rest = path
        if self.outer is not None and self._is_outside(slot, path):
            return self.outer.ask(path)
        if root in ("item", "index"):
            index = int(slot[0].partition("#")[2])
            return index if root == "index" else into(self.maps[owner_of(slot)].over[index], tuple(rest))
        slot = owner_of(slot)
        name, at = slot
        firing = self.fired.get(slot, Firing())
        if root == "input":
            return into(self.given, tuple(rest))
        if root == "loop":
            return at[-1]
        if root == "last_error":
            return into(firing.errors[0].told, tuple(rest)) if firing.errors else None
        if root == "join":
            return into(self._join_says(slot, firing, rest[0]), tuple(rest[1:]))
        assert root == "ctx", path
        node, field = rest[0], rest[1]
        common = self.plan.common(name, node) if name else 0
        base = at[:common]
        if field == "previous":
            if not base[-1]:
                is_tail = self.plan.loops[node][common - 1] == node
                return self.plan.nodes[node]["loop"].get("initial") if is_tail else None
            base = (*base[:-1], base[-1] - 1)
        source = self.last(node, base)
        fate = self.became.get(source)
        if fate is None or fate.kind != "done":
            # What is read without a question mark was promised by the compiler.
            assert field != "output", f"{slot_name(slot)} reads the output of {node}, which gave nothing"
            return None
        return into(fate.value, tuple(rest[2:]))

    def _is_outside(self, slot: Slot, path: tuple[str, ...]) -> bool:
        """Whether a graph of a document has nothing of this name at this slot itself."""
        if path[0] == "ctx":
            return path[1] not in self.plan.nodes
        if path[0] == "last_error":
            return not self.fired.get(owner_of(slot), Firing()).errors
        return path[0] in ("item", "index") and "#" not in slot[0]

    def _join_says(self, slot: Slot, firing: Firing, field: str) -> Any:
        name, at = slot
        if field == "arrived":
            return list(firing.arrived)
        if field == "errors":
            return [{"node": error.node, "code": error.code} for error in firing.errors]
        slots = {source: self.sender(source, name, at) for source in firing.arrived}
        # One whose failure is caught has given nothing.
        return {source: self.gave(its) for source, its in slots.items() if self.became[its].kind == "done"}

    def readable(self) -> set[str]:
        """The nodes whose output another may still read, in this round of their loops or a later one."""
        to_come: set[str] = set()
        late = {slot for slot, run in self.maps.items() if run.late}
        to_come |= {name for name, _ in late}  # nothing follows from these
        for name, _ in {owner_of(slot) for slot in (*self.open, *self.rests)} - late:
            to_come |= self.plan.ahead[name]
            if loops := self.plan.loops[name]:
                to_come |= self.plan.ahead[self.plan.header(loops[0])]
        return {name for name, readers in self.plan.readers.items() if readers & to_come or "" in readers}
