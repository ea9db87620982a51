"""A value that is made of others, at once. Documents call it `value`, graphs and logs `pass`."""

from __future__ import annotations

from typing import Any

from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.nodes.base import Activation, Done, Kind, Next, NodeContext


class ValueKind(Kind):
    """Kind of a node that gives a value. It runs nothing."""

    name = "pass"
    shown = "value"
    lasts = False

    def template(self, node: Node) -> Any:
        return node.value

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        output = context.value(at)
        return Done(ev.NodePassed(**at.place.fields, output=output))

    def node_view(self, node: Node) -> dict[str, Any]:
        return {"value": node.value}
