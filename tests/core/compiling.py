"""For the tests of the compiler: small documents in one line, and what is told of them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from baton.core.documents.compile import compile_document
from baton.core.documents.models import WorkflowModel
from baton.core.documents.read import as_written, read_definition
from baton.core.documents.text import parse_document
from baton.core.effects.toolspec import ToolSpec
from baton.core.graph.graph import Graph, Node
from baton.errors import Problem
from tests.core.build import problems_of, tool_spec

RESULT = {"type": "object", "properties": {"score": {"type": "integer"}, "next": {"type": "string"}}}
TOOLS: Mapping[str, ToolSpec] = {
    "t": tool_spec("t", RESULT, x={}, text={"type": "string"}, maybe={"type": ["string", "null"]}),
    "u.v": tool_spec("u.v"),
}

AGAIN = "while: 'output.score < 5'"


def document(nodes: str, *more: str) -> str:
    """Of nodes such as `a: {}, b: {after: a}`: tasks, but for those that say what they are. AGAIN is a condition."""
    parsed = _parsed(nodes)
    kinds = {"tool", "wait", "workflow", "value", "fail", "end", "model", "agent", "human"}
    lines = []
    for name, node in parsed.items():
        node = node or {}
        lines.append(f"  {name}: {_flow({**({} if kinds & set(node) else {'tool': 't'}), **node})}")
    return "\n".join(["name: w", "nodes:", *lines, *more])


def _parsed(nodes: str) -> dict[str, Any]:
    found: dict[str, Any] = parse_document("{" + nodes.replace("AGAIN", AGAIN) + "}").value
    return found


def _flow(value: Any) -> str:
    return json.dumps(value)


def told(nodes: str, *more: str) -> list[tuple[str, str, str]]:
    """(path, message, suggestion) of everything that is wrong."""
    return [(one.path, one.message, one.suggestion) for one in problems_of(document(nodes, *more), TOOLS)]


def compiled(nodes: str, *more: str) -> Graph:
    return compile_document(document(nodes, *more), TOOLS)


def node(name: str, nodes: str, *more: str) -> Node:
    return next(one for one in compiled(nodes, *more).nodes if one.name == name)


def reads(reader: str, name: str, nodes: str) -> bool:
    """Whether `reader` (empty: the saga's output) may count on the output of `name`."""
    parsed = _parsed(nodes)
    if not reader:
        return told(nodes, f"output: '${{ctx.{name}.output}}'") == []
    given = {**(parsed[reader] or {}), "with": {"x": f"${{ctx.{name}.output}}"}}
    all_nodes = ", ".join(
        f"{key}: {_flow(given if key == reader else one or {})}" for key, one in parsed.items()
    )
    problems = told(all_nodes)
    assert all(path == f"/nodes/{reader}/with/x" for path, _, _ in problems), problems
    return not problems


def shape_of(value: Any) -> tuple[WorkflowModel | None, tuple[Problem, ...]]:
    """The model of a parsed document, and what is wrong with its shape, where the document has it."""
    read = read_definition(value)
    return read.model, as_written(read.problems, read.written)
