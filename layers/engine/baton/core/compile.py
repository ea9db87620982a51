"""compile_document(text, tools) -> graph and every problem at once, each with its path and position.

The checks are one function each, run in the order of the list at the end; they see a document whose
shape is right. Nothing here runs a workflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from baton.core.definition import NodeModel, WorkflowModel, read_definition
from baton.core.document import parse_document
from baton.core.expressions import Path, errors_in, escape, paths_in
from baton.core.graph import Graph, Node
from baton.core.schema import SchemaError, check_schema, violations
from baton.core.toolspec import ToolSpec, nearest
from baton.errors import InvalidDefinition, Problem

Tools = Mapping[str, ToolSpec]
Check = Callable[[WorkflowModel, Tools], Iterator[Problem]]


def compile_document(text: str, tools: Tools, *, json_only: bool = False) -> Graph:
    """Raises `MalformedDocument` for text that cannot be parsed, `InvalidDefinition` with all problems."""
    document = parse_document(text, json_only=json_only)
    model, problems = read_definition(document.value)
    if model is not None:
        problems = tuple(problem for check in _CHECKS for problem in check(model, tools))
    if problems or model is None:
        located = tuple(sorted(map(document.locate, problems), key=lambda p: (p.line, p.column)))
        count = "1 problem" if len(located) == 1 else f"{len(located)} problems"
        raise InvalidDefinition(
            f"{count}; the first: {located[0].message} (at {located[0].path or '/'})", located
        )
    return _build(model, tools)


def _build(model: WorkflowModel, tools: Tools) -> Graph:
    after: dict[str, list[str]] = {name: [] for name in model.nodes}
    for name, node in model.nodes.items():
        for before in node.after:
            after[before].append(name)
    nodes = tuple(_node(name, model.nodes[name], tuple(after[name]), tools) for name in _ordered(model)[0])
    return Graph(name=model.name, nodes=nodes, output=model.output, input_schema=model.input)


def _node(name: str, node: NodeModel, after: tuple[str, ...], tools: Tools) -> Node:
    edges: dict[str, Any] = {
        "name": name,
        "before": tuple(dict.fromkeys(node.after)),
        "after": tuple(dict.fromkeys(after)),
    }
    if node.tool is not None:
        spec = tools[node.tool]
        return Node(
            kind="task",
            tool=spec.name,
            tool_version=spec.version,
            schema_hash=spec.schema_hash,
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


def _ordered(model: WorkflowModel) -> tuple[list[str], set[str]]:
    """Node names in a topological order, and those that stand on a cycle or behind one."""
    open_edges = {name: {b for b in node.after if b in model.nodes} for name, node in model.nodes.items()}
    followers: dict[str, list[str]] = {name: [] for name in model.nodes}
    for name, befores in open_edges.items():
        for before in befores:
            followers[before].append(name)
    ready = [name for name, befores in open_edges.items() if not befores]
    order: list[str] = []
    while ready:
        name = ready.pop()
        order.append(name)
        for follower in followers[name]:
            open_edges[follower].discard(name)
            if not open_edges[follower]:
                ready.append(follower)
    return order, set(model.nodes) - set(order)


def _edges(model: WorkflowModel, tools: Tools) -> Iterator[Problem]:
    for name, node in model.nodes.items():
        for index, before in enumerate(node.after):
            if before not in model.nodes:
                place = f"/nodes/{name}/after" + (f"/{index}" if len(node.after) > 1 else "")
                yield Problem(place, f"there is no node `{before}`", nearest(before, model.nodes))
    _, cyclic = _ordered(model)
    if cyclic:
        names = ", ".join(sorted(cyclic))
        place = f"/nodes/{min(cyclic)}/after"
        yield Problem(place, f"these nodes wait for each other and can never start: {names}")


def _tools_exist(model: WorkflowModel, tools: Tools) -> Iterator[Problem]:
    for name, node in model.nodes.items():
        if node.tool is not None and node.tool not in tools:
            known = nearest(node.tool, tools) or f"known tools: {', '.join(sorted(tools)[:10]) or 'none'}"
            yield Problem(f"/nodes/{name}/tool", f"there is no tool `{node.tool}`", known)


def _arguments(model: WorkflowModel, tools: Tools) -> Iterator[Problem]:
    for name, node in model.nodes.items():
        spec = tools.get(node.tool or "")
        if spec is None:
            continue
        properties = spec.parameters.get("properties", {})
        for key, value in node.with_.items():
            place = f"/nodes/{name}/with/{escape(key)}"
            if key not in properties:
                if spec.parameters.get("additionalProperties") is False:
                    yield Problem(place, f"`{spec.name}` takes no `{key}`", nearest(key, properties))
            elif not _dynamic(value):
                inner = {**properties[key], "$defs": spec.parameters.get("$defs", {})}
                yield from violations(inner, value, place)
        for key in spec.parameters.get("required", ()):
            if key not in node.with_:
                yield Problem(f"/nodes/{name}", f"`{spec.name}` needs `{key}`: write it under `with`")


def _dynamic(value: Any) -> bool:
    return any(True for _ in errors_in(value)) or any(True for _ in paths_in(value))


def _schemas(model: WorkflowModel, tools: Tools) -> Iterator[Problem]:
    if model.input is not None:
        try:
            check_schema(model.input)
        except SchemaError as error:
            yield Problem("/input", f"not a JSON Schema: {error}")


def _expressions(model: WorkflowModel, tools: Tools) -> Iterator[Problem]:
    ancestors = _ancestors(model)
    places = [(f"/nodes/{name}/with", node.with_, ancestors[name]) for name, node in model.nodes.items()]
    for place, value, visible in [*places, ("/output", model.output, frozenset(model.nodes))]:
        bad = list(errors_in(value, place))
        yield from (Problem(pointer, message) for pointer, message in bad)
        if not bad:
            for pointer, path in paths_in(value, place):
                yield from _check_path(model, tools, pointer, path, visible)


def _check_path(
    model: WorkflowModel, tools: Tools, pointer: str, path: Path, visible: frozenset[str]
) -> Iterator[Problem]:
    if path.root == "ctx":
        if path.node not in model.nodes:
            yield Problem(
                pointer, f"`{path.text}`: there is no node `{path.node}`", nearest(path.node, model.nodes)
            )
        elif path.node not in visible:
            hint = f"add `{path.node}` to `after`, directly or through other nodes"
            yield Problem(pointer, f"`{path.text}`: `{path.node}` need not have run before this", hint)
        else:
            spec = tools.get(model.nodes[path.node].tool or "")
            yield from _check_known(pointer, path, spec.result if spec else None)
    elif path.root == "input":
        yield from _check_known(pointer, path, model.input)


def _check_known(pointer: str, path: Path, schema: Any) -> Iterator[Problem]:
    """Follow the path through a schema as long as the schema lists properties."""
    defs = schema.get("$defs", {}) if isinstance(schema, dict) else {}
    for step in path.inner:
        if isinstance(schema, dict) and str(schema.get("$ref", "")).startswith("#/$defs/"):
            schema = defs.get(schema["$ref"].removeprefix("#/$defs/"))
        if not isinstance(schema, dict):
            return
        if isinstance(step, int):
            schema = schema.get("items")
            continue
        properties = schema.get("properties")
        if not isinstance(properties, dict) or isinstance(schema.get("additionalProperties"), dict):
            return
        if step not in properties:
            known = nearest(step, properties) or f"known: {', '.join(list(properties)[:10])}"
            yield Problem(pointer, f"`{path.text}`: nothing produces `{step}`", known)
            return
        schema = properties[step]


def _ancestors(model: WorkflowModel) -> dict[str, frozenset[str]]:
    """For each node those that have always settled before it starts."""
    order, cyclic = _ordered(model)
    result: dict[str, frozenset[str]] = dict.fromkeys(cyclic, frozenset())
    for name in order:
        befores = [before for before in model.nodes[name].after if before in model.nodes]
        result[name] = frozenset(befores).union(*(result[before] for before in befores))
    return result


_CHECKS: tuple[Check, ...] = (_edges, _tools_exist, _arguments, _schemas, _expressions)
