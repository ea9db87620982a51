"""What stands in a graph for the calls of a tool that a model chooses: of an agent, or of a plan in place of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from baton.core.documents.nodes.undone import undos
from baton.core.effects.approvals import Approval
from baton.core.graph.graph import Node

if TYPE_CHECKING:
    from baton.core.documents.nodes.base import Compiler
    from baton.core.effects.toolspec import ToolSpec


def call_of(
    compiler: Compiler, kind: str, name: str, spec: ToolSpec, tools: Sequence[str], **more: Any
) -> Node:
    """As if a node of the document called it. `arguments` are not the model's to say."""
    asks = Approval(by_tool=spec.requires_approval, risk=spec.risk) if spec.may_ask else None
    said: dict[str, Any] = {
        "tool": spec.name,
        "arguments": compiler.among(spec, tools) or None,
        "tool_version": spec.version,
        "schema_hash": spec.schema_hash,
        "effect": spec.effect,
        "timeout_ms": spec.timeout_ms,
        "domain": spec.domain,
        "cost": spec.cost,
        "approval": asks,
        **compiler.remedies(spec),
    }
    said["undo"] = undos(
        compiler, kind, name, spec, others=[way.tool for way in said["ways"] if way.tool and not way.first]
    )
    return Node(name=name, kind=kind, **{**said, **more})
