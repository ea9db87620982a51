"""Other graphs for a saga that runs: documents with nodes added, dropped and led to otherwise, and with other words in them."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

from baton.core.decide.program import Program
from baton.errors import InvalidDefinition
from tests.core.graphs.pair import program_of
from tests.core.graphs.plan import names
from tests.core.graphs.shapes import LETTERS, Maker
from tests.core.graphs.shrink import without

MARK = "mark"
TRIES = 12
Doc = dict[str, Any]
_DROPPED = ("when", "branch", "catch", "retry", "on_failure", "loop", "join", "poll", "map", "with")


def _add(draw: random.Random, nodes: Doc) -> None:
    """A node somewhere, perhaps with others that wait for it."""
    name = draw.choice([letter for letter in LETTERS if letter not in nodes])
    kind: Doc = draw.choice(
        ({"tool": "work"}, {"tool": "work"}, {"value": {"go": "red"}}, {"wait": {"signal": name}})
    )
    before = draw.sample(sorted(nodes), min(len(nodes), draw.choice((0, 1, 1, 2))))
    nodes[name] = {**kind, **({"after": before} if before else {})}
    for other in draw.sample(sorted(nodes), draw.choice((0, 1, 1))):
        if other != name:
            nodes[other]["after"] = [*names(nodes[other].get("after")), name]


def _read(draw: random.Random, nodes: Doc) -> None:
    """A step that is given the output of another node as well."""
    reader, other = draw.choice(sorted(nodes)), draw.choice(sorted(nodes))
    if "tool" in nodes[reader]:
        nodes[reader]["with"] = {**nodes[reader].get("with", {}), other: f"${{ctx.{other}.output}}"}


def _between(draw: random.Random, nodes: Doc) -> None:
    """A node on an edge, which a step further on may read."""
    after = {name: names(node.get("after")) for name, node in nodes.items()}
    if not (edges := [(one, name) for name in sorted(after) for one in after[name]]):
        return
    (source, target), name = draw.choice(edges), draw.choice([one for one in LETTERS if one not in nodes])
    nodes[name] = {"tool": "work", "after": [source]}
    nodes[target]["after"] = [one for one in after[target] if one != source] + [name]
    further = [one for one in sorted(after) if target in after[one] and "tool" in nodes[one]]
    if further:
        reader = nodes[draw.choice(further)]
        reader["with"] = {**reader.get("with", {}), name: f"${{ctx.{name}.output}}"}


def _link(draw: random.Random, nodes: Doc) -> None:
    one, other = draw.choice(sorted(nodes)), draw.choice(sorted(nodes))
    nodes[one]["after"] = sorted({*names(nodes[one].get("after")), other})


def _cut(draw: random.Random, nodes: Doc) -> None:
    node = nodes[draw.choice(sorted(nodes))]
    if after := list(names(node.get("after"))):
        after.remove(draw.choice(after))
        node["after"] = after
        if not after:
            del node["after"]


def _mark(draw: random.Random, nodes: Doc) -> None:
    """Other arguments, another value, or another signal."""
    node = nodes[draw.choice(sorted(nodes))]
    if "tool" in node:
        node["with"] = {**node.get("with", {}), MARK: draw.randint(1, 99)}
    elif "signal" in node.get("wait", {}):
        node["wait"] = {**node["wait"], "signal": draw.choice(LETTERS)}
    elif "value" in node:
        node["value"] = {"go": draw.choice(("red", "amber", "green"))}


def _other_kind(draw: random.Random, nodes: Doc) -> None:
    node, kinds = (
        nodes[draw.choice(sorted(nodes))],
        ({"tool": "work"}, {"value": {"go": "red"}}, {"wait": {"signal": "z"}}),
    )
    for key in ("tool", "value", "wait", "with", "workflow", "graph"):
        node.pop(key, None)
    node |= draw.choice(kinds)


def _lose(draw: random.Random, nodes: Doc) -> None:
    node = nodes[draw.choice(sorted(nodes))]
    if known := [key for key in _DROPPED if key in node]:
        del node[draw.choice(known)]


def _loop(draw: random.Random, nodes: Doc) -> None:
    name = draw.choice(sorted(nodes))
    back = draw.choice([name, *names(nodes[name].get("after"))])
    nodes[name]["loop"] = {
        "back_to": back,
        "while": "loop.iteration < 1",
        "max_iterations": draw.choice((1, 2, 3)),
    }


def _join(draw: random.Random, nodes: Doc) -> None:
    node = nodes[draw.choice(sorted(nodes))]
    if many := len(names(node.get("after"))):
        need: Any = draw.choice(("all", "any", draw.randint(1, many)))
        node["join"] = {"wait_for": need, "rest": draw.choice(("run", "cancel"))}


def _catch(draw: random.Random, nodes: Doc) -> None:
    nodes[draw.choice(sorted(nodes))]["catch"] = [draw.choice(sorted(nodes))]


def _branch(draw: random.Random, nodes: Doc) -> None:
    name = draw.choice(sorted(nodes))
    after = [other for other, node in nodes.items() if name in names(node.get("after"))]
    if len(after) > 1:
        nodes[name]["branch"] = {
            "rules": [{"if": "output.go == 'red'", "then": after[0]}],
            "default": after[1],
        }


_CHANGES: tuple[Callable[[random.Random, Doc], None], ...] = (
    *(_add, _add, _add, _between, _between, _read, _read, _link, _link, _cut, _cut, _mark, _mark),
    *(_other_kind, _lose, _loop, _join, _catch, _branch),
)


def other_documents(draw: random.Random, document: Doc) -> Iterator[tuple[Doc, Program]]:
    """Documents that the compiler takes, each a few changes away from this one; now and then one that is altogether another."""
    for number in range(TRIES):
        if draw.random() < 0.04:
            other = Maker(f"other/{number}/{draw.random()}").document()
        else:
            other = copy.deepcopy(document)
            for _ in range(draw.choice((1, 1, 2, 3, 5))):
                if draw.random() < 0.2 and len(other["nodes"]) > 1:
                    other = without(other, draw.choice(sorted(other["nodes"])))
                else:
                    draw.choice(_CHANGES)(draw, other["nodes"])
        try:
            yield other, program_of(other)
        except (InvalidDefinition, RecursionError, KeyError):
            continue
