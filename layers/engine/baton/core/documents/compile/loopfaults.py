"""What is wrong with the loops of a document: those that have no end, and edges that are meant otherwise.

Which loops there are, and what cannot be one, is in loops.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from baton.core.documents.compile.constants import always_holds
from baton.core.documents.compile.edges import chosen
from baton.core.documents.compile.flow import Flow
from baton.core.expressions import escape
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.source import Source


def check(source: Source) -> Iterator[Problem]:
    """Problems of loops: their edges in and out, and those that have no end."""
    yield from source.loops.problems
    yield from _half_meant(source)
    flow = source.flow
    left = _left(flow)
    for last in flow.loops:
        name = flow.names[last]
        loop = source.nodes[name].loop
        assert loop is not None
        place = f"/nodes/{name}/loop/while"
        if loop.timeout_path or not always_holds(source.condition(place)):
            continue
        if not source.nodes[name].catch and last not in left:
            message = "the loop has no exit: its condition always holds, and its rounds end in a failure"
            yield Problem(
                place, message, "write what ends it, a `timeout_path`, or a `branch` out of the loop"
            )


def _left(flow: Flow) -> set[int]:
    """The last nodes of the loops that another of their nodes may leave."""
    found: set[int] = set()
    for index, spot in enumerate(flow.spots):
        if spot.around:
            levels = (flow.going(index, way)[0] for way in (*spot.ways, *spot.caught))
            level = min(levels, default=len(spot.around))
            found.update(last for last in spot.around[level:] if last != index)
    return found


def _half_meant(source: Source) -> Iterator[Problem]:
    """Nodes that say they come after a loop, which then leads to them only when its rounds are used up."""
    for name, node in source.nodes.items():
        if node.loop is None:
            continue
        otherwise = {*node.loop.break_path, *(named for _, named in chosen(name, node))}
        for other in node.loop.timeout_path:
            follower = source.nodes.get(other)
            if follower is not None and name in follower.after and other not in otherwise:
                message = f"`{name}` leads here only when its rounds are used up, by its `timeout_path`"
                hint = f"take `{name}` out of `after`, or name `{other}` in its `break_path` too"
                yield Problem(f"/nodes/{escape(other)}/after", message, hint)
