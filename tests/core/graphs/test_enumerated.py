"""What the compiler says a saga can be complete without, held against all that small graphs with ends can do.

Every choice of every branch, and every failure that is caught, in every order: the interpreter goes through them all. What
the compiler lets an output name is always there. What it refuses is missing somewhere, where only ends have several senders.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.core.graphs.interpreter import Interpreter
from tests.core.graphs.plan import Plan
from tests.core.graphs.shapes import Doc
from tests.core.graphs.test_counted_on import produced_of
from tests.core.graphs.test_random_graphs import SCALE

GRAPHS = 150
NAMES = "abcdef"
MISSED = 0.05
"""How much of what is sure the compiler may refuse, where joins meet what a caught failure has lost."""

pytestmark = [pytest.mark.no_cover, pytest.mark.timeout(120 * SCALE)]


def drawn(seed: str) -> Doc:
    """Nodes that choose, nodes whose failure is caught, and last nodes that end the saga, reached by several ways."""
    draw = random.Random(seed)
    names, most = NAMES[: draw.randint(3, len(NAMES))], draw.choice((1, 2))
    nodes: Doc = {name: {"tool": "work"} for name in names}
    led = set[str]()
    for index, name in enumerate(names[:-1]):
        role, later = draw.random(), list(names[index + 1 :])
        if role < 0.4:
            nodes[name]["branch"] = _branch(draw, later)
        free = [other for other in later if other not in Plan({"nodes": nodes}).targets(name)]
        if 0.25 < role < 0.75 and free:
            nodes[name]["catch"] = draw.sample(free, 1)
    for index, name in enumerate(names):
        senders = {other for other in names[:index] if name in Plan({"nodes": nodes}).after[other]}
        free = [other for other in names[:index] if other not in senders]
        count = draw.randint(0, most) if not senders else draw.randint(0, most) // 2
        if after := draw.sample(free, min(len(free), count)):
            nodes[name]["after"] = after
            led.update(after)
    for name, node in nodes.items():
        if name not in led and not node.keys() & {"branch", "catch"} and draw.random() < 0.7:
            del node["tool"]
            node |= {"fail": {"code": "odd", "message": "no"}} if draw.random() < 0.7 else {"end": {}}
    return {"name": "graph", "nodes": nodes}


def _branch(draw: random.Random, later: list[str]) -> Doc:
    ways = [draw.choice(later), draw.choice(later)]
    if draw.random() < 0.3:
        return {"choose": "output.next", "among": sorted({*ways}), "default": ways[0]}
    return {"rules": [{"if": "output.go == 'on'", "then": ways[0]}], "default": ways[1]}


def all_ends(document: Doc) -> Iterator[Interpreter]:
    """All the ways in which the saga can be complete by having nothing more to do."""
    todo, seen = [Interpreter(document)], set[str]()
    while todo:
        world = todo.pop()
        now = repr((sorted(world.became.items()), sorted(world.open)))
        if now in seen:
            continue
        seen.add(now)
        if world.ended is not None:
            yield world
        elif not any(document["nodes"][name].keys() & {"fail", "end"} for name, _ in world.open):
            todo += _next(document, world)


def _next(document: Doc, world: Interpreter) -> Iterator[Interpreter]:
    for slot in world.open:
        node = document["nodes"][slot[0]]
        for value in _values(node.get("branch", {})):
            twin = world.fork()
            twin.settle(slot, value)
            yield twin
        if "catch" in node:
            twin = world.fork()
            twin.fail(slot, "timeout")
            yield twin


def _values(branch: Any) -> list[Any]:
    if "among" in branch:
        return [{"next": chosen} for chosen in (None, *branch["among"], branch["among"])]
    return [{"go": "on"}, {"go": "off"}] if branch else [{}]


def is_plain(document: Doc) -> bool:
    """Whether no node has several senders but one that ends the saga."""
    before = Plan(document).before
    return all(
        len(before[name]) < 2 or node.keys() & {"fail", "end"} for name, node in document["nodes"].items()
    )


def test_an_output_is_refused_where_a_saga_can_be_complete_without_it_and_only_there() -> None:
    sure = missing = missed = plain = 0
    for number in range(round(GRAPHS * SCALE)):
        document = drawn(f"enumerated {number}")
        produced, found = produced_of(document), list(all_ends(document))
        for name in document["nodes"] if found else ():
            is_sure = all(world.became[name, ()].kind == "done" for world in found)
            is_named = produced.has_at_the_end(name)
            told = f"{name} of graph {number}: {json.dumps(document)}"
            assert is_sure or not is_named, told
            if is_plain(document):
                assert is_sure == is_named, told
                plain += 1
            sure, missing, missed = sure + is_sure, missing + (not is_sure), missed + (is_sure != is_named)
    assert min(sure, missing, plain) > GRAPHS * SCALE / 2
    assert missed < sure * MISSED
