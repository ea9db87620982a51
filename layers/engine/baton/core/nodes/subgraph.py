"""A named graph of the document, which runs as a child saga: it is started by its name, and gets values of
its starter.

Its values besides its input, and their lookup, are in core/graph/graph.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.core.graph.graph import INPUT, Node, graph_name
from baton.core.log import events as ev
from baton.core.nodes.base import Activation, NodeContext
from baton.core.nodes.child import ChildKind


class GraphKind(ChildKind):
    """Kind of a node that runs a named graph: a child workflow whose definition is that of its starter."""

    name = "subgraph"
    shown = "graph"

    def given(
        self, at: Activation, context: NodeContext, changes: Mapping[str, Any]
    ) -> tuple[ev.Value, dict[str, ev.Value]]:
        given, passed = context.started(at)
        if not changes:
            return given, passed
        own = context.content(at, passed[INPUT]) if INPUT in passed else given.v[INPUT]
        if not isinstance(own, dict):
            return given, passed
        rest = {name: value for name, value in passed.items() if name != INPUT}
        return ev.Value(v={**given.v, INPUT: {**own, **changes}}), rest

    def node_view(self, node: Node) -> dict[str, Any]:
        shown = super().node_view(node)
        del shown["workflow"]
        return {"graph": graph_name(node.workflow), **shown}
