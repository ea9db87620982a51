"""A document's nodes as numbers, in their order: the questions about
all paths through a graph are answered by it.

Which node comes before which, and which receivers get a token together.
Behind that: the edges of a document, and its loops, whose bodies not every edge may enter or leave.
Circles and names that lead nowhere are in control.py, values in rounds in available_outputs.py.
Sets of nodes are integers, one bit per node: as sets of names, a chain of 10,000 would take gigabytes.
Names and places of problems are not here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from copy import copy
from dataclasses import dataclass, replace
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import TYPE_CHECKING

from baton.core.documents.models import NodeModel, kind_of
from baton.core.documents.parts.failing import HandlersModel
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.control import JoinModel
    from baton.core.documents.parts.node import MapModel


@dataclass(slots=True)
class FlowNode:
    """One node. `need`: so many live edges, 0 for all; `tolerated` failures, -1 for none that it says.

    `outcomes`: sets of receivers; when the node is done, those of one of the sets get a live token, and maybe
    others, unless they are `exact`.
    `caught`: the same when it has failed and one of the rules of its `catch` fits; `catches_all`: one always
    does.
    `around`: the last nodes of the loops around it, outermost first.
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
        """For each last node of a loop: the first one, and the set of all of them. `Loops` fills it."""
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
    return condition is True or (isinstance(condition, str) and condition.strip() == "true")


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
    found = 0  # as in core/graph/index.py
    joins = sum(1 << index for index, spot in enumerate(flow.spots) if spot.tolerated >= 0)
    for index in range(len(flow.spots) - 1, -1, -1) if joins else ():
        after = flow.spots[index].after
        if after and all((joins | found) >> other & 1 for other in after):
            found |= 1 << index
    return found


