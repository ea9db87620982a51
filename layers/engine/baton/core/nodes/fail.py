"""The end of the saga as failed, because its author says so."""

from __future__ import annotations

from typing import Any

from baton.core.expressions import as_text
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.nodes.base import Activation, Failed, Kind, Next, NodeContext, UnfitError


class FailKind(Kind):
    """Kind of a node that fails the saga without an attempt: no reaction follows."""

    name = "fail"
    lasts = False
    ends = True

    def template(self, node: Node) -> Any:
        return node.value["message"]

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        said = at.node.value
        try:
            message = as_text(context.value(at).v)
        except UnfitError as error:
            message = f"its message cannot be made: {error}"
        failure = ev.failed_with(said["code"], message, at.node.name)
        return Failed(ev.Failure(failure.code, failure.message, failure.node, said["class"]))

    def node_view(self, node: Node) -> dict[str, Any]:
        return dict(node.value)
