"""A named graph of the document, which runs as a child saga: it is started by its name, and gets what it names of its starter.

What it gets besides its input, and how that is found again, is in core/graph/inner.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.core.graph.graph import Node
from baton.core.graph.inner import INPUT, name_of
from baton.core.nodes.child import ChildKind


class GraphKind(ChildKind):
    """A child workflow in all but its definition, which is that of its starter."""

    name = "subgraph"

    def changed(self, given: dict[str, Any], arguments: Mapping[str, Any]) -> dict[str, Any]:
        own = given.get(INPUT)
        return {**given, INPUT: {**own, **arguments}} if isinstance(own, dict) else given

    def node_view(self, node: Node) -> dict[str, Any]:
        shown = super().node_view(node)
        del shown["workflow"]
        return {"graph": name_of(node.workflow), **shown}
