"""Graphs of a document, and waits that take only what comes while they are open: some nodes of a random graph become such.

They are drawn from a seed of their own, so that the other graphs stay as they were. What a graph sees is in known.py, what a
fresh wait loses in mirror.py.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Set
from typing import Any

from tests.core.graphs.many import POLICIES, become_child
from tests.core.graphs.plan import Plan
from tests.core.graphs.sure import is_racing

Doc = dict[str, Any]

FRESH, SAME_NAME = 0.4, 0.35
"""How often a wait is fresh, and how often it waits for the signal of another wait."""
NAMED, OF_TASKS = 0.2, 0.4
"""How often a document has graphs; how often a task of it starts one, besides every child."""
FOR_EACH = 0.4
"""How often such a task does so for each item of a list."""
HANDLED = 0.1
"""How often a graph is the failure handler."""
ASKED = 0.3
"""How often a person is asked about a graph that has failed, who may change its input."""
OVER: tuple[Any, ...] = ("${input.items}", "${input.items}", [{"no": 5}, 6, 7])
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def draw_fresh(draw: random.Random, nodes: Doc) -> None:
    waits = [nodes[name]["wait"] for name in sorted(nodes) if "wait" in nodes[name]]
    for wait in waits:
        if draw.random() < SAME_NAME:
            wait["signal"] = draw.choice(waits)["signal"]
        if draw.random() < FRESH:
            wait["fresh"] = True


def draw_starters(draw: random.Random, nodes: Doc, *, troubled: bool) -> None:
    """Some nodes start a graph instead of a tool or a workflow; which one is drawn when it is known what they read."""
    if draw.random() >= NAMED:
        return
    for name in sorted(nodes):
        node = nodes[name]
        if "workflow" in node:
            del node["workflow"]
            node["graph"] = ""
        elif "tool" in node and "poll" not in node and draw.random() < OF_TASKS:
            become_child(draw, node, troubled=troubled, key="graph")
            if troubled and draw.random() < ASKED:
                node.pop("retry", None)
                node["on_failure"] = {"any": {"ladder": ["ask_user"]}}
            if not node.keys() & {"map", "loop", "branch"} and draw.random() < FOR_EACH:
                node["map"] = {"over": draw.choice(OVER), **draw.choice(POLICIES)}


class Graphs:
    """The graphs of one document in the making."""

    def __init__(self, draw: random.Random, plan: Plan, nodes: Doc, sure: Mapping[str, set[str]]) -> None:
        self.draw, self.plan, self.nodes, self.sure = draw, plan, nodes, sure
        self.made: Doc = {}

    def draw_handler(self) -> Doc | None:
        """The failure handler: which nodes have given something by then is known of none."""
        if self.draw.random() >= HANDLED:
            return None
        graph = self._graph([f"ctx.{name}.output?" for name in sorted(self.nodes)], is_item=False)
        said: Doc = {"graph": graph}
        if self.draw.random() < 0.3:
            said["with"] = {"code": "${last_error.code}", "all": "${input}"}
        return said

    def draw_all(self) -> Doc:
        """The graphs that nodes start, by name."""
        for name in sorted(self.nodes):
            node = self.nodes[name]
            if "graph" in node:
                node["graph"] = self._graph(self._seen_from(name), is_item="map" in node)
                self._draw_given(node)
        return self.made

    def _seen_from(self, name: str) -> list[str]:
        """What a graph that this node starts can name of the document."""
        seen = []
        for other in sorted(self.plan.nodes):
            if name in self.plan.ahead[other] and other != name:
                if other in self.sure[name]:
                    seen.append(f"ctx.{other}.output")
                elif not is_racing(self.plan, other, name):
                    seen.append(f"ctx.{other}.output?")
        return seen

    def _draw_given(self, node: Doc) -> None:
        """What it is given: as before, an item, or nothing, which is the input of its starter."""
        drawn = self.draw.random()
        if drawn < 0.5:
            node.pop("with", None)
        elif drawn < 0.7 and "map" in node:
            node.pop("with", None)
            node["input"] = "${item}"

    def _graph(self, seen: list[str], *, is_item: bool, above: Set[str] = frozenset()) -> str:
        """A graph of one node, which may come behind others, and may start a graph itself. `above`: nodes of the one that starts it."""
        kinds = ["input", "input", "last_error.code", *(["item", "index"] if is_item else [])]
        free = [name for name in LETTERS if name not in above]
        last, first, beside = self.draw.sample(free, 3)
        # Of the names that it hides, it sees its own.
        seen = [path for path in seen if path.split(".")[1] not in {last, first, beside, *above}]
        reads = self._reads([*kinds, *seen])
        nodes: Doc = {last: {"tool": "work", "with": self._reads([*kinds, *seen])}}
        if self.draw.random() < 0.6:
            nodes[first] = {"value": {"seen": reads}}
            nodes[last] |= {"after": first}
            nodes[last]["with"]["own"] = f"${{ctx.{first}.output}}"
        if self.draw.random() < 0.3:
            asked = self.draw.choice(
                ["last_error == null", *(f"{path} == null" for path in seen if "?" not in path)]
            )
            nodes[beside] = {"value": {}, "when": asked}
        if not above and self.draw.random() < 0.4:
            is_many = self.draw.random() < 0.5
            inner = self._graph(seen, is_item=is_many, above=nodes.keys())
            nodes[last] = {
                "graph": inner,
                **{key: nodes[last][key] for key in ("after",) if key in nodes[last]},
            }
            if is_many:
                nodes[last]["map"] = {"over": [7, {"no": 8}], "wait_for": "any"}
        name = f"g{len(self.made)}"
        self.made[name] = {"nodes": nodes, "output": f"${{ctx.{last}.output}}"}
        return name

    def _reads(self, paths: list[str]) -> Doc:
        these = self.draw.sample(paths, min(len(paths), self.draw.choice((1, 2, 3))))
        return {f"r{number}": f"${{{path}}}" for number, path in enumerate(these)}
