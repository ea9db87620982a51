"""A document's nodes as numbers, in their order: the questions about
all paths through a graph are answered by it.

Which node comes before which, and which receivers get a token together.
Sets of nodes are integers, one bit per node: as sets of names, a chain of 10,000 would take gigabytes.
Names and places of problems are not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from baton.core.documents.nodes.node_model import kind_of
from baton.core.failures.codes import PERMANENT
from baton.core.graph.graph import JOIN_FAILED, can_go_on

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.edges import Edges
    from baton.core.documents.parts.node import MapModel
    from baton.core.documents.read import JoinModel, NodeModel


@dataclass(slots=True)
class FlowNode:
    """One node. `need`: so many live edges, 0 for all; `tolerated` failures, -1 for none that it says.

    `outcomes`: sets of receivers; when the node is done, those of one of the sets get a live token, and maybe
    others, unless they are `exact`.
    `caught`: the same when it has failed and one of the rules of its `catch` fits; `catches_all`: one always
    does.
    `around`: the last nodes of the loops around it, outermost first.
    `takes`: true if it is a join that can go on although a node before it has failed, or whose own failure
    may be caught.
    `ends`: the saga ends with it; `at_once`: as soon as one edge is alive.
    `is_endless`: the last node of a loop that never leaves it by itself, unless it fails.
    """

    before: tuple[int, ...]
    after: tuple[int, ...]
    outcomes: list[tuple[int, ...]]
    need: int
    tolerated: int
    cancels: bool
    asks: bool
    exact: bool = True
    around: tuple[int, ...] = ()
    is_tail: bool = False
    caught: tuple[tuple[int, ...], ...] = ()
    catches_all: bool = False
    takes: bool = False
    ends: bool = False
    at_once: bool = False
    is_endless: bool = False


class Flow:
    """The nodes that stand on no circle and behind none."""

    def __init__(self, nodes: Mapping[str, NodeModel], edges: Edges) -> None:
        self.names = edges.order
        self.at = at = {name: index for index, name in enumerate(edges.order)}
        self.spots: list[FlowNode] = []
        self.behind: list[int] = []
        """For each node: all that come before it, on any path."""
        self.loops: dict[int, tuple[int, int]] = {}
        """For each last node of a loop: the first one, and the set of all of them. Filled by loops.py."""
        self.ends: set[str] = set()
        """The nodes with which the saga ends, at once or later."""
        for name in edges.order:
            node = nodes[name]
            before = tuple(at[other] for other in edges.before[name])
            after = tuple(at[other] for other in edges.after[name] if other in at)
            ways = [after]
            if node.branch is not None or node.loop is not None or node.catch:
                ways = [
                    tuple(sorted(at[other] for other in way if other in at))
                    for way in least_ways(node, edges.after[name])
                ]
            need, tolerated, cancels = waits_for(node.join, len(before))
            spot = FlowNode(before, after, ways, need, tolerated, cancels, node.when is not None)
            spot.exact = node.branch is None or node.branch.choose is None
            if node.loop is not None and is_always(node.loop.while_):
                if node.loop.timeout_path:
                    spot.outcomes = [tuple(sorted(at[one] for one in node.loop.timeout_path if one in at))]
                else:
                    spot.is_endless = True
            if node.catch:
                spot.caught = tuple(
                    tuple(sorted(at[other] for other in way if other in at)) for way in caught_ways(node)
                )
                spot.catches_all = any(rule.fits_all for rule in node.catch)
                spot.takes = tolerated >= 0 and any(
                    rule.may_fit(JOIN_FAILED, PERMANENT) for rule in node.catch
                )
            spot.takes |= can_go_on(need, tolerated, len(before), cancels=cancels)
            is_first = len(before) < 2 or need == 1
            if kind_of(node).ends:
                self.ends.add(name)
                spot.ends = node.when is None
                spot.at_once = spot.ends and is_first
            self.spots.append(spot)
            mask = 0
            for index in before:
                mask |= self.behind[index] | 1 << index
            self.behind.append(mask)

    def without_ends(self) -> Flow:
        """Return the same flow in which no node ends the saga."""
        flow = copy(self)
        flow.spots, flow.ends = [replace(spot, ends=False, at_once=False) for spot in self.spots], set()
        return flow

    def leads_only_to(self, index: int, join: int) -> bool:
        """Tell if every path from the node leads to the join: only then does it stop the node."""
        todo, seen = [index], {join}
        for one in todo:
            after = self.spots[one].after
            if not after:
                return False
            todo += [other for other in after if other not in seen]
            seen.update(after)
        return True

    def shared(self, first: int, second: int) -> int:
        """Return the number of loops around both nodes, without the first one's own loop,
        which all its edges leave.
        """
        mine = self.spots[first].around
        mine = mine[:-1] if self.spots[first].is_tail else mine
        count = 0
        for one, other in zip(mine, self.spots[second].around, strict=False):
            if one != other:
                break
            count += 1
        return count

    def level(self, index: int) -> int:
        """Return the number of loops around the followers of a node that leaves no loop but its own."""
        spot = self.spots[index]
        return len(spot.around) - spot.is_tail

    def going(self, index: int, way: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """Return the number of loops an outcome set stays in, and the receivers that get a live token.

        A receiver in a loop that is left gets none.
        """
        if not self.spots[index].around:
            return 0, way
        levels = [self.shared(index, other) for other in way]
        least = min(levels, default=self.level(index))
        return least, tuple(other for other, level in zip(way, levels, strict=True) if level == least)


def waits_for(join: JoinModel | MapModel | None, edges: int) -> tuple[int, int, bool]:
    """Return the live edges or items to wait for, the tolerated failures, and true if the rest is cancelled.

    0 live edges or items stand for all of them, -1 failures for a join that does not say.
    """
    if join is None:
        return 0, -1, True
    need = {"all": 0, "any": 1}.get(str(join.wait_for)) if isinstance(join.wait_for, str) else join.wait_for
    assert need is not None
    tolerated = -1
    if join.tolerated_failures is not None:
        tolerated = join.tolerated_failures
    elif join.tolerated_share is not None:
        tolerated = edges * join.tolerated_share // 100
    return need, tolerated, join.rest == "cancel"


def is_always(condition: object) -> bool:
    """Return true if the condition is written as one that always holds."""
    return isinstance(condition, str) and condition.strip() == "true"


def always(node: NodeModel, receivers: Iterable[str]) -> set[str]:
    """Return the receivers that neither `branch` nor `timeout_path` decides about,
    and that are no handlers.
    """
    decided = set(choices(node, least=False, flat=True)[0]) if node.branch is not None else set()
    decided.update(*caught_ways(node))
    if node.loop is not None:
        decided |= set(node.loop.timeout_path) - set(node.loop.break_path)
    return set(receivers) - decided


def choices(node: NodeModel, *, least: bool, flat: bool = False) -> list[tuple[str, ...]]:
    """Return the sets of receivers that a `branch` chooses one of.

    With `choose`, each name of `among` is a set if `least`, else all are one set. `flat`: all sets in one.
    """
    branch = node.branch
    assert branch is not None
    sets = [tuple(rule.then) for rule in branch.rules]
    if branch.choose is not None:
        sets = [(name,) for name in branch.among] if least else [tuple(branch.among)]
    sets.append(tuple(branch.default))
    return [tuple(name for one in sets for name in one)] if flat else sets


def _ways(node: NodeModel, receivers: Iterable[str], *, least: bool) -> list[set[str]]:
    plain = always(node, receivers)
    ways = [plain]
    if node.branch is not None:
        ways = [plain.union(names) for names in choices(node, least=least)]
    if node.loop is not None and node.loop.timeout_path:
        ways.append(set(node.loop.timeout_path))
    return ways


def least_ways(node: NodeModel, receivers: Iterable[str]) -> list[set[str]]:
    """Return sets of receivers: whatever happens when the node is done,
    those of one of them get a live token.
    """
    return _ways(node, receivers, least=True)


def most_ways(node: NodeModel, receivers: Iterable[str]) -> list[set[str]]:
    """Return sets of receivers: whatever happens when the node is done,
    only those of one set get a live token.
    """
    return _ways(node, receivers, least=False)


def caught_ways(node: NodeModel) -> list[set[str]]:
    """Return sets of receivers: when the node has failed and is caught,
    those of one of them get a live token.
    """
    return [set(rule.then) for rule in node.catch]


def members(mask: int) -> Iterator[int]:
    """Yield the numbers in a set."""
    while mask:
        last = mask & -mask
        yield last.bit_length() - 1
        mask ^= last


def in_most(masks: list[int], least: int) -> int:
    """Return the members of at least `least` of the sets."""
    if least <= 1:
        found = 0
        for mask in masks:
            found |= mask
        return found
    if least == len(masks) or least * len(masks) > _MOST_WORK:
        found = masks[0]
        for mask in masks[1:]:
            found &= mask
        return found
    counts = [0] * least
    for mask in masks:
        for index in range(least - 1, 0, -1):
            counts[index] |= counts[index - 1] & mask
        counts[0] |= mask
    return counts[-1]


# Beyond it, only nodes that are in all of the sets count: less than the truth, and never more.
_MOST_WORK = 20_000


class EndedBefore:
    """Nodes that have ended before each node of a flow, by its number."""

    def __init__(self, flow: Flow) -> None:
        self._flow = flow
        self.tolerated = _tolerated(flow)
        """The nodes whose failure does not fail the saga."""
        self.before: list[int] = []
        """For each node: those that have ended for this round, one way or another, when it begins."""
        self._early: dict[int, int] = {}
        for index, spot in enumerate(flow.spots):
            by = [self.by(before) for before in spot.before]
            self.before.append(in_most(by, len(by) - spot.need + 1 if spot.need else 1))
            if self.can_fail_early(index):
                # It may also be the first node of a loop that goes round although it has failed.
                self._early[index] = self.before[index] = in_most(by, len(by))
        self.stopped_by = self._find_stopped_by()
        """For each node: the joins that may stop it before it has begun, or while it runs."""
        self.cut = self._find_cut()
        """For nodes in loops: the place, among those around it, of the innermost
        loop that may be left before the node has ended its part in the round.
        """

    def by(self, index: int) -> int:
        """Return the nodes that have ended when this one's tokens reach its receivers."""
        return self._early.get(index, self.before[index]) | 1 << index

    def can_fail_early(self, index: int) -> bool:
        """Return true if the node is a join that may fail before all edges have arrived while the saga goes
        on.
        """
        spot = self._flow.spots[index]
        return spot.tolerated >= 0 and bool(spot.caught or self.tolerated >> index & 1)

    def _is_early(self, index: int, spot: FlowNode) -> bool:
        return (spot.need > 0 and spot.cancels) or self.can_fail_early(index)

    def _find_stopped_by(self) -> dict[int, tuple[int, ...]]:
        flow = self._flow
        joins = {index for index, spot in enumerate(flow.spots) if self._is_early(index, spot)}
        found: dict[int, tuple[int, ...]] = {}
        if not joins:
            return found
        leads_to: list[int] = [0] * len(flow.spots)
        for index in range(len(flow.spots) - 1, -1, -1):
            after = flow.spots[index].after
            if not after:
                continue
            mask = -1
            for other in after:
                mask &= leads_to[other] | (1 << other if other in joins else 0)
            leads_to[index] = mask
            stopped_by = tuple(join for join in members(mask) if not self.before[join] >> index & 1)
            if stopped_by:
                found[index] = stopped_by
        self._stop_loops(found)
        return found

    def _stop_loops(self, found: dict[int, tuple[int, ...]]) -> None:
        """Record that a join that stops the last node of a loop ends the round,
        whatever else is under way in it.
        """
        for last, (_, body) in self._flow.loops.items():
            for join in found.get(last, ()):
                for index in members(body & ~self.before[join]):
                    found[index] = (*(one for one in found.get(index, ()) if one != join), join)

    def _find_cut(self) -> dict[int, int]:
        flow = self._flow
        safe = {last: self._ended_when_left(last) for last in flow.loops}
        found: dict[int, int] = {}
        for index, spot in enumerate(flow.spots):
            for place, last in enumerate(spot.around):
                if not safe[last] >> index & 1:
                    found[index] = place
        return found

    def _ended_when_left(self, last: int) -> int:
        """Return the nodes of a loop that have certainly ended when a round ends."""
        flow = self._flow
        _, body = flow.loops[last]
        ended = self.by(last)
        for index in members(body ^ 1 << last):
            place = flow.spots[index].around.index(last)
            spot = flow.spots[index]
            if any(flow.going(index, way)[0] <= place for way in (*spot.outcomes, *spot.caught)):
                ended &= self.before[index] | 1 << index
        return ended


def _tolerated(flow: Flow) -> int:
    if all(spot.tolerated < 0 for spot in flow.spots):
        return 0
    found = leads = takes = 0  # as in core/graph/index.py
    for index in range(len(flow.spots) - 1, -1, -1):
        spot, bit = flow.spots[index], 1 << index
        is_counted = bool(spot.after) and all(leads >> other & 1 for other in spot.after)
        if is_counted and all(takes >> other & 1 for other in spot.after):
            found |= bit
        if is_counted or spot.tolerated >= 0:
            leads |= bit
        if spot.takes or found & bit:
            takes |= bit
    return found
