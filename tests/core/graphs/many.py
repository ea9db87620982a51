"""Children, maps, polls and pauses: some tasks of a random graph become such. What they mean is in items.py and failing.py.

They are drawn from a seed of their own, so that the other graphs stay as they were.
"""

from __future__ import annotations

import random
from typing import Any

Doc = dict[str, Any]

MANY = 0.3
"""How often a graph has any of these."""
OVER: tuple[Any, ...] = (
    [],
    [1],
    [1, {"no": 2}],
    [1, {"no": 2}, None, [4]],
    "${input.items}",
    "${input.items}",
    "${input.items}",
    "${input.none}",
    "${input.go}",
)
POLICIES: tuple[Doc, ...] = (
    {},
    {},
    {"rest": "run"},
    {"wait_for": "any"},
    {"wait_for": "any", "rest": "run"},
    {"wait_for": 2},
    {"wait_for": 2, "tolerated_failures": 1},
    {"wait_for": "all", "tolerated_failures": 0},
    {"tolerated_failures": 1},
    {"tolerated_failures": "34%"},
    {"tolerated_failures": "67%", "rest": "run"},
    {"tolerated_failures": "100%"},
    {"wait_for": 1, "tolerated_failures": "50%", "rest": "run"},
)
BODIES = ("tool", "tool", "tool", "workflow", "value", "wait")
UNTIL = ("output.again", "output.go == 'red'", "output.go != 'green'", "loop.iteration == 1")
PAUSES: tuple[Any, ...] = ("700ms", "1000ms", {"first": "300ms", "factor": 3})
AGAIN: tuple[Doc, ...] = (
    {},
    {"retry": "immediate"},
    {"retry": "quick"},
    {"retry": {"schedule": ["200ms", "3000ms"]}},
    {"on_failure": {"any": {"ladder": ["retry", "ask_user"], "retry": "immediate"}}},
    {"on_failure": {"tool_error": {"ladder": ["retry"], "retry": "immediate"}}},
    {"on_failure": {"transient": {"ladder": ["ask_user", "escalate"]}}},
    {"on_failure": {"any": {"ladder": ["escalate"]}}, "retry": "immediate"},
)
"""What is done about a child that fails. A `retry` that nothing comes to is refused by the compiler."""


def draw_many(draw: random.Random, nodes: Doc, *, troubled: bool) -> None:
    """Some tasks become children, maps of tools, children, values or waits, and polls; some loops rest between rounds."""
    if draw.random() >= MANY:
        return
    for name in sorted(nodes):
        node = nodes[name]
        if "loop" in node and draw.random() < 0.3:
            node["loop"]["pause"] = draw.choice(PAUSES)
        if "loop" in node and draw.random() < 0.3:
            node["loop"]["initial"] = {"go": draw.choice(("red", "green"))}
        if "tool" not in node or draw.random() > 0.45:
            continue
        kind = draw.choice(("child", "child", "map", "map", "map", "poll"))
        if kind == "child":
            become_child(draw, node, troubled=troubled)
        elif kind == "poll" and "loop" not in node:
            node["poll"] = {
                "until": draw.choice(UNTIL),
                "every": draw.choice(PAUSES),
                "tries": draw.choice((1, 2, 3)),
            }
        elif kind == "map" and not node.keys() & {"loop", "branch"}:
            _become_map(draw, name, node, troubled=troubled)


def become_child(draw: random.Random, node: Doc, *, troubled: bool, key: str = "workflow") -> None:
    del node["tool"]
    node[key] = "kid"
    if troubled:
        node |= draw.choice(AGAIN)


def _become_map(draw: random.Random, name: str, node: Doc, *, troubled: bool) -> None:
    over, policy = draw.choice(OVER), draw.choice(POLICIES)
    said = policy.get("wait_for", 0)
    need = said if isinstance(said, int) else 1 if said == "any" else 0
    # Of a list that is too short for it, the compiler says that it always fails.
    node["map"] = {"over": over, **(policy if isinstance(over, str) or need <= len(over) else {})}
    if draw.random() < 0.6:
        node["map"]["concurrency"] = draw.choice((1, 2, 2, 3))
    body = draw.choice(BODIES)
    if body == "workflow":
        become_child(draw, node, troubled=troubled)
    elif body == "value":
        del node["tool"]
        node["value"] = {"of": "${item}", "at": "${index}"}
    elif body == "wait":
        del node["tool"]
        node["wait"] = {"signal": name}


def draw_items(nodes: Doc) -> None:
    """What the items of maps are given besides."""
    for node in nodes.values():
        if "map" in node and node.keys() & {"tool", "workflow", "graph"}:
            node["with"] = {**node.get("with", {}), "item": "${item}", "index": "${index}"}
