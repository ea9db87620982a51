"""Display of a map.

A map is no kind of its own in documents: `map` runs a node of another kind once for each item of a list.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from baton.core.documents.nodes.base import NodeDocument


class Map(NodeDocument):
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
