"""A toy kind: a node that does the same for each of several items, at once; by its tool, or by waiting for their signals.

It stands for what maps and agents need of the protocol. Nothing but this file knows it; how it is written is in each_document.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.core.decide.program import Program
from baton.core.graph.graph import Graph, Node
from baton.core.log import events as ev
from baton.core.log.work import Open
from baton.core.nodes.base import STEP, Activation, Done, Kind, Next, NodeContext, Opened, Run, Spread
from baton.core.nodes.registry import KINDS


class EachKind(Kind):
    """`value` names the items; the node gives what each of them gave."""

    name = "each"
    load = STEP
    has_attempts = True

    def template(self, node: Node) -> Any:
        return {"items": node.value, "with": node.arguments}

    def begin(self, at: Activation, context: NodeContext) -> Next | None:
        given = context.arguments(at)
        if not at.place.item:
            return Spread(tuple(given["items"]))
        if at.node.tool:
            return Run({**(given["with"] or {}), "item": at.place.item})
        return Opened(
            ev.WaitOpened(
                node=at.node.name,
                iteration=at.place.iteration,
                item=at.place.item,
                signal=at.place.item,
                until=None if at.node.wait_ms is None else context.now + at.node.wait_ms,
            )
        )

    def resume(self, at: Activation, work: Open, context: NodeContext) -> Next | None:
        for one in context.state.signals:
            if one.name == work.signal:
                return Done(
                    ev.WaitClosed(
                        node=at.node.name,
                        iteration=at.place.iteration,
                        item=at.place.item,
                        by=one.key,
                        output=one.payload,
                    )
                )
        return None

    def gather(
        self, at: Activation, items: Mapping[str, ev.Value | None], context: NodeContext
    ) -> Next | None:
        if None in items.values():
            return None
        output = ev.Value(v={name: value.v for name, value in items.items() if value is not None})
        return Done(ev.NodePassed(node=at.node.name, iteration=at.place.iteration, output=output))

    def node_view(self, node: Node) -> dict[str, Any]:
        return {"items": node.value}


KINDS_AND_EACH = {**KINDS, "each": EachKind()}


def each(name: str, *items: str, **more: Any) -> Node:
    return Node(name=name, kind="each", value=list(items), **more)


def program(*nodes: Node, **more: Any) -> Program:
    """A program of these nodes, which stand in a topological order."""
    return Program(Graph(name="w", nodes=nodes, **more), KINDS_AND_EACH)
