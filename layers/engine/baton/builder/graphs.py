"""The graphs that a workflow names: each is built as a workflow, and stands in the document of the one that starts it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Protocol, TypeVar

from baton.builder.values import Collector


class Named(Protocol):
    """A workflow, as far as it is a graph of another one."""

    name: str
    graphs: Any
    """Those that it starts, by name."""


N = TypeVar("N", bound=Named)


def graphs_of(
    made: Collector, graphs: Mapping[str, N], build: Callable[[N], tuple[Collector, dict[str, Any]]]
) -> dict[str, Any]:
    """The graphs of a document by name, and those that they start themselves. What is wrong with them is noted where they stand."""
    found: dict[str, Any] = {}
    todo = list(graphs.values())
    while todo:
        graph = todo.pop(0)
        if graph.name in found:
            continue
        own, value = build(graph)
        place = f"/graphs/{graph.name}"
        made.problems += [replace(one, path=place + one.path) for one in own.problems]
        made.stand_ins |= {place + one for one in own.stand_ins}
        found[graph.name] = {key: item for key, item in value.items() if key != "name"}
        todo += graph.graphs.values()
    return found
