"""The kinds of node that documents have, in the order in which they are shown.
The only file that imports them. When documents/models.py is imported, it makes the model of a node of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from baton.core.documents.nodes.agent import AskedAgent
from baton.core.documents.nodes.base import NodeDocument
from baton.core.documents.nodes.child import Child, SubGraph
from baton.core.documents.nodes.end import End, Fail
from baton.core.documents.nodes.function import Function
from baton.core.documents.nodes.human import Human
from baton.core.documents.nodes.model import AskedModel
from baton.core.documents.nodes.task import Task
from baton.core.documents.nodes.value import ValueNode
from baton.core.documents.nodes.wait import Wait


class Map(NodeDocument):
    """Display of a map. It is no kind of its own: `map` runs a node of another kind for each item."""

    kind = "map"
    key = "map"
    title = "Map"
    description = "Does a node once for each item of a list."
    icon = "≡"
    outline = ("[[", "]]")
    example: ClassVar[Mapping[str, Any]] = {"map": "${input.guests}", "tool": "mail.send"}

    def summary(self, node: Mapping[str, Any], span: Callable[[int | None], str]) -> str:
        of = node.get("tool") or next(
            (f"{one} {node[one]}" for one in ("workflow", "graph") if one in node), node.get("of", "")
        )
        return f"{of} for each of {node.get('over')}, {node.get('at_once')} at a time"


NODE_TYPES: list[NodeDocument] = [
    Task(),
    Wait(),
    Child(),
    SubGraph(),
    ValueNode(),
    Fail(),
    End(),
    Human(),
    AskedModel(),
    AskedAgent(),
    Function(),
]
SIMPLEST = Task.key
"""The key of the kind that a name in place of a node most likely means."""
HOLDER = ValueNode.key
"""Of a node that can stand in for another: it takes any value and starts nothing."""
STAND_IN: Mapping[str, Any] = {Wait.key: {"for": 1}}
"""A node that can stand in for another of which nothing is known."""
