"""The kinds of node: what each is for, which fields it has, an example. The one list that all others follow.

Belongs here: what is said of kinds. Does not belong here: the shape of a field (definition.py), its JSON Schema
(schema.py), what a node does when its turn comes (decide.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import msgspec


class NodeType(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of node.

    `kind` is its name in graphs and logs; `key` is the field of a document's node that makes it one, and
    `own` are the others that not every kind has. `refusal` is said of any other field that a node can have.
    `example` is such a node as it stands in a document. `runs`: whether this version can run it.
    """

    kind: str
    key: str
    title: str
    description: str
    own: tuple[str, ...] = ()
    refusal: str = ""
    example: Mapping[str, Any]
    runs: bool = True

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that it may have, besides `key`."""
        return (*self.own, *COMMON)

    def refuses(self, names: Collection[str]) -> str:
        """What is said of fields that it may not have."""
        name = next((name for name in FAILING if name in names), "")
        return (
            f"`{name}` goes with a `tool`: nothing else is tried again or done another way; "
            "`catch` says where it goes on from a failure"
            if name
            else self.refusal
        )


# What a node of any kind may have.
COMMON = ("after", "when", "branch", "loop", "join", "catch", "output_schema", "limits", "description")
# What only a node may have whose work can be done again.
FAILING = ("retry", "on_failure", "failover")


NODE_TYPES = (
    NodeType(
        kind="task",
        key="tool",
        title="Task",
        description="Runs a tool, a Python function of the application, in a worker. Its output is what the tool "
        "returns. What is done when an attempt fails is on [failures.md](failures.md); an attempt cut off by the end of "
        "an invocation is tried again.",
        own=("with", "timeout", *FAILING),
        example={"tool": "table.hold", "with": {"party": 4, "user": "${saga.user}"}, "timeout": "10s"},
    ),
    NodeType(
        kind="wait",
        key="wait",
        title="Wait",
        description="Waits for a time to pass or to come, or for a signal and at most a time. No invocation runs "
        "meanwhile. Its output is the payload of the signal, or `{timed_out: true}` when the time ran out; that of a wait "
        "for a time alone is null.",
        refusal="a wait takes neither `with` nor `timeout` of the node; use wait.timeout",
        example={"wait": {"signal": "approved", "timeout": "2d"}, "description": "Somebody has to say yes."},
    ),
    NodeType(
        kind="workflow",
        key="workflow",
        title="Child workflow",
        description="Starts a saga of another registered workflow and waits for its end, however long it takes. No "
        "invocation of this saga runs meanwhile. Its output is the result of the child; a child that fails, fails it.",
        own=("with",),
        refusal="a child workflow takes no `timeout` of the node; its own steps and waits have theirs",
        example={"workflow": "delivery@2", "with": {"items": ["Riesling"], "user": "${saga.user}"}},
    ),
    NodeType(
        kind="pass",
        key="value",
        title="Value",
        description="Gives a value made of what others gave. Nothing is started for it.",
        refusal="a `value` takes neither `with` nor `timeout`; write what it gives under `value`",
        example={"value": {"city": "${input.city}", "rounds": 0}},
    ),
    NodeType(
        kind="agent",
        key="agent",
        title="Agent",
        description="A model that works with tools until it has an answer; this version cannot run it.",
        own=("with", "timeout", *FAILING),
        example={"agent": {"model": "a-model", "tools": ["table.search"], "instructions": "Find a table."}},
        runs=False,
    ),
    NodeType(
        kind="human",
        key="human",
        title="Question",
        description="Asks a person and waits for the answer; this version cannot run it.",
        own=("with", "timeout"),
        example={"human": {"question": "Shall we book it?"}},
        runs=False,
    ),
    NodeType(
        kind="map",
        key="map",
        title="Map",
        description="Does the same for each item of a list; this version cannot run it.",
        own=("with", "timeout"),
        example={"map": {"over": "${input.guests}", "workflow": "invitation"}},
        runs=False,
    ),
)
KINDS = tuple(kind.key for kind in NODE_TYPES if kind.runs)
KINDS_TO_COME = tuple(kind.key for kind in NODE_TYPES if not kind.runs)
