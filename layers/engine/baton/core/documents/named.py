"""The shape of a named graph: nodes of a document that run as a saga of their own where a node, or the failure handler, names them.

What such a graph has of its document, and what it sees of the node that starts it, is in compile/checks/named.py.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field
from pydantic.types import JsonValue

from baton.core.documents.nodes.node_model import NodeModel
from baton.core.documents.parts.bounds import Limits
from baton.core.documents.parts.fields import MAX_NODES, Duration, Given, Model, NodeName, Value


class GraphModel(Model):
    """Nodes that run as a saga of their own. Retries, reactions, policies, schemas, rules of risk and allowed tools are the document's."""

    description: str = Field(default="", description="What it is for. Changes nothing of how it runs.")
    input: Annotated[dict[str, JsonValue] | None, Given] = Field(
        default=None, description="JSON Schema of its input. Without it any input is accepted."
    )
    timeout: Annotated[Duration | None, Given] = Field(
        default=None, description="The longest time from its start to its end, after which it fails."
    )
    limits: Limits = Field(default_factory=dict, description="How far it may go.")
    nodes: dict[NodeName, NodeModel] = Field(
        min_length=1, max_length=MAX_NODES, description="The nodes by name."
    )
    output: Value = Field(
        default=None,
        description="Its result, once every node has ended: the output of the node that names it.",
    )
