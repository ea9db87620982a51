"""What stands in a graph for the calls of a tool that a model chooses: of an agent, or of a plan in place of a step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from baton.core.documents.nodes.undone import undos
from baton.core.effects.approvals import Approval
from baton.core.effects.operations import OPERATIONS, Operations, keeps_list
from baton.core.graph.graph import Node

if TYPE_CHECKING:
    from baton.core.documents.nodes.base import Compiler
    from baton.core.effects.toolspec import ToolSpec


def call_of(
    compiler: Compiler,
    kind: str,
    name: str,
    spec: ToolSpec,
    tools: Sequence[str],
    operations: Operations,
    **more: Any,
) -> Node:
    """As if a node of the document called it. `arguments` are not the model's to say."""
    asks = Approval(by_tool=spec.requires_approval, risk=spec.risk) if spec.may_ask else None
    said: dict[str, Any] = {
        "tool": spec.name,
        "arguments": (listed(operations) if keeps_list(spec) else compiler.among(spec, tools)) or None,
        "tool_version": spec.version,
        "schema_hash": spec.schema_hash,
        "effect": spec.effect,
        "verified": spec.is_verified,
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


def listed(operations: Operations) -> dict[str, Any]:
    """The argument that says which operations may be called, where some are listed."""
    return {OPERATIONS: {api: list(ids) for api, ids in operations.items()}} if operations else {}
