"""What the author of a workflow may not expect, and what only the deployment knows. None of it is a problem.

Belongs here: sentences about a graph. Does not belong here: problems, for which a document is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from baton.core.compile.sharing import shared_keys
from baton.core.telling import lasting

if TYPE_CHECKING:
    from baton.core.compile.source import Tools
    from baton.core.graph import Graph

MOST_NOTES = 100
_NEAR = 0.7


def notes_of(
    graph: Graph, tools: Tools, *, invocation_ms: int, workflows: Collection[str] | None = None
) -> tuple[str, ...]:
    """A sentence for each. `invocation_ms`: what a worker's invocation has; `workflows`: those that there are, by name."""
    found = [*shared_keys(graph, tools), *_too_long(graph, invocation_ms)]
    if workflows is not None:
        found += _unknown_children(graph, {*workflows, graph.name})
    return tuple(found[:MOST_NOTES])


def _too_long(graph: Graph, invocation_ms: int) -> Iterator[str]:
    for node in graph.nodes:
        if node.kind == "task" and node.timeout_ms > invocation_ms:
            yield (
                f"`{node.name}` may take {lasting(node.timeout_ms)}, and an invocation of the worker lasts "
                f"{lasting(invocation_ms)}: an attempt is cut off with it. Lower the timeout, or raise `WorkerTimeout`"
            )


def _unknown_children(graph: Graph, known: Collection[str]) -> Iterator[str]:
    for node in graph.nodes:
        child = node.workflow.partition("@")[0]
        if child and child not in known:
            near = get_close_matches(child, known, n=1, cutoff=_NEAR)
            hint = f"did you mean `{near[0]}`?" if near else "register it before a saga comes there"
            yield f"`{node.name}` starts `{child}`, and there is no workflow of that name; {hint}"
