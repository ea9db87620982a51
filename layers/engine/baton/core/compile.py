"""compile_document(text, tools) -> graph and every problem at once, each with its path and position.

The checks are one function each, run in the order of the list at the end; they see a document whose
shape is right. Nothing here runs a workflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from heapq import heapify, heappop, heappush
from typing import Any

from baton.core.definition import WorkflowModel, read_definition
from baton.core.document import parse_document
from baton.core.expressions import (
    ROOTS,
    SAGA_FIELDS,
    ExpressionError,
    Path,
    UnknownRoot,
    compile_template,
    escape,
    expressions_in,
    lone_path,
)
from baton.core.graph import Graph, Node
from baton.core.schema import SchemaError, check_schema, violations
from baton.core.schemapaths import Schema, in_words
from baton.core.toolspec import ToolSpec, nearest
from baton.errors import InvalidDefinition, Problem

Tools = Mapping[str, ToolSpec]
# Looking for the nearest of many names takes long, and nobody mends a document from the end.
MAX_HINTS = 20


def compile_document(text: str, tools: Tools, *, json_only: bool = False) -> Graph:
    """Raises `MalformedDocument` for text that cannot be parsed, `InvalidDefinition` with all problems."""
    document = parse_document(text, json_only=json_only)
    model, problems = read_definition(document.value)
    if model is not None:
        source = _Source(model, tools)
        problems += tuple(problem for check in _CHECKS for problem in check(source))
    if problems or model is None:
        raise refusal_of(sorted(map(document.locate, problems), key=lambda p: (p.line, p.column)))
    return _build(model, tools)


def refusal_of(problems: Sequence[Problem]) -> InvalidDefinition:
    """The error that lists these problems, at least one, and tells the first."""
    count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
    return InvalidDefinition(
        f"{count}; the first: {problems[0].message} (at {problems[0].path or '/'})", tuple(problems)
    )


@dataclass
class _Source:
    """A document whose shape is right, and what more than one check asks of it."""

    model: WorkflowModel
    tools: Tools
    hints_left: int = MAX_HINTS

    def hint(self, name: str, known: Iterable[str]) -> str:
        """The nearest known name, for the first few problems."""
        self.hints_left -= 1
        return nearest(name, known) if self.hints_left >= 0 else ""

    def before(self, name: str) -> list[str]:
        """The existing nodes that `name` comes after, each once, sorted."""
        return sorted({before for before in self.model.nodes[name].after if before in self.model.nodes})


def _build(model: WorkflowModel, tools: Tools) -> Graph:
    source = _Source(model, tools)
    order, _ = _ordered(source)
    after: dict[str, list[str]] = {name: [] for name in order}
    for name in order:
        for before in source.before(name):
            after[before].append(name)
    used = {node.tool for node in model.nodes.values() if node.tool is not None}
    hashes = {name: tools[name].schema_hash for name in used}
    nodes = tuple(_node(source, name, after[name], hashes) for name in order)
    return Graph(name=model.name, nodes=nodes, output=model.output, input_schema=model.input)


def _node(source: _Source, name: str, after: list[str], hashes: dict[str, str]) -> Node:
    node = source.model.nodes[name]
    edges: dict[str, Any] = {"name": name, "before": tuple(source.before(name)), "after": tuple(after)}
    if node.tool is not None:
        spec = source.tools[node.tool]
        return Node(
            kind="task",
            tool=spec.name,
            tool_version=spec.version,
            schema_hash=hashes[node.tool],
            effect=spec.effect,
            arguments=node.with_,
            timeout_ms=node.timeout or spec.timeout_ms,
            **edges,
        )
    if node.wait is not None:
        return Node(
            kind="wait", wait_ms=node.wait.for_ or node.wait.timeout, signal=node.wait.signal or "", **edges
        )
    return Node(kind="workflow", workflow=node.workflow or "", arguments=node.with_, **edges)


def _ordered(source: _Source) -> tuple[list[str], set[str]]:
    """Node names in the one topological order that is the same for every spelling of a document, and
    those that stand on a cycle or behind one."""
    waits_for = {name: set(source.before(name)) for name in source.model.nodes}
    followers: dict[str, list[str]] = {name: [] for name in waits_for}
    for name, befores in waits_for.items():
        for before in befores:
            followers[before].append(name)
    ready = [name for name, befores in waits_for.items() if not befores]
    heapify(ready)
    order: list[str] = []
    while ready:
        name = heappop(ready)
        order.append(name)
        for follower in followers[name]:
            waits_for[follower].discard(name)
            if not waits_for[follower]:
                heappush(ready, follower)
    return order, set(waits_for) - set(order)


def _edges(source: _Source) -> Iterator[Problem]:
    nodes = source.model.nodes
    for name, node in nodes.items():
        for index, before in enumerate(node.after):
            if before not in nodes:
                place = f"/nodes/{name}/after" + (f"/{index}" if len(node.after) > 1 else "")
                yield Problem(place, f"there is no node `{before}`", source.hint(before, nodes))
    _, cyclic = _ordered(source)
    if cyclic:
        names = ", ".join(sorted(cyclic))
        place = f"/nodes/{min(cyclic)}/after"
        yield Problem(place, f"these nodes wait for each other and can never start: {names}")


def _tools_exist(source: _Source) -> Iterator[Problem]:
    tools = source.tools
    for name, node in source.model.nodes.items():
        if node.tool is not None and node.tool not in tools:
            known = source.hint(node.tool, tools) or f"known tools: {', '.join(sorted(tools)[:10]) or 'none'}"
            yield Problem(f"/nodes/{name}/tool", f"there is no tool `{node.tool}`", known)


def _children(source: _Source) -> Iterator[Problem]:
    for name, node in source.model.nodes.items():
        if node.workflow is not None and node.workflow.partition("@")[0] == source.model.name:
            yield Problem(f"/nodes/{name}/workflow", "a workflow that always starts itself never ends")


def _arguments(source: _Source) -> Iterator[Problem]:
    for name, node in source.model.nodes.items():
        spec = source.tools.get(node.tool or "")
        if spec is None:
            continue
        properties = spec.parameters.get("properties", {})
        for key, value in node.with_.items():
            place = f"/nodes/{name}/with/{escape(key)}"
            if key not in properties:
                if spec.parameters.get("additionalProperties") is False:
                    yield Problem(place, f"`{spec.name}` takes no `{key}`", source.hint(key, properties))
            elif not any(True for _ in expressions_in(value)):
                inner = {**properties[key], "$defs": spec.parameters.get("$defs", {})}
                yield from violations(inner, compile_template(value).value, place)
            elif path := lone_path(value):
                yield from _check_type(source, place, path, key, spec)
        for key in spec.parameters.get("required", ()):
            if key not in node.with_:
                yield Problem(f"/nodes/{name}", f"`{spec.name}` needs `{key}`: write it under `with`")


def _schemas(source: _Source) -> Iterator[Problem]:
    if source.model.input is not None:
        try:
            check_schema(source.model.input)
        except SchemaError as error:
            yield Problem("/input", f"not a JSON Schema: {error}")


def _expressions(source: _Source) -> Iterator[Problem]:
    has_run = _ancestry(source)
    for name, node in source.model.nodes.items():
        yield from _expressions_at(source, f"/nodes/{name}/with", node.with_, partial(has_run, name))
    yield from _expressions_at(source, "/output", source.model.output, lambda _: True)


def _expressions_at(
    source: _Source, place: str, value: Any, has_run: Callable[[str], bool]
) -> Iterator[Problem]:
    for pointer, found in expressions_in(value, place):
        if isinstance(found, ExpressionError):
            yield Problem(pointer, str(found), _root_hint(source, found))
        else:
            yield from _check_path(source, pointer, found, has_run)


def _check_path(
    source: _Source, pointer: str, path: Path, has_run: Callable[[str], bool]
) -> Iterator[Problem]:
    nodes = source.model.nodes
    if path.root == "ctx" and path.node not in nodes:
        yield Problem(
            pointer, f"`{path.text}`: there is no node `{path.node}`", source.hint(path.node, nodes)
        )
    elif path.root == "ctx" and not has_run(path.node):
        hint = f"add `{path.node}` to `after`, directly or through other nodes"
        yield Problem(pointer, f"`{path.text}`: `{path.node}` need not have run before this", hint)
    else:
        yield from _check_known(source, pointer, path)


def _schema_of(source: _Source, path: Path) -> Schema:
    """What is known of the value that the path goes into: a tool's result, the saga's input, its own fields."""
    if path.root == "saga":
        return Schema({"properties": {name: {"type": "string"} for name in SAGA_FIELDS}}, None)
    if path.root == "input":
        return Schema(source.model.input, source.model.input)
    node = source.model.nodes.get(path.node)
    spec = source.tools.get(node.tool or "") if node else None
    return Schema(spec.result, spec.result) if spec else Schema(None, None)


def _check_known(source: _Source, pointer: str, path: Path) -> Iterator[Problem]:
    """Follow the path through the schema of its value as far as that says what there is."""
    here, taken = _schema_of(source, path).follow(path.inner)
    if taken == len(path.inner):
        return
    step, types = path.inner[taken], here.types()
    if "object" in types and isinstance(step, str):
        known = source.hint(step, here.fields) or f"known: {', '.join(here.fields[:10]) or 'nothing'}"
        yield Problem(pointer, f"`{path.text}`: nothing produces `{step}`", known)
        return
    message = f"`{path.text}`: `{step}` of {in_words(types)} cannot be taken"
    yield Problem(pointer, message, _parts_of(path.up_to(taken), here))


def _parts_of(text: str, schema: Schema) -> str:
    """What can be taken of the value that the expression `text` gives."""
    types = schema.types()
    if "array" in types:
        return f"take an item of the list, such as `${{{text}[0]}}`"
    if "object" in types:
        return f"take a field: {', '.join(schema.fields[:10]) or 'by its name'}"
    return f"`${{{text}}}` is the whole value"


def _check_type(source: _Source, pointer: str, path: Path, key: str, spec: ToolSpec) -> Iterator[Problem]:
    """An argument that is one expression keeps its type, which must be one that the tool takes."""
    here, taken = _schema_of(source, path).follow(path.inner)
    wanted = Schema(spec.parameters["properties"][key], spec.parameters)
    if taken == len(path.inner) and here.never_fits(wanted):
        takes = f"`{spec.name}` takes {in_words(wanted.types())} as `{key}`"
        is_whole = here.types().isdisjoint({"array", "object"})
        hint = "name another value, or let a tool convert it" if is_whole else _parts_of(path.text, here)
        yield Problem(pointer, f"`{path.text}` is {in_words(here.types())}; {takes}", hint)


def _root_hint(source: _Source, error: ExpressionError) -> str:
    """For an expression that begins with a node's name or with a root that is not quite one."""
    if not isinstance(error, UnknownRoot):
        return ""
    first, dot, rest = error.source.partition(".")
    if first not in source.model.nodes:
        return source.hint(first, ROOTS)
    inner = rest.removeprefix("output") if rest.split(".")[0].split("[")[0] == "output" else dot + rest
    return f"did you mean `ctx.{first}.output{inner}`?"


def _ancestry(source: _Source) -> Callable[[str, str], bool]:
    """A function that says whether, before its first node starts, the second has always settled.

    Sets of nodes are integers, one bit per node: as sets of names, a chain of 10,000 would take gigabytes.
    """
    order, cyclic = _ordered(source)
    bit = {name: 1 << index for index, name in enumerate(order)}
    behind = dict.fromkeys(cyclic, 0)
    for name in order:
        mask = 0
        for before in source.before(name):
            mask |= behind[before] | bit[before]
        behind[name] = mask
    return lambda name, before: bool(behind[name] & bit.get(before, 0))


Check = Callable[[_Source], Iterator[Problem]]
_CHECKS: tuple[Check, ...] = (_edges, _tools_exist, _children, _arguments, _schemas, _expressions)
