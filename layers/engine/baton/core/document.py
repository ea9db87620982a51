"""Text to data: JSON and YAML documents, with the line and column of every value.

No meaning here. YAML is read as JSON would be: no dates, no tags of its own, no duplicate keys, and no
aliases, because a few lines of them can stand for gigabytes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

import yaml

from baton.core.expressions import escape
from baton.errors import MalformedDocument, Problem

MAX_VALUES = 200_000
MAX_DEPTH = 100

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]  # the C loader when PyYAML was built with it
    """Resolves the scalars of JSON and nothing else."""


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern) for tag, pattern in resolvers if not tag.endswith((":timestamp", ":merge", ":value"))
    ]
    for first, resolvers in _Base.yaml_implicit_resolvers.items()
}


@dataclass(frozen=True)
class Document:
    """A parsed text: its value, and (line, column) from 1 for each JSON Pointer into it."""

    value: Any
    positions: dict[str, tuple[int, int]] = field(default_factory=dict)

    def locate(self, problem: Problem) -> Problem:
        """The problem with the position of its path, or of the nearest value around it."""
        pointer = problem.path
        while pointer and pointer not in self.positions:
            pointer = pointer.rpartition("/")[0]
        line, column = self.positions.get(pointer, (0, 0))
        return Problem(problem.path, problem.message, problem.suggestion, line, column)


def parse_document(text: str, *, json_only: bool = False) -> Document:
    """Parse JSON or YAML. Raises `MalformedDocument` with line and column of the first fault."""
    if json_only or text.lstrip().startswith(("{", "[")):
        _check_json(text, json_only)
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line + 1, mark.column + 1) if mark else (0, 0)
        raise _malformed(str(error.problem or error.context or "not YAML"), line, column) from error
    except yaml.YAMLError as error:
        raise _malformed(str(error), 1, 1) from error
    if root is None:
        raise _malformed("the document is empty", 1, 1)
    reader = _Reader()
    value = reader.read(root, "", 0)
    return Document(value, reader.positions)


def _check_json(text: str, strict: bool) -> None:
    """JSON's own parser has the better messages, so what looks like JSON is checked by it first."""
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        flow_yaml = error.msg.startswith(("Expecting property name", "Expecting value"))
        if strict or not flow_yaml:
            raise _malformed(error.msg, error.lineno, error.colno) from error
    except RecursionError as error:
        raise _malformed(f"nested deeper than {MAX_DEPTH} levels", 1, 1) from error


def _malformed(message: str, line: int, column: int) -> MalformedDocument:
    problem = Problem("", message, line=line, column=column)
    return MalformedDocument(f"line {line}, column {column}: {message}", (problem,))


class _Reader:
    def __init__(self) -> None:
        self.positions: dict[str, tuple[int, int]] = {}
        self._seen: set[int] = set()
        self._scalars = yaml.constructor.SafeConstructor()

    def read(self, node: Any, pointer: str, depth: int) -> Any:
        line, column = node.start_mark.line + 1, node.start_mark.column + 1
        self.positions[pointer] = (line, column)
        if id(node) in self._seen:
            raise _malformed("aliases (*name) are not allowed; write the value out", line, column)
        self._seen.add(id(node))
        if depth > MAX_DEPTH:
            raise _malformed(f"nested deeper than {MAX_DEPTH} levels", line, column)
        if len(self._seen) > MAX_VALUES:
            raise _malformed(f"more than {MAX_VALUES} values", line, column)
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, pointer, depth)
        if isinstance(node, yaml.SequenceNode):
            return [self.read(item, f"{pointer}/{i}", depth + 1) for i, item in enumerate(node.value)]
        try:
            value = self._scalars.construct_object(node)
        except (yaml.YAMLError, ValueError) as error:
            raise _malformed(f"cannot read `{node.value}` as {node.tag}", line, column) from error
        if (
            not isinstance(value, (str, int, float, bool, type(None)))
            or value != value
            or value in (_INF, -_INF)
        ):
            raise _malformed(f"`{node.value}` is not a JSON value", line, column)
        return value

    def _mapping(self, node: Any, pointer: str, depth: int) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key_node, value_node in node.value:
            line, column = key_node.start_mark.line + 1, key_node.start_mark.column + 1
            if not isinstance(key_node, yaml.ScalarNode):
                raise _malformed("a key must be a string", line, column)
            key = key_node.value
            if key in result:
                raise _malformed(f"the key `{key}` is there twice", line, column)
            result[key] = self.read(value_node, f"{pointer}/{escape(key)}", depth + 1)
        return result


_INF = float("inf")
