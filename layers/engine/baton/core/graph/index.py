"""Facts derived from the shape of a graph alone: rounds of loops, edges out of them, joins that may cancel.

They are derived once in a process.
Tokens and values are in core/decide/program.py and core/decide/context.py.
The rules of documents are in compile/.
"""

from __future__ import annotations

from collections.abc import Mapping

from baton.core.graph.graph import Graph, Node


class GraphIndex:
    """The edges of a graph, and the nodes they lead to. Immutable after construction."""

    def __init__(self, graph: Graph) -> None:
        self.nodes: Mapping[str, Node] = {node.name: node for node in graph.nodes}
        self.tails_of: dict[str, frozenset[str]] = {}
        """For each header: the last nodes of the loops that begin with it."""
        self.body: dict[str, frozenset[str]] = {}
        """For each last node of a loop: the nodes of the loop."""
        self.header: dict[str, str] = {}
        """For each last node of a loop: the first one."""
        self.exits: dict[str, tuple[tuple[str, str], ...]] = {}
        """For each last node of a loop: the edges that leave this loop, and none around it."""
        for tail in (node for node in graph.nodes if node.loop is not None):
            assert tail.loop is not None
            header = self.header[tail.name] = tail.loop.back_to
            self.tails_of[header] = self.tails_of.get(header, frozenset()) | {tail.name}
            self.body[tail.name] = frozenset(node.name for node in graph.nodes if tail.name in node.loops)
            self.exits[tail.name] = ()
        self.inner: dict[str, tuple[tuple[str, str], ...]] = {}
        """For each node: its edges that leave no loop."""
        for node in graph.nodes:
            self._sort_edges(node)
        self.handlers = {
            node.name: frozenset(to for rule in node.catch for to in rule.then)
            for node in graph.nodes
            if node.catch
        }
        """For each node that catches failures: all that they can lead to."""
        self._from_handlers: dict[tuple[str, ...], frozenset[str]] = {}
        self.settles_joins_one_by_one = any(
            node.join and (node.join.need or node.join.tolerated >= 0) for node in graph.nodes
        )
        """True if some join can become ready before every edge has arrived."""
        self.can_fail = self._find_tolerated(graph)
        self.stopped_by = self._find_rests(graph)

    def shared(self, first: str, second: str) -> int:
        """Return the number of loops around both nodes."""
        count = 0
        for mine, other in zip(self.nodes[first].loops, self.nodes[second].loops, strict=False):
            if mine != other:
                break
            count += 1
        return count

    def from_handlers(self, handlers: tuple[str, ...]) -> frozenset[str]:
        """Return the handlers, and all nodes to which a path leads from one of them."""
        if handlers not in self._from_handlers:
            found = set(handlers)
            for node in self.nodes.values():
                if not found.isdisjoint(node.before):
                    found.add(node.name)
            self._from_handlers[handlers] = frozenset(found)
        return self._from_handlers[handlers]

    def arriving(self, src: str, dst: str, iteration: tuple[int, ...]) -> tuple[int, ...]:
        """Return the iteration of the receiver of a forward edge whose sender is in `iteration`."""
        depth = len(self.nodes[dst].loops)
        if not depth:
            return ()
        shared = self.shared(src, dst)
        return iteration[:shared] + (0,) * (depth - shared)

    def again(self, tail: str, iteration: tuple[int, ...]) -> tuple[str, tuple[int, ...]]:
        """Return header and iteration of the round after this one of the last node of a loop."""
        loop = self.nodes[tail].loop
        assert loop is not None
        inner = len(self.nodes[loop.back_to].loops) - len(iteration)
        return loop.back_to, (*iteration[:-1], iteration[-1] + 1) + (0,) * inner

    def _sort_edges(self, node: Node) -> None:
        inner = []
        for receiver in node.after:
            level = self.shared(node.name, receiver) if node.loops else 0
            if level < len(node.loops):
                self.exits[node.loops[level]] += ((node.name, receiver),)
            else:
                inner.append((node.name, receiver))
        self.inner[node.name] = tuple(inner)

    def _find_tolerated(self, graph: Graph) -> frozenset[str]:
        """Return the nodes from which every path leads to a join that counts failures."""
        found: set[str] = set()
        joins = {node.name for node in graph.nodes if node.join is not None and node.join.tolerated >= 0}
        for node in reversed(graph.nodes) if joins else ():
            if node.after and (joins | found).issuperset(node.after):
                found.add(node.name)
        return frozenset(found)

    def _find_rests(self, graph: Graph) -> dict[str, tuple[tuple[str, int, int], ...]]:
        """Return, for each node, the joins that stop it when they fire without it.
        Those to which every path leads.

        With the number of loops around the edges into the join, and of those that begin with it: its slot is
        that of the node's own rounds of the former, in the first round of the latter.
        """
        found: dict[str, tuple[tuple[str, int, int], ...]] = {}
        for join in graph.nodes:
            if join.join is None or join.join.rest != "cancel":
                continue
            if join.join.need == 0 and join.join.tolerated < 0:
                continue  # never ends before every edge has spoken
            begins = sum(self.header[tail] == join.name for tail in join.loops)
            depth, rest = len(join.loops) - begins, {join.name}
            for node in reversed(graph.nodes):
                is_inside = node.loops[:depth] == join.loops[:depth]
                if node.after and is_inside and node.name != join.name and rest.issuperset(node.after):
                    rest.add(node.name)
                    found[node.name] = (*found.get(node.name, ()), (join.name, depth, begins))
        return found
