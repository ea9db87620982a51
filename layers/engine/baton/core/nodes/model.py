"""One request to a model, without tools. It is a step, performed in runtime/models/model_caller.py."""

from __future__ import annotations

from typing import Any

from baton.core.graph.graph import Node
from baton.core.nodes.base import Activation, Desk, Next, Run
from baton.core.nodes.task import TaskKind


class ModelKind(TaskKind):
    """A step whose tool is the engine's own."""

    name = "model"

    def begin(self, at: Activation, desk: Desk) -> Next | None:
        # That a request is over is no answer: one whose worker died before the log knew of it is made again.
        arguments = desk.arguments(at)
        return Run(arguments) if desk.may_spend(at) else None

    def node_view(self, node: Node) -> dict[str, Any]:
        return {"model": node.arguments["model"]}
