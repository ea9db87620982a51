"""Documents that mean harm, or that a program writes: each is compiled or refused soon, in little memory.

The cases, and what tries each of them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from time import process_time
from typing import Any, Final

from baton.core.documents.compile import compile_document
from baton.errors import BatonError, InvalidDefinition
from tests.core.apart import some
from tests.core.build import TOOLS

TIME_S: Final = 1.6  # of the processor, that a document is given here, also on a slow machine
COMPILED: Final = "compiled"
Nodes = dict[str, dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """`expected`: `COMPILED`, or what is in one of the problems. A `document` has its nodes, or more than that."""

    name: str
    document: dict[str, Any]
    expected: str


def step(after: Any = None, **more: Any) -> dict[str, Any]:
    return {"tool": "t", **({"after": after} if after else {}), **more}


def loop(back_to: str, condition: str = "true") -> dict[str, Any]:
    return {"back_to": back_to, "while": condition, "max_iterations": 2}


def nested(depth: int, times: int = 1, condition: str = "true") -> Nodes:
    """So many loops inside each other, so many times one after the other."""
    nodes: Nodes = {}
    last = ""
    for k in range(times):
        for i in range(depth):
            nodes[f"h{k}_{i}"] = step(last)
            last = f"h{k}_{i}"
        for i in range(depth):
            nodes[f"l{k}_{i}"] = step(last, loop=loop(f"h{k}_{depth - 1 - i}", condition))
            last = f"l{k}_{i}"
    return nodes


def chain(count: int, back: int) -> Nodes:
    """Each node from `back` on is the end of a loop over as many as are before it, at most `back`; 0: over all."""
    nodes: Nodes = {"m0": step()}
    for i in range(1, count):
        ends = {"loop": loop(f"m{i - back if back else 0}")} if i >= back else {}
        nodes[f"m{i}"] = step(f"m{i - 1}", **ends)
    return nodes


def ways_out(count: int, depth: int) -> Nodes:
    """A chain inside loops, each node of which may leave all of them."""
    nodes = {f"h{i}": step(f"h{i - 1}" if i else None) for i in range(depth)}
    for i in range(count):
        rules = [{"if": f"output.n == {i}", "then": "out"}]
        choice = {"rules": rules, "default": f"m{i + 1}" if i < count - 1 else "z"}
        nodes[f"m{i}"] = step(None if i else f"h{depth - 1}", branch=choice)
    nodes["z"] = step()
    for i in range(depth):
        nodes[f"l{i}"] = step(f"l{i - 1}" if i else "z", loop=loop(f"h{depth - 1 - i}", f"output.n < {i}"))
    return {**nodes, "out": step(f"l{depth - 1}")}


def joins(count: int, width: int, **join: Any) -> Nodes:
    """Diamonds one after the other."""
    nodes: Nodes = {}
    for i in range(count):
        for k in range(width):
            nodes[f"d{i}_{k}"] = step(f"j{i - 1}" if i else None)
        nodes[f"j{i}"] = step([f"d{i}_{k}" for k in range(width)], **join)
    return nodes


def caught(count: int) -> Nodes:
    """A chain whose failures are each caught, and where each two paths meet again."""
    nodes: Nodes = {}
    for i in range(count):
        nodes[f"m{i}"] = step(f"j{i - 1}" if i else None, catch=f"h{i}")
        nodes[f"h{i}"] = step()
        nodes[f"j{i}"] = step([f"m{i}", f"h{i}"] + ([f"m{i - 1}"] if i else []))
    return nodes


def policies(count: int) -> dict[str, Any]:
    failover = [
        {"name": f"p{i}", "when": {"node": f"*m*{i}*"}, "then": {"hint": f"hint {i}"}} for i in range(count)
    ]
    return {"nodes": {f"m{i}": step() for i in range(count)}, "failover": failover}


DEEP: Final = "more than 32 loops inside each other"
LONG: Final = "takes too long to check"

HOSTILE: Final = [
    Case("the most loops inside each other", nested(32, condition="output.n < 1"), COMPILED),
    Case("a few more loops inside each other", nested(33), "innermost of 33 loops inside each other"),
    Case("700 loops inside each other", nested(700), DEEP),
    Case("1,500 loops inside each other", nested(1_500), DEEP),
    Case("a thousand loops with one beginning", chain(1_000, 0), DEEP),
    Case("1,500 loops that overlap", chain(2_000, 500), DEEP),
    Case("thirty times 32 loops without an exit", nested(32, 30), "the loop has no exit"),
    Case("thousands of ways out, each with its condition", ways_out(4_000, 30), LONG),
    Case("a thousand joins of failures", joins(1_000, 2, join={"wait_for": "all", "tolerated_failures": 1}), COMPILED),
    Case("one join of 2,500", joins(1, 2_500, join=1_250), COMPILED),
    Case("a thousand failures that are caught", caught(1_000), COMPILED),
    Case("a handler of two thousand", {"h": step(), **{f"m{i}": step(catch="h") for i in range(2_000)},
         "j": step([f"m{i}" for i in range(2_000)])}, COMPILED),
    Case("a thousand policies", policies(1_000), "there may be 100 policies"),
    Case("a circle of 2,000", {f"m{i}": step(f"m{(i + 1) % 2_000}") for i in range(2_000)}, "wait for each other"),
    Case("thousands of edges", {f"m{i}": step([f"m{j}" for j in range(max(0, i - 50), i)]) for i in range(900)},
         COMPILED),
    Case("more values than any", {f"m{i}": step([f"m{j}" for j in range(i)]) for i in range(500)}, "100000 values"),
]  # fmt: skip


def tried(case: Case) -> tuple[str, str]:
    """What comes of a case, as `expected`, and all that is told."""
    body = case.document if "nodes" in case.document else {"nodes": case.document}
    text = json.dumps({"name": "w", **body})
    until = process_time() + TIME_S
    try:
        compile_document(text, TOOLS, has_time=lambda: process_time() < until)
    except InvalidDefinition as error:
        words = [f"{problem.path} {problem.message} {problem.suggestion}" for problem in error.problems]
        found = next((line for line in words if case.expected in line), "")
        return (case.expected if found else words[0]), found
    except BatonError as error:
        return (case.expected if case.expected in str(error) else "refused"), str(error)
    return COMPILED, ""


TRIED: Final = some(HOSTILE)