def listed_names(place: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (JSON Pointer, name) of a field that is one name or a list of them."""
    for index, name in enumerate(names):
        yield (f"{place}/{index}" if len(names) > 1 else place), name


def chosen(name: str, node: NodeModel) -> Iterator[tuple[str, str]]:
    """Yield (JSON Pointer, name) of every node that a `branch` names."""
    if node.branch is not None:
        place = f"/nodes/{name}/branch"
        for index, rule in enumerate(node.branch.rules):
            yield from listed_names(f"{place}/rules/{index}/then", rule.then)
        yield from listed_names(f"{place}/default", node.branch.default)
        yield from listed_names(f"{place}/among", node.branch.among)


def left_by(name: str, node: NodeModel) -> Iterator[tuple[str, str]]:
    """Yield (JSON Pointer, name) of every node that `break_path` and `timeout_path` name."""
    if node.loop is not None:
        yield from listed_names(f"/nodes/{name}/loop/break_path", node.loop.break_path)
        yield from listed_names(f"/nodes/{name}/loop/timeout_path", node.loop.timeout_path)


def catch_targets(name: str, node: NodeModel) -> Iterator[tuple[str, str]]:
    """Yield (JSON Pointer, name) of every node that a `catch` names."""
    for index, rule in enumerate(node.catch):
        is_short = isinstance(rule, HandlersModel)
        place = f"/nodes/{name}/catch" if is_short else f"/nodes/{name}/catch/{index}/then"
        yield from listed_names(place, rule.then)


class Edges:
    """Forward edges between existing nodes; the back edge of a loop is none of them.

    Edges that can only be meant as something else are in `problems` and nowhere else.
    """

    def __init__(self, nodes: Mapping[str, NodeModel]) -> None:
        self._nodes = nodes
        self.problems: list[Problem] = []
        self.written: dict[tuple[str, str], str] = {}
        """Place where each edge, (sender, receiver), is first written."""
        exits: dict[tuple[str, str], str] = {}
        for name, node in nodes.items():
            for place, before in listed_names(f"/nodes/{name}/after", node.after):
                if self._is_way_back(before, name):
                    self._refuse_way_back(place, before, name)
                elif before in nodes:
                    self.written.setdefault((before, name), place)
            if node.branch is not None:
                for place, to in chosen(name, node):
                    if to in nodes:
                        self.written.setdefault((name, to), place)
            for place, to in (*left_by(name, node), *catch_targets(name, node)):
                if to in nodes and (name, to) not in self.written:
                    exits[name, to] = self.written[name, to] = place
        self._link()
        if self.circle and exits:
            self._drop_exits_that_lead_back(exits)

    def _is_way_back(self, tail: str, header: str) -> bool:
        node = self._nodes.get(tail)
        return node is not None and node.loop is not None and (node.loop.back_to or tail) == header

    def _refuse_way_back(self, place: str, tail: str, header: str) -> None:
        message = f"the loop at `{tail}` comes back here by itself"
        self.problems.append(Problem(place, message, f"take `{tail}` out of the `after` of `{header}`"))

    def _link(self) -> None:
        before: dict[str, list[str]] = {name: [] for name in self._nodes}
        after: dict[str, list[str]] = {name: [] for name in self._nodes}
        for src, dst in self.written:
            before[dst].append(src)
            after[src].append(dst)
        self.before = {name: tuple(sorted(names)) for name, names in before.items()}
        self.after = {name: tuple(sorted(names)) for name, names in after.items()}
        self.order, self.circle = self._ordered()

    def _ordered(self) -> tuple[list[str], set[str]]:
        """Return node names in the one topological order that is the same for every spelling of a document,
        and those that stand on a circle or behind one.
        """
        missing = {name: len(names) for name, names in self.before.items()}
        ready = [name for name, count in missing.items() if not count]
        heapify(ready)
        order: list[str] = []
        while ready:
            name = heappop(ready)
            order.append(name)
            for follower in self.after[name]:
                missing[follower] -= 1
                if not missing[follower]:
                    heappush(ready, follower)
        return order, missing.keys() - set(order)

    def _drop_exits_that_lead_back(self, exits: Mapping[tuple[str, str], str]) -> None:
        """Drop exits of loops and handlers that lead back, each with a problem of its own."""
        wrong = [(src, dst) for src, dst in exits if self._leads_to(dst, src, exits)]
        for src, dst in wrong:
            place = self.written.pop((src, dst))
            if place.startswith(f"/nodes/{src}/catch"):
                message = (
                    f"`{dst}` is `{src}` itself, or comes before it: a failure is handled by what comes after"
                )
                hint = "to try the same again write `retry`; to go round again, `loop`"
            else:
                message = f"`{dst}` is in the loop that this should lead out of, or comes before it"
                hint = "name a node that comes after the loop; the way back is `back_to`"
            self.problems.append(Problem(place, message, hint))
        if wrong:
            self._link()

    def _leads_to(self, first: str, last: str, without: Mapping[tuple[str, str], str]) -> bool:
        seen, look_at = {first}, [first]
        while look_at and last not in seen:
            name = look_at.pop()
            new = [other for other in self.after[name] if other not in seen and (name, other) not in without]
            seen.update(new)
            look_at += new
        return last in seen


MAX_NESTED = 32
_TOO_MANY = f"there may be {MAX_NESTED}"


class Loops:
    """The loops around each node. What cannot be a loop is in `problems`, and around no node."""

    def __init__(self, nodes: Mapping[str, NodeModel], edges: Edges, flow: Flow) -> None:
        self._nodes, self._edges, self._flow = nodes, edges, flow
        self.problems: list[Problem] = []
        self._room = MAX_NESTED * len(flow.names)
        """Nodes that the loops may have together: with more of them, one is in more loops than there may be.
        """
        for name, node in nodes.items():
            if node.loop is not None and name in flow.at and self._room >= 0:
                self._find(name, node.loop.back_to or name)
        if flow.loops:
            self._nest()
        if not self.problems:
            # Of a loop that is none, every edge in and out would be wrong.
            self._check_ways_in()
            for name in flow.names:
                self._check_ways_out(name)

    def around(self, name: str) -> tuple[str, ...]:
        """Return the last nodes of the loops around a node, outermost first."""
        return tuple(self._flow.names[index] for index in self._flow.spots[self._flow.at[name]].around)

    def _tell(self, place: str, message: str, hint: str) -> None:
        self.problems.append(Problem(place, message, hint))

    def _find(self, name: str, header: str) -> None:
        flow = self._flow
        if header not in flow.at:
            return
        first, last = flow.at[header], flow.at[name]
        if first != last and not flow.behind[last] >> first & 1:
            message = (
                f"no way leads from `{header}` to `{name}`, so that it cannot be the first node of this loop"
            )
            hint = f"let `{name}` come after `{header}`, directly or through other nodes"
            self._tell(f"/nodes/{name}/loop/back_to", message, hint)
            return
        body, look_at = 1 << first | 1 << last, [last]
        while look_at:
            index = look_at.pop()
            for before in flow.spots[index].before if index != first else ():
                if flow.behind[before] >> first & 1 and not body >> before & 1:
                    body |= 1 << before
                    look_at.append(before)
        self._room -= body.bit_count()
        if self._room < 0:
            message = f"with this one, nodes are in more than {MAX_NESTED} loops inside each other"
            self._tell(f"/nodes/{name}/loop", message, _TOO_MANY)
            return
        flow.loops[last] = first, body
        flow.spots[last].is_tail = True

    def _nest(self) -> None:
        """Put the larger loops around the smaller.
        Two that overlap have a node in common where one follows on the other.
        """
        flow = self._flow
        around: dict[int, list[int]] = {}
        size = {last: body.bit_count() for last, (_, body) in flow.loops.items()}
        for last in sorted(flow.loops, key=lambda one: (-size[one], one)):
            for index in members(flow.loops[last][1]):
                around.setdefault(index, []).append(last)
        told = set()
        deepest = max(around.values(), key=len, default=[])
        if len(deepest) > MAX_NESTED and self._room >= 0:
            message = f"this is the innermost of {len(deepest)} loops inside each other"
            self._tell(f"/nodes/{flow.names[deepest[-1]]}/loop", message, _TOO_MANY)
        for index, lasts in around.items():
            flow.spots[index].around = tuple(lasts)
            for outer, inner in pairwise(lasts):
                if flow.loops[inner][1] & ~flow.loops[outer][1] and (outer, inner) not in told:
                    told.add((outer, inner))
                    self._tell_overlap(outer, inner)

    def _tell_overlap(self, one: int, other: int) -> None:
        names, loops = self._flow.names, self._flow.loops
        both = next(members(loops[one][1] & loops[other][1]))
        message = (
            f"the loops that end at `{names[one]}` and at `{names[other]}` overlap: `{names[both]}` is in both, "
            "and neither is inside the other"
        )
        self._tell(
            f"/nodes/{names[other]}/loop", message, "let one end before the other begins, or inside it"
        )

    def _check_ways_in(self) -> None:
        flow, names = self._flow, self._flow.names
        for index, spot in enumerate(flow.spots):
            for before in spot.before if spot.around else ():
                last = next(
                    (
                        last
                        for last in spot.around
                        if not flow.loops[last][1] >> before & 1 and flow.loops[last][0] != index
                    ),
                    None,
                )
                if last is not None:
                    header = names[flow.loops[last][0]]
                    message = (
                        f"this leads from `{names[before]}` into the middle of the loop from `{header}` to "
                        f"`{names[last]}`"
                    )
                    hint = (
                        f"let `{header}` come after `{names[before]}`: a loop begins there and nowhere else"
                    )
                    self._tell(self._edges.written[names[before], names[index]], message, hint)

    def _check_ways_out(self, name: str) -> None:
        flow, node = self._flow, self._nodes[name]
        index = flow.at[name]
        level = flow.level(index)
        if not level:
            return
        by_choice = {other for _, other in (*chosen(name, node), *catch_targets(name, node))}
        for receiver in flow.spots[index].after:
            other = flow.names[receiver]
            if flow.shared(index, receiver) < level and other not in by_choice:
                last = flow.names[flow.spots[index].around[flow.shared(index, receiver)]]
                message = f"this leads out of the loop that ends at `{last}`, from `{name}` and whatever happens in it"
                hint = f"let `{other}` come after `{last}`, or let `branch` choose it"
                self._tell(self._edges.written[name, other], message, hint)
        if node.branch is not None:
            # What `choose` may name, it need not name together.
            ways = choices(node, least=False)[1 if node.branch.choose is not None else 0 :]
            for way in ways:
                self._check_choice(name, [other for other in way if other in flow.at])
        for rule in node.catch:
            # A node that leads back, or is in a circle, is a problem told elsewhere.
            there = [one for one in rule.then if one in flow.at and (name, one) in self._edges.written]
            self._check_choice(name, there)

    def _check_choice(self, name: str, way: list[str]) -> None:
        """Report a choice that both leaves a loop and stays in it."""
        flow = self._flow
        level = {other: flow.shared(flow.at[name], flow.at[other]) for other in way}
        if len(set(level.values())) > 1:
            out, stays = min(way, key=level.__getitem__), max(way, key=level.__getitem__)
            message = f"`{out}` is outside of a loop that `{stays}` is in; they cannot be chosen together"
            hint = "a choice stays in the loop, or leaves it with all that it names"
            self._tell(self._edges.written[name, out], message, hint)
