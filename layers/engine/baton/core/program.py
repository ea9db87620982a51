"""What a process derives once from a graph: lookups, parsed templates, and who can still read what.

Sets of nodes are integers, one bit per node, so that "can a later step still read this?" costs the
tokens in flight and not the nodes of the graph.
"""

from __future__ import annotations

from baton.core.expressions import Template, compile_template
from baton.core.graph import Graph, Node
from baton.core.state import node_of


class Program:
    """A graph made ready to run. Immutable after construction."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.nodes: dict[str, Node] = {node.name: node for node in graph.nodes}
        self.entry = tuple(node.name for node in graph.nodes if not node.before)
        self.joins: dict[str, int] = {node.name: len(node.before) for node in graph.nodes}
        self.arguments: dict[str, Template] = {
            node.name: compile_template(node.arguments) for node in graph.nodes if node.kind != "wait"
        }
        self.output = compile_template(graph.output)
        self._bit = {node.name: 1 << index for index, node in enumerate(graph.nodes)}
        self._ahead = self._reach()
        self._readers = self._find_readers()
        self._for_output = frozenset(path.node for path in self.output.paths if path.node)

    def _reach(self) -> dict[str, int]:
        """For each node: itself and all that can run after it."""
        ahead: dict[str, int] = {}
        for node in reversed(self.graph.nodes):
            mask = self._bit[node.name]
            for follower in node.after:
                mask |= ahead[follower]
            ahead[node.name] = mask
        return ahead

    def _find_readers(self) -> dict[str, int]:
        readers = dict.fromkeys(self.nodes, 0)
        for name, template in self.arguments.items():
            for path in template.paths:
                if path.node:
                    readers[path.node] |= self._bit[name]
        return readers

    def ahead_of(self, slots: list[str]) -> int:
        """Every node that can still run when these slots hold the tokens in flight."""
        mask = 0
        for slot in slots:
            mask |= self._ahead[node_of(slot)[0]]
        return mask

    def is_needed(self, node: str, ahead: int) -> bool:
        """Whether the output of `node` can still be read."""
        return node in self._for_output or bool(self._readers[node] & ahead)
