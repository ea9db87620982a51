"""The end of the saga with a result, whatever else is under way."""

from __future__ import annotations

from typing import Any

from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.nodes.base import Activation, Desk, Ended, Kind, Next


class EndKind(Kind):
    """An end. It runs nothing."""

    name = "end"
    lasts = False
    ends = True

    def template(self, node: Node) -> Any:
        return node.value

    def begin(self, at: Activation, desk: Desk) -> Next | None:
        result = desk.value(at)
        return Ended(ev.NodePassed(node=at.node.name, iteration=at.iteration, output=result, ends=True))

    def node_view(self, node: Node) -> dict[str, Any]:
        return {"value": node.value}
