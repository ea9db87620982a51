"""The kinds of node: what each is for, which fields it has, an example. The one list that all others follow.

Belongs here: what is said of kinds. Does not belong here: the shape of a field (definition.py), its JSON Schema
(docschema.py), what a node does when its turn comes (decide.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class NodeType(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of node.

    `kind` is its name in graphs and logs; `key` is the field of a document's node that makes it one, and
    `fields` are the others it may have. `refusal` is said of any other field that a node can have.
    `example` is such a node as it stands in a document.
    """

    kind: str
    key: str
    title: str
    description: str
    fields: tuple[str, ...]
    refusal: str = ""
    example: Mapping[str, Any]


NODE_TYPES = (
    NodeType(
        kind="task",
        key="tool",
        title="Task",
        description="Runs a tool, a Python function of the application, in a worker. Its output is what the tool "
        "returns. A failed attempt fails the saga; an attempt cut off by the end of an invocation is tried again.",
        fields=("with", "after", "timeout", "description"),
        example={"tool": "table.hold", "with": {"party": 4, "user": "${saga.user}"}, "timeout": "10s"},
    ),
    NodeType(
        kind="wait",
        key="wait",
        title="Wait",
        description="Waits for a time, or for a signal and at most a time. No invocation runs meanwhile. Its output is "
        "the payload of the signal, or null when the time ran out.",
        fields=("after", "description"),
        refusal="a wait takes neither `with` nor `timeout` of the node; use wait.timeout",
        example={"wait": {"signal": "approved", "timeout": "2d"}, "description": "Somebody has to say yes."},
    ),
    NodeType(
        kind="workflow",
        key="workflow",
        title="Child workflow",
        description="Starts a saga of another registered workflow and waits for its end, however long it takes. No "
        "invocation of this saga runs meanwhile. Its output is the result of the child; a child that fails, fails it.",
        fields=("with", "after", "description"),
        refusal="a child workflow takes no `timeout` of the node; its own steps and waits have theirs",
        example={"workflow": "delivery@2", "with": {"items": ["Riesling"], "user": "${saga.user}"}},
    ),
)
