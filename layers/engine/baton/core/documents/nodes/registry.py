"""The kinds of node that documents have, in the order in which they are shown.
The only file that imports them.

What is made of the list is in model.py, from the time that it is imported.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from baton.core.documents.nodes.agent import Agent
from baton.core.documents.nodes.base import NodeDocument
from baton.core.documents.nodes.child import Child
from baton.core.documents.nodes.end import End
from baton.core.documents.nodes.fail import Fail
from baton.core.documents.nodes.human import Human
from baton.core.documents.nodes.model import AskedModel
from baton.core.documents.nodes.subgraph import SubGraph
from baton.core.documents.nodes.task import Task
from baton.core.documents.nodes.value import ValueNode
from baton.core.documents.nodes.wait import Wait

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
    Agent(),
]
SIMPLEST = Task.key
"""The key of the kind that a name in place of a node most likely means."""
HOLDER = ValueNode.key
"""Of a node that can stand in for another: it takes any value and starts nothing."""
STAND_IN: Mapping[str, Any] = {Wait.key: {"for": 1}}
"""A node that can stand in for another of which nothing is known."""
