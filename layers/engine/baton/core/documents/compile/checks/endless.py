"""Graphs of a document that start each other whatever happens: no saga of them can be complete.

One that starts itself is found with its node (compile/kinds.py). A node that has a `when`, is behind a `branch`, runs for each item of a list or whose
failure is caught need not start anything. Nor need one, where the author has an `end` or a `fail` that does not certainly come after it. A
recursion that is missed here ends at the limit of the depth.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from baton.core.documents.compile.analysis.source import Source
from baton.core.graph.inner import name_of
from baton.errors import Problem


def endless(graphs: Sequence[tuple[str, Source | None]]) -> Iterator[tuple[str, Problem]]:
    """A problem for each circle of two graphs or more, at the first graph of it."""
    starts = {name: dict(_starts(source)) for name, source in graphs if name and source is not None}
    told = set[str]()
    for name in starts:
        circle = [] if name in told else _circle(starts, name)
        if len(circle) < 2:
            continue
        told |= {*circle}
        through = ", ".join(f"`{one}`" for one in circle[1:])
        message = f"every saga of this graph would start another one through {through}, without end"
        hint = "let `when` or a `branch` in one of these graphs decide whether it goes on"
        yield name, Problem(f"/nodes/{starts[name][circle[1]]}/graph", message, hint)


def _starts(source: Source) -> Iterator[tuple[str, str]]:
    """The graphs that it starts whatever happens, with the node that does."""
    for name, node in source.nodes.items():
        graph = name_of(source.kinds[name].starts(node))
        if (
            graph
            and node.map is None
            and source.produced is not None
            and source.produced.has_at_every_end(name)
        ):
            yield graph, name


def _circle(starts: Mapping[str, Mapping[str, str]], first: str) -> list[str]:
    """The shortest way from a graph back to itself; empty for none."""
    ways = [[first]]
    seen = set[str]()
    for way in ways:
        for graph in starts.get(way[-1], ()):
            if graph == first:
                return way
            if graph not in seen:
                seen.add(graph)
                ways.append([*way, graph])
    return []
