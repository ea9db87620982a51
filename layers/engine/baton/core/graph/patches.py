"""Patches of agents: the call, the paths of the list, and the checks of a patch by them.

How a saga goes on with a patched document is not here (core/decide/carrying.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from baton.core.effects.operations import API, OPENAPI, OPERATION, operation_name
from baton.core.effects.toolspec import IDEMPOTENT, PATCH_WORKFLOW, ToolSpec
from baton.core.expressions import escape
from baton.core.failures.failover import matches_patterns
from baton.core.graph.graph import Graph, Node
from baton.errors import Problem

PATHS: Final = "paths"
"""The argument of the call that the document says: the paths that may change."""
MOST_OPERATIONS: Final = 50
_NODES: Final = "nodes"
_PATCH: Final = "patch"
_GUARDS: Final = ("limits", "requires_approval", "risk", _PATCH)
_VALUES: Final = ("with", "value")
"""Fields of a node that no agent changes, also in what it does, and those in which they are only values."""
_OPERATIONS: Final = ("add", "remove", "replace", "move", "copy", "test")

Json = Mapping[str, Any]


def patch_tool() -> ToolSpec:
    """Return the declaration of the call. It is a tool of agents alone, and no deployment has another one."""
    return ToolSpec(name=PATCH_WORKFLOW, version="1", effect=IDEMPOTENT, parameters=_PARAMETERS, result={})


def patch_offer(paths: Sequence[str]) -> dict[str, Any]:
    """Return the text for a model about the call."""
    text = (
        "Changes the workflow of this run from here on, by a JSON Patch (RFC 6902) of its document. Only "
        f"these paths may change, where `*` is any text: {', '.join(paths)}. Returns the values there. Without "
        "operations it changes nothing, and returns them all the same. A refused patch changes nothing; all "
        "its problems are returned."
    )
    return {"description": text, "parameters": _PARAMETERS}


_PARAMETERS: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "operations": {
            "type": "array",
            "maxItems": MOST_OPERATIONS,
            "items": {
                "type": "object",
                "properties": {
                    "op": {"enum": list(_OPERATIONS)},
                    "path": {"type": "string"},
                    "from": {"type": "string"},
                    "value": {},
                },
                "required": ["op", "path"],
                "additionalProperties": False,
            },
        },
        "description": {
            "type": "string",
            "minLength": 1,
            "maxLength": 500,
            "description": "The purpose of the patch, in a sentence.",
        },
    },
    "required": ["operations", "description"],
    "additionalProperties": False,
}


def path_problems(place: str, paths: Sequence[str], own: str) -> Iterator[Problem]:
    """Yield the problems of a list in a document. `own`: the name of the agent."""
    for index, path in enumerate(paths):
        match _segments(path):
            case ["", "nodes", name, *_] if name == own:
                yield Problem(f"{place}/{index}", "an agent does not patch itself", "name what runs after it")
            case ["", "nodes", name, *_] if name:
                continue
            case _:
                hint = "write `/nodes/NAME`, or a path below it, such as `/nodes/NAME/with`"
                yield Problem(f"{place}/{index}", f"`{path}` is no path of a node", hint)


def operation_problems(
    paths: Sequence[str], own: str, operations: Sequence[Mapping[str, Any]]
) -> Iterator[Problem]:
    """Yield the problems of operations that read or write beside the list."""
    for index, one in enumerate(operations):
        for field in ("path", "from"):
            if field in one and not _is_listed(_segments(str(one[field])), paths, own):
                known = ", ".join(f"`{path}`" for path in paths)
                hint = f"the agent may patch {known}, and never itself"
                yield Problem(
                    f"/operations/{index}/{field}", f"`{one[field]}` is not the agent's to patch", hint
                )


def patched_problems(before: Json, after: Json, graphs: tuple[Graph, Graph], own: str) -> Iterator[Problem]:
    """Yield what the patch of an agent may not do, by the documents and their graphs: change a guard of a
    node, or have a node call what the agent may not call without a person, and it did not before.
    """
    old, new = before[_NODES], after[_NODES]
    for name, node in new.items():
        place, had, now = f"/{_NODES}/{escape(name)}", _guards(old.get(name)), _guards(node)
        for field in sorted({*had, *now}):
            if name in old and had.get(field) != now.get(field):
                text = f"no agent changes `{field}` of a node"
                yield Problem(f"{place}/{field}", text, "leave it as it is")
            elif name not in old and field == f"agent/{_PATCH}":
                yield Problem(f"{place}/{field}", "no agent lets another one patch", "leave it out")
    known, made = map(_all_nodes, graphs)
    allowed = _free_calls(known["", own])
    for (graph, name), made_node in made.items():
        if made_node == known.get((graph, name)):
            continue
        was = known.get((graph, name))
        new_calls = _calls(made_node) - _calls(was) | _inverses(made_node) - _inverses(was)
        for call in sorted(new_calls - allowed):
            text = f"`{own}` may not call `{call}` without a person, so no node of its patch may"
            yield Problem(f"/{_NODES}/{escape(graph or name)}", text, "use another call of the agent")


def _all_nodes(graph: Graph) -> dict[tuple[str, str], Node]:
    """Return the nodes of a graph, and of the graphs in it, by the names of both."""
    inner = {(name, node.name): node for name, one in graph.graphs.items() for node in one.nodes}
    return {("", node.name): node for node in graph.nodes} | inner


def visible_values(document: Json, paths: Sequence[str], own: str) -> dict[str, Any]:
    """Return the values at the paths that there are in a document."""
    found = dict[str, Any]()
    for path in paths:
        for segments, value in _values(document, _segments(path)[1:]):
            if segments[1] != own:
                found["".join(f"/{escape(one)}" for one in segments)] = value
    return found


def _segments(pointer: str) -> list[str]:
    return [one.replace("~1", "/").replace("~0", "~") for one in pointer.split("/")]


def _is_listed(segments: Sequence[str], paths: Sequence[str], own: str) -> bool:
    if len(segments) < 3 or segments[2] == own:
        return False
    return any(
        len(pattern) <= len(segments) and all(map(_fits, segments, pattern))
        for pattern in map(_segments, paths)
    )


def _fits(segment: str, pattern: str) -> bool:
    return matches_patterns(segment, (pattern,))


def _values(value: Any, pattern: Sequence[str]) -> Iterator[tuple[tuple[str, ...], Any]]:
    if not pattern:
        yield (), value
        return
    first, *rest = pattern
    items = value.items() if isinstance(value, Mapping) else ()
    for name, below in items:
        if _fits(name, first):
            for segments, found in _values(below, rest):
                yield (name, *segments), found


def _guards(node: Any) -> dict[str, Any]:
    """Return the guards of a node in a document, by their places in it."""
    if not isinstance(node, Mapping):
        return {}
    does = {f"{kind}/": value for kind, value in node.items() if kind not in _VALUES}
    return {
        f"{place}{name}": value[name]
        for place, value in {"": node, **does}.items()
        if isinstance(value, Mapping)
        for name in _GUARDS
        if name in value
    }


def _free_calls(agent: Node) -> set[str]:
    """Return the calls that an agent makes without an approval that its document asks for: no tool would ask
    for that in another node.
    """
    parts = agent.agent
    assert parts is not None, "nothing else has the call"
    found = _calls(parts.turn)
    for one in parts.calls:
        asks = one.approval is not None and one.approval.always and not one.approval.by_tool
        if not asks:
            found |= _calls(one) if one.kind == agent.kind else {one.workflow}
    for one in parts.operations.values():
        found |= _calls(one) if one.approval is None else set()
    return found


def _calls(node: Node | None) -> set[str]:
    return _called(msgspec.to_builtins(node))


def _inverses(node: Node | None) -> set[str]:
    """Return what takes the work of a node back: no approval of the node is asked for that."""
    return _called(msgspec.to_builtins(node.work.undo)) if node is not None else set()


_DATA: Final = frozenset({"arguments", "value", "asks", "output_schema"})
"""Fields of a node of a graph with values of the author's own, in which a `tool` is no tool."""


def _called(value: Any) -> set[str]:
    """Return the tools, operations, workflows and functions that a node of a graph names anywhere."""
    found = set[str]()
    if isinstance(value, Mapping):
        for name, below in value.items():
            if name == "tool":
                found.add(_call(below, value.get("arguments")))
            elif name == "workflow":
                found.add(below)
            elif name == "hooks":
                found.update(below.values())
            elif name == "function" and below is not None:
                found.add(below["name"])
            elif name not in _DATA:
                found |= _called(below)
    elif isinstance(value, list | tuple):
        for below in value:
            found |= _called(below)
    return found - {""}


def _call(tool: str, arguments: Any) -> str:
    """Return the name of a call; of an operation of an API, that of the operation."""
    if tool == OPENAPI and isinstance(arguments, Mapping):
        return operation_name(str(arguments.get(API)), str(arguments.get(OPERATION)))
    return tool
