"""One request to a model, without tools. It is a step; how it is performed is in runtime/model_caller.py."""

from __future__ import annotations

from typing import Any

from baton.core.graph.graph import Node
from baton.core.nodes.task import TaskKind


class ModelKind(TaskKind):
    """A step whose tool is the engine's own."""

    name = "model"

    def node_view(self, node: Node) -> dict[str, Any]:
        return {"model": node.arguments["model"]}
