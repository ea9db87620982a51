"""Tools that the deployed code of a function names and that its saga's graph does not have.

In a file of its own, because it needs the compiler, which a worker loads after a deploy of other code only.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from baton.core.documents.compile import compile_document
from baton.core.graph.graph import Graph, Node
from baton.tools.define import Registry, Tool
from baton.tools.functions.define import document_of


def with_newer_calls(graph: Graph, node: Node, tool: Tool, registry: Registry) -> Graph:
    """Return a graph whose function may also call the tools that its deployed code names.

    A tool that it was registered with stays as it was.
    """
    parts = node.function
    assert parts is not None, "the caller has looked"
    (newest,) = compile_document(msgspec.json.encode(document_of(tool)).decode(), registry.specs()).nodes
    assert newest.function is not None, "it runs this function"
    known = {one.tool for one in parts.calls}
    more = (replace(one, name=node.name) for one in newest.function.calls if one.tool not in known)
    parts = replace(parts, calls=(*parts.calls, *more))
    after = replace(node, function=parts)
    return replace(graph, nodes=tuple(after if one is node else one for one in graph.nodes))
