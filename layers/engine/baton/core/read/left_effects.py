"""Effects that a fork leaves behind: the log has them, and the history that goes on has not.

An effect keeps its key if the new branch calls its tool with the same arguments. Where a changed value may
reach those, or may decide if the step runs at all, that is not certain.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Annotated, Any, Literal

import msgspec
from msgspec.structs import replace

from baton.core.decide.program import Program
from baton.core.effects.keys import WITHIN_SAGA
from baton.core.effects.risk import ASKING, MOVES_MONEY
from baton.core.effects.toolspec import ONCE, PURE, ToolSpec
from baton.core.expressions import Path
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.folding.forks import fork_in
from baton.core.log.slots import Slot
from baton.core.log.state import Segment, State
from baton.core.log.work import child_in
from baton.core.models.usage import MODEL
from baton.core.read.answers import Count, Version, View

KEPT, NEW, UNSURE = "kept", "new", "unsure"
MOST_NAMED = 100
"""The most effects that an answer names."""


class LeftEffect(View):
    """An effect that a fork leaves behind."""

    step: str
    version: Annotated[Version, "Version of the log entry that records the effect."]
    tool: Annotated[str | None, "Tool that acted. Null for a child saga."]
    child: Annotated[str | None, "Child saga that acted."]
    payment: Annotated[
        bool, "True for a payment, a declared cost, an effect that happens once only, or a high risk."
    ]
    doubtful: Annotated[bool, "True if the outcome is unknown, or the call may be under way."]
    by: Annotated[str | None, "Tool or child saga that undoes the effect. Null if it is irreversible."]
    key: Annotated[
        Literal["kept", "new", "unsure"],
        "`kept`: the new branch meets the effect under its key, and does not act again. `new`: the request repeats the step. "
        "`unsure`: the step may have another key, or may not run; the effect stands, and the step may act again.",
    ]


class ForkPlan(View):
    """Begin of a fork, and the effects that it leaves behind."""

    cut: Annotated[Version, "Version from which the saga goes on."]
    left: Annotated[
        list[LeftEffect], "First 100 effects that it leaves behind: payments first, then the newest."
    ]
    more: Annotated[Count, "Number of further effects."]
    unsure: Annotated[Count, "Number of all effects whose key is `unsure`."]


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """An effect in the log; `number`: the incarnation of its slot at that time. `is_present`: the branch that
    is left has it.
    """

    slot: str
    version: int
    tool: str
    child: str
    doubtful: bool
    number: int
    is_present: bool = False


class LeftEffects:
    """Collector of the effects in a log that are no part of a history.

    `history`: the segments that go on. `present`: those of the branch that is left.
    """

    def __init__(
        self,
        program: Program,
        tools: Mapping[str, ToolSpec],
        history: Sequence[Segment],
        present: Sequence[Segment] = (),
    ) -> None:
        self._program, self._tools, self._history, self._present = program, tools, history, present
        self._forks: list[tuple[int, int, set[str]]] = []
        self._found: dict[tuple[str, str], Found] = {}
        self._kept = set[tuple[str, str]]()

    def add(self, entry: ev.Entry, generation: Callable[[str], int]) -> None:
        """Add the next entry of the log; `generation`: the incarnations of slots at that time."""
        goes_on = _is_in(self._history, entry)
        if (fork := fork_in(entry)) is not None:
            changed = {event.node for event in entry.events if isinstance(event, ev.ValueChanged)}
            self._forks.append((entry.version, fork.cut, changed))
        for event in entry.events:
            if isinstance(event, _ACTS) and (event.child or isinstance(event, _CALLS)):
                self._see(event, entry, generation, goes_on=goes_on)

    def changed_between(self, version: int, other: int) -> set[str]:
        """Return the nodes whose values a fork has changed for one of two versions, and not for the other."""
        mine, others = self._changes_at(version), self._changes_at(other)
        return set[str]().union(*(changed for at, _, changed in self._forks if at in mine ^ others))

    def _changes_at(self, version: int) -> set[int]:
        found = set[int]()
        for at, cut, _ in reversed(self._forks):
            if at <= version:
                found.add(at)
                version = cut
        return found

    def _see(self, event: _Act, entry: ev.Entry, generation: Callable[[str], int], *, goes_on: bool) -> None:
        slot, child, version = event.slot, event.child, entry.version
        tool = "" if child else event.tool or self._node(slot, version).work.tool
        is_certain = isinstance(event, ev.Closing)
        if Slot.parse(slot).scope or not (child or self._acts(tool)) or not _may_have_acted(event):
            return
        if goes_on:
            self._kept.update([(slot, tool)] if is_certain else [])
            return
        known, is_present = self._found.get((slot, tool)), _is_in(self._present, entry)
        if known is None or known.doubtful or (is_certain and is_present >= known.is_present):
            self._found[slot, tool] = Found(
                slot=slot,
                version=version,
                tool=tool,
                child=child,
                doubtful=not is_certain and not child,
                number=generation(slot),
                is_present=is_present,
            )

    def doubt(self, slot: str, tool: str, version: int, number: int) -> None:
        """Add a call that may be under way, or that may have acted before the history ends."""
        if self._acts(tool) and (slot, tool) not in self._found:
            self._found[slot, tool] = Found(
                slot=slot, version=version, tool=tool, child="", doubtful=True, number=number
            )

    def restart(self, at_cut: State) -> None:
        """Add what is under way elsewhere at the cut: a new saga begins it once more."""
        for slot, work in at_cut.open.items():
            child, tool = child_in(at_cut.open, slot), self._node(slot, at_cut.version).work.tool
            if work.after_fork(None, is_ending=True) is not None:
                continue
            self._found[slot, "" if child else tool] = Found(
                slot=slot,
                version=at_cut.version,
                tool="" if child else tool,
                child=child.saga if child else "",
                doubtful=child is None,
                number=at_cut.undo.generation(slot),
            )

    def is_of_saga(self, one: Found) -> bool:
        """Return true if the key of an effect belongs to its saga: no other saga meets it."""
        spec, work = self._tools.get(one.tool), self._node(one.slot, one.version).work
        return spec is None or not (work.key or spec.key.strategy not in WITHIN_SAGA)

    def _node(self, slot: str, version: int) -> Node:
        return self._program.at(version).nodes.get(Slot.parse(slot).node, _NO_NODE)

    def _acts(self, tool: str) -> bool:
        spec = self._tools.get(tool)
        return tool not in ("", MODEL) and (spec is None or spec.effect != PURE)

    def left(self, generation: Callable[[str], int], others: Collection[str] = ()) -> list[Found]:
        """Return what stands, payments first, then the newest. An effect whose slot has another incarnation
        now was undone, or its step was repeated. A history that has ended the step has met the effect, too,
        unless the step is one of the nodes `others`, which got other arguments there.
        """
        standing = [
            one
            for key, one in self._found.items()
            if (key not in self._kept or (one.is_present and Slot.parse(one.slot).node in others))
            and generation(one.slot) == one.number
        ]
        return sorted(standing, key=lambda one: (not self.is_payment(one), -one.version, one.slot))

    def undone(self, generation: Callable[[str], int]) -> list[ev.Repeats]:
        """Return the events by which another saga gets new keys, too, where the key of an undone effect is of
        wider scope: under that key it would meet what is undone.
        """
        counts = {one.slot: generation(one.slot) for one in self._found.values() if not self.is_of_saga(one)}
        most = max(counts.values(), default=0)
        return [
            ev.Repeats(slots=tuple(slot for slot, count in counts.items() if count > number))
            for number in range(most)
        ]

    def is_payment(self, one: Found) -> bool:
        """Return true for an effect that a person has to know of first."""
        spec, node = self._tools.get(one.tool), self._node(one.slot, one.version)
        if spec is None:
            return bool(node.work.cost)
        risk = spec.risk
        is_risky = risk is not None and (risk.action in MOVES_MONEY or risk.level in ASKING)
        return bool(spec.cost or node.work.cost or is_risky or spec.effect == ONCE)

    def view(self, one: Found, key: Literal["kept", "new", "unsure"]) -> LeftEffect:
        """Return the effect as an answer names it."""
        node = self._node(one.slot, one.version)
        inverse = None if one.child else node.inverse(one.tool, Slot.parse(one.slot).item)
        return LeftEffect(
            step=one.slot,
            version=one.version,
            tool=one.tool or None,
            child=one.child or None,
            payment=self.is_payment(one),
            doubtful=one.doubtful,
            by=one.child or (None if inverse is None else inverse.step.tool),
            key=key,
        )


def _is_in(segments: Sequence[Segment], entry: ev.Entry) -> bool:
    return any(one.branch == entry.branch and one.first <= entry.version <= one.last for one in segments)


_NO_NODE = Node(name="", kind="")
_CALLS = ev.Attempted | ev.StepStopped
_Act = ev.Attempted | ev.StepStopped | ev.Opens | ev.Closing
_ACTS = _CALLS | ev.Opens | ev.Closing
"""Events of calls of tools, and those that begin and end a child."""
_NEVER_BEGAN = ("money", "approval")


def _may_have_acted(event: _Act) -> bool:
    if isinstance(event, ev.StepFailed | ev.AttemptFailed):
        return event.failure.says_nothing or event.failure.doubt
    if isinstance(event, ev.StepInterrupted):
        return event.why not in _NEVER_BEGAN
    # A child that is detached is the same one in each branch.
    return not (event.child and isinstance(event, ev.Opens) and event.work().orphan is None)


def unsure_nodes(program: Program, changed: Collection[str], differing: Collection[str] = ()) -> set[str]:
    """Return the nodes that may get other arguments, or may not run, once the outputs of the nodes `changed`
    are others (an empty name: the saga's input), and the nodes `differing` themselves.
    """
    unsure, steered = set(differing), set[str]()
    reads: dict[str, list[Path]] = {}
    for name, path in program.paths():
        reads.setdefault(name, []).append(path)
    while True:
        size = len(unsure) + len(steered)
        for node in program.graph.nodes:
            others = {*changed, *unsure}
            if node.name in steered or any(_reads(path, node, others) for path in reads.get(node.name, ())):
                unsure.add(node.name)
            if node.name not in unsure or not chooses(node):
                continue
            inside = (one.name for one in program.graph.nodes if node.name in one.loops)
            steered.update(node.after, *([inside] if node.loop is not None else []))
        for node in program.graph.nodes:
            if node.name in steered:
                steered.update(node.after)
        if len(unsure) + len(steered) == size:
            return unsure


def differing_nodes(old: Program, new: Program) -> set[str]:
    """Return the nodes of either graph whose calls, or whose ways on, may be others in the other one."""
    mine, others = old.nodes, new.nodes
    names = mine.keys() | others.keys()
    return {name for name in names if _action(mine.get(name)) != _action(others.get(name))}


def _action(node: Node | None) -> Node | None:
    """Return a node without the fields that decide neither what it calls nor what follows."""
    if node is None:
        return None
    each = None if node.each is None else replace(node.each, do=_action(node.each.do))
    return replace(node, each=each, **_IMMATERIAL)


_IMMATERIAL: dict[str, Any] = {
    "tool_version": "",
    "schema_hash": "",
    "output_schema": None,
    "limits": {},
    "failures": {},
    "timeout_ms": 0,
    "undo": {},
    "cost": 0,
    "breaker": "",
    "verified": False,
}


def _reads(path: Path, node: Node, others: Set[str]) -> bool:
    """Return true if the path, or an index within it, may have another value."""
    if any(_reads(pick, node, others) for pick in path.picks):
        return True
    if path.root == "input":
        return "" in others
    if path.node:
        return path.node in others
    return path.root in ("join", "last_error") and not others.isdisjoint(node.before)


def chooses(node: Node) -> bool:
    """Return true if a node has more than one way on."""
    return bool(node.branch or node.loop or node.when or node.catch or node.join)
