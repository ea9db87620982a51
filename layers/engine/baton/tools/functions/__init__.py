"""Workflows that are Python functions: their declaration, their event loop, and how they are run."""

from __future__ import annotations

from typing import Any

from baton.core.graph.graph import Graph
from baton.ports.functions import FunctionFacts, FunctionSession
from baton.tools.define import Registry


class ApplicationFunctions:
    """The workflow functions of a registry. What runs them is imported with the first one."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._known: dict[Any, Any] = {}

    def complete(self, graph: Graph) -> Graph:
        """Return a graph with the tools that the deployed code of its functions names, too."""
        for node in graph.nodes:
            tool = None if node.function is None else self._registry.get(node.function.name)
            if tool is not None and node.function is not None and tool.spec.calls is not None:
                known = {one.tool for one in node.function.calls}
                if not known.issuperset(tool.spec.calls):
                    from baton.tools.functions.newer import with_newer_calls  # after a deploy of other code

                    graph = with_newer_calls(graph, node, tool, self._registry)
        return graph

    def open(self, name: str, arguments: Any, facts: FunctionFacts) -> FunctionSession:
        """Make a session of a function. Raises `StepFailure`."""
        from baton.tools.functions.run import session  # few applications have one

        return session(self._registry, self._known, name, arguments, facts)
