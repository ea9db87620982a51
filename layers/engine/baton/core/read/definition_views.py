"""What the outside sees of a definition: its shape, the graphs that its document names, and its failure handler.

Everything that draws a workflow draws this: `baton check`, `baton workflows`, the console.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from baton.core.graph.graph import Cap, Graph, Handler, Node
from baton.core.graph.inner import name_of
from baton.core.money import MICRO
from baton.core.nodes.base import Kinds
from baton.core.nodes.registry import KINDS
from baton.core.read.control_views import control_view
from baton.core.read.risks import rules_of

UNITS: Final = {"wall_time": "wall_time_ms", "cost": "cost_usd"}


def graph_view(graph: Graph, kinds: Kinds = KINDS) -> dict[str, Any]:
    """A workflow's shape: what it takes, its nodes in an order in which they can run, its edges, and those of its named graphs."""
    return {
        "input": graph.input_schema,
        **_shape(graph, kinds),
        "limits": _limits(graph.limits),
        "risk": rules_of(graph),
        "graphs": [{"name": name, **_shape(inner, kinds)} for name, inner in sorted(graph.graphs.items())],
        "failure_handler": None if graph.handler is None else _handler(graph.handler),
    }


def _shape(graph: Graph, kinds: Kinds) -> dict[str, Any]:
    nodes = [_node_view(node, kinds) for node in graph.nodes]
    if graph.risk == ():  # no call is risky then
        for shown in nodes:
            if shown.get("approval") == "by_risk":
                del shown["approval"]
    return {"nodes": nodes, "edges": _edges(graph)}


def _handler(handler: Handler) -> dict[str, Any]:
    graph = name_of(handler.workflow)
    return {
        "workflow": None if graph else handler.workflow,
        "graph": graph or None,
        "on_cancel": handler.on_cancel,
    }


def _edges(graph: Graph) -> list[dict[str, Any]]:
    """The edges by their receivers, with what decides whether they are taken; a loop's back edge behind them."""
    nodes = {node.name: node for node in graph.nodes}
    forward = [
        {"from": before, "to": node.name, "kind": _kind(nodes[before], node.name)}
        for node in graph.nodes
        for before in node.before
    ]
    back = [(node.name, node.loop.back_to) for node in graph.nodes if node.loop is not None]
    return [*forward, *({"from": tail, "to": header, "kind": "again"} for tail, header in back)]


def _kind(sender: Node, receiver: str) -> str:
    if sender.branch is not None and receiver in sender.branch.targets:
        return "branch"
    if any(receiver in rule.then for rule in sender.catch):
        return "catch"
    if sender.loop is not None and receiver in sender.loop.break_path:
        return "break"
    return "timeout" if sender.loop is not None and receiver in sender.loop.timeout_path else "after"


def _limits(limits: Mapping[str, Cap]) -> dict[str, Any]:
    """Limits by name, with their unit where they have one."""
    shown: dict[str, Any] = {}
    for name, cap in limits.items():
        shown[UNITS.get(name, name)] = cap_view(name, cap)
    return shown


def cap_view(name: str, cap: Cap) -> dict[str, Any]:
    return {"most": cap.most / MICRO if name == "cost" else cap.most, "then": cap.then}


def _node_view(node: Node, kinds: Kinds) -> dict[str, Any]:
    shown: dict[str, Any] = {"name": node.name, "kind": node.kind}
    if node.tool:
        shown |= {"tool": node.tool, "tool_version": node.tool_version, "effect": node.effect}
    if node.timeout_ms:
        shown["timeout_ms"] = node.timeout_ms
    shown |= kinds[node.kind].node_view(node)
    if node.undo:
        shown["undo"] = {tool: undo.step.tool for tool, undo in node.undo.items()}
        if unverified := [undo.step.tool for undo in node.undo.values() if undo.in_doubt]:
            shown["unverified"] = unverified
    if node.loops:
        shown["loops"] = list(node.loops)
    if node.output_schema is not None:
        shown["output_schema"] = node.output_schema
    if node.limits:
        shown["limits"] = _limits(node.limits)
    return shown | control_view(node)
