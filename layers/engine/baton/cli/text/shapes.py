"""A workflow as the API describes it, as boxes to draw and as text.

How they are laid out is in graph.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.cli.text.graph import Box, Part, Shape
from baton.core.graph.inner import name_of, starter_of
from baton.words.text import counted, plain, span


def shape_of(workflow: Mapping[str, Any]) -> Shape:
    """The graph of `GET /workflows/{name}`, the graphs that its document names, and its failure handler."""
    parts = [Part("", boxes(workflow))]
    parts += [Part(plain(str(one["name"])), boxes(one)) for one in workflow.get("graphs", ())]
    handler = workflow.get("failure_handler") or {}
    graph = str(handler.get("graph") or "")
    return Shape(parts, plain(handler_words(workflow)), plain(graph))


def handler_words(workflow: Mapping[str, Any]) -> str:
    """What is started when a saga has failed for good; empty for nothing."""
    if not (handler := workflow.get("failure_handler")):
        return ""
    what = f"graph {handler['graph']}" if handler["graph"] else f"workflow {handler['workflow']}"
    return what + (", also when it was cancelled" if handler["on_cancel"] else "")


def named(workflow: str) -> str:
    """A workflow, or a graph of one as what it is."""
    graph = name_of(workflow)
    return f"{workflow}, the graph {graph} of {starter_of(workflow)}" if graph else workflow


def boxes(workflow: Mapping[str, Any]) -> list[Box]:
    """The boxes of `nodes` and `edges` as `GET /workflows/{name}` gives them, in their order."""
    before: dict[str, list[tuple[str, str]]] = {}
    back: dict[str, str] = {}
    for edge in workflow["edges"]:
        sender, receiver, kind = str(edge["from"]), str(edge["to"]), str(edge.get("kind", "after"))
        if kind == "again":
            back[sender] = receiver
        else:
            before.setdefault(receiver, []).append((sender, kind))
    from baton.core.documents.nodes.node_model import kind_named  # pydantic is for those who draw

    found = []
    for node in workflow["nodes"]:
        name = str(node["name"])
        edges = before.get(name, ())
        found.append(
            Box(
                plain(name),
                str(node["kind"]),
                plain(kind_named(str(node["kind"])).summary(node, span)),
                tuple(sender for sender, _ in edges),
                joins=_joins(node, len(edges)),
                note=plain(_note(node)),
                edges=tuple(kind for _, kind in edges),
                back=back.get(name, ""),
                starts=plain(str(node.get("graph") or "")),
            )
        )
    return found


def _joins(node: Mapping[str, Any], count: int) -> str:
    """What a join waits for, in brackets, where that is not all of its edges or a failure is borne."""
    join = node.get("join") or {}
    need, tolerated = join.get("wait_for", "all"), join.get("tolerated_failures")
    words = [] if need == "all" else ["any" if need == 1 else f"{need} of {count}"]
    words += [] if tolerated is None else [f"{tolerated} may fail"]
    return f" ({', '.join(words)})" if words else ""


def _note(node: Mapping[str, Any]) -> str:
    """When it runs, where its branch leads, where a failure leads, and how its loop goes on."""
    parts = [f"if {_condition(node['when'])}"] if node.get("when") else []
    if branch := node.get("branch"):
        ways = [", ".join(rule["then"]) for rule in branch["rules"]] or list(branch["among"])
        ways += [f"else {', '.join(branch['default'])}"] if branch["default"] else []
        parts.append(f"? {' | '.join(ways)}")
    if catch := node.get("catch"):
        parts.append(f"! {' | '.join(', '.join(rule['then']) for rule in catch)}")
    if loop := node.get("loop"):
        late = f", then {', '.join(loop['timeout_path'])}" if loop["timeout_path"] else ""
        parts.append(f"↺ {loop['back_to']}, at most {counted(loop['max_iterations'], 'round')}{late}")
    return "  ".join(parts)


def _condition(condition: Mapping[str, Any]) -> str:
    """An expression as it was written; of another condition, its kind."""
    return " ".join(str(condition.get("expression") or condition.get("is")).split())
