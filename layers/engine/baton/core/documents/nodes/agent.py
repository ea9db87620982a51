"""How an agent is written: a model and the tools that it may call. This version cannot run it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from pydantic import Field

from baton.core.documents.nodes.base import FAILING, Compiler
from baton.core.documents.nodes.planned import Loose, Planned, like
from baton.core.documents.parts.fields import Given, ToolPatterns
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.parts.node import NodeModel


class _Shape(Loose):
    model: Annotated[str | None, Given] = None
    tools: Annotated[ToolPatterns | None, Given] = None


class Agent(Planned):
    kind = "agent"
    key = "agent"
    title = "Agent"
    description = "A model that works with tools until it has an answer; this version cannot run it."
    own = ("with", "timeout", *FAILING)
    example: ClassVar[Mapping[str, Any]] = {
        "agent": {"model": "a-model", "tools": ["table.search"], "instructions": "Find a table."}
    }
    field = (
        Annotated[like(_Shape, "agentOf") | None, Given],
        Field(default=None, description="The model, and the tools that it may call."),
    )
    definitions: ClassVar[Mapping[str, dict[str, Any]]] = {
        "agentOf": {
            "type": "object",
            "properties": {
                "model": {"description": "Name of the model.", "type": "string"},
                "tools": {"description": "The tools that it may call.", "$ref": "#/$defs/toolPatterns"},
            },
        }
    }
    chooses = True

    def check(self, compiler: Compiler, name: str, node: NodeModel) -> Iterator[Problem]:
        """An agent chooses its tools itself: all that it may call have to be allowed."""
        yield from super().check(compiler, name, node)
        tools = self.of(node).get("tools") or []
        names = (
            [tools]
            if isinstance(tools, str)
            else [str(tool) for tool in tools]
            if isinstance(tools, list)
            else []
        )
        yield from compiler.allows(f"/nodes/{name}/agent/tools", names)
