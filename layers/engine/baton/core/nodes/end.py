"""The end of the saga with a result, whatever else is under way."""

from __future__ import annotations

from typing import Any

from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.nodes.base import Activation, Ended, Kind, Next, NodeContext


class EndKind(Kind):
    """Kind of a node that ends the saga. It runs nothing."""

    name = "end"
    lasts = False
    ends = True

    def template(self, node: Node) -> Any:
        return node.value

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        result = context.value(at)
        return Ended(ev.NodePassed(**at.place.fields, output=result, ends=True))

    def node_view(self, node: Node) -> dict[str, Any]:
        return {"value": node.value}
