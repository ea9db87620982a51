"""Loops: which nodes each is made of, which lies inside which, and the edges into them and out of them.

The bodies, and edges that a body does not allow.
What becomes of values in rounds is in available_outputs.py, loops that have no end in checks/control.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from baton.core.documents.compile.analysis.edges import Edges, catch_targets, chosen
from baton.core.documents.compile.analysis.flow import Flow, choices, members
from baton.core.documents.read import NodeModel
from baton.errors import Problem

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
            # A node that leads back is a problem told elsewhere, and no edge.
            self._check_choice(name, [other for other in rule.then if (name, other) in self._edges.written])

    def _check_choice(self, name: str, way: list[str]) -> None:
        """Report a choice that both leaves a loop and stays in it."""
        flow = self._flow
        level = {other: flow.shared(flow.at[name], flow.at[other]) for other in way}
        if len(set(level.values())) > 1:
            out, stays = min(way, key=level.__getitem__), max(way, key=level.__getitem__)
            message = f"`{out}` is outside of a loop that `{stays}` is in; they cannot be chosen together"
            hint = "a choice stays in the loop, or leaves it with all that it names"
            self._tell(self._edges.written[name, out], message, hint)
