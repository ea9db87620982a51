"""How long a large document takes to compile, and that a process compiles a condition once."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable

from baton.core.decide.program import Program
from baton.core.documents.compile import compile_document
from baton.core.documents.text import write_yaml
from baton.core.nodes.registry import KINDS
from benchmarks.figures import Bench, Figure, Sample
from benchmarks.stage import REGISTRY

NODES = 1_000
EACH = 10
_RUNS = itertools.count(1)


def document_of(nodes: int, run: int = 0) -> dict[str, object]:
    """Its conditions are those of no other `run`. Tens: a step, a branch with a condition of its own to one of six, a join, a loop on it, and what follows."""
    found: dict[str, object] = {}
    last = ""
    for k in range(nodes // EACH):
        after = {"after": last} if last else {}
        ways = [f"w{k}_{i}" for i in range(6)]
        rules = [{"if": f"output.n == {run}{k * EACH + i:05}", "then": way} for i, way in enumerate(ways[1:])]
        found[f"a{k}"] = {
            "tool": "step",
            "with": {"n": f"${{ctx.{last}.output.n}}" if last else "${input.n}"},
            "branch": {"rules": rules, "default": ways[0]},
            **after,
        }
        for way in ways:
            found[way] = {"tool": "step", "with": {"n": f"${{ctx.a{k}.output.n}}"}}
        found[f"j{k}"] = {"tool": "step", "after": ways, "with": {"n": f"${{ctx.a{k}.output.n}}"}}
        found[f"l{k}"] = {
            "tool": "step",
            "after": f"j{k}",
            "with": {"n": f"${{ctx.j{k}.output.n}}"},
            "loop": {
                "while": f"output.n < {run}{k:05}",
                "back_to": f"j{k}",
                "max_iterations": 3,
                "timeout_path": f"e{k}",
                "break_path": f"e{k}",
            },
        }
        last = f"e{k}"
        found[last] = {"tool": "step", "with": {"n": f"${{ctx.l{k}.output.n}}"}}
    return {"name": "large", "nodes": found}


def _timed(work: Callable[[], object]) -> float:
    before = time.perf_counter()
    work()
    return (time.perf_counter() - before) * 1_000


def measure(nodes: int = NODES) -> Sample:
    tools = REGISTRY.specs()
    texts = {
        "json": json.dumps(document_of(nodes, next(_RUNS))),
        "yaml": write_yaml(document_of(nodes, next(_RUNS))),
    }
    texts["again"] = texts["json"]
    sample = {kind: _timed(lambda text=text: compile_document(text, tools)) for kind, text in texts.items()}  # type: ignore[misc]  # mypy cannot tell the type of a lambda's default
    graph = compile_document(texts["json"], tools)
    return {**sample, "program": _timed(lambda: Program(graph, KINDS))}


BENCH = Bench(
    "compile",
    f"a document of {NODES:,} nodes, {NODES * 6 // EACH} conditions among them",
    {
        "json": Figure("from JSON to a graph", "ms", 200),
        "again": Figure("the same again, its conditions being known", "ms"),
        "yaml": Figure("from YAML to a graph", "ms"),
        "program": Figure("a graph made ready to run, once per process", "ms"),
    },
    measure,
    runs=7,
)
