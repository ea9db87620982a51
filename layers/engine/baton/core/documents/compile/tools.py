"""What a node runs: tools that exist and may run, children, arguments that a tool takes.

Belongs here: everything that is held against the list of tools. Does not belong here: what expressions name
(expressions.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from baton.core.conditions.schema import violations
from baton.core.conditions.schemaplan import is_schema
from baton.core.documents.compile.source import may_run
from baton.core.documents.node_types import KINDS_TO_COME
from baton.core.effects.grants import off
from baton.core.expressions import compile_template, escape, expressions_in
from baton.core.limits import LONGEST_INVOCATION_MS
from baton.core.read.wording import lasting
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.source import Source
    from baton.core.documents.definition import NodeModel
    from baton.core.effects.toolspec import ToolSpec


_LONGER = "let a tool only start what takes longer, and `wait` for a `signal` of its end"


def check(source: Source) -> Iterator[Problem]:
    """Kinds that cannot be run, unknown tools, tools that may not run, and arguments that cannot be right."""
    allowed = _allowed(source)
    if source.model.guardrails is not None:
        yield from known("/guardrails/allowed_tools", source.model.guardrails.allowed_tools or (), source)
    for name, node in source.nodes.items():
        if node.tool is not None:
            yield from _tool(source, name, node.tool)
        elif node.workflow is not None and node.workflow.partition("@")[0] == source.model.name:
            yield Problem(f"/nodes/{name}/workflow", "a workflow that always starts itself never ends")
        elif (kind := next((kind for kind in KINDS_TO_COME if getattr(node, kind) is not None), "")) != "":
            message = f"nodes of kind `{kind}` cannot be run by this version"
            yield Problem(f"/nodes/{name}/{kind}", message)
            yield from _tools_of_agent(source, name, node, allowed)


def _allowed(source: Source) -> list[str] | None:
    return source.model.guardrails.allowed_tools if source.model.guardrails is not None else None


def exists(source: Source, place: str, tool: str) -> Iterator[Problem]:
    """A tool that there is not, or that may not run."""
    tools = source.tools
    if tool not in tools:
        known = (
            off(tool) or source.hint(tool, tools) or f"known tools: {', '.join(sorted(tools)[:10]) or 'none'}"
        )
        yield Problem(place, f"there is no tool `{tool}`", known)
    elif tool not in source.allowed:
        yield Problem(place, f"`{tool}` may not run: `guardrails.allowed_tools` does not name it", _add(tool))


def _tool(source: Source, name: str, tool: str) -> Iterator[Problem]:
    yield from exists(source, f"/nodes/{name}/tool", tool)
    if tool in source.tools:
        spec, given = source.tools[tool], source.nodes[name].with_
        yield from takes(source, spec, given, f"/nodes/{name}/with")
        yield from needs(spec.name, spec.parameters, given, f"/nodes/{name}")
        yield from _time(name, source.nodes[name], spec)


def needs(
    tool: str, parameters: Mapping[str, Any], given: Mapping[str, Any], place: str
) -> Iterator[Problem]:
    """Arguments that a tool, or a child, cannot do without."""
    for key in parameters.get("required", ()):
        if key not in given:
            yield Problem(place, f"`{tool}` needs `{key}`: write it under `with`")


def _time(name: str, node: NodeModel, spec: ToolSpec) -> Iterator[Problem]:
    """More time for an attempt than any invocation has."""
    if (node.timeout or spec.timeout_ms) > LONGEST_INVOCATION_MS:
        place, time = ("timeout", node.timeout) if node.timeout else ("tool", spec.timeout_ms)
        said = "" if node.timeout else f"; the timeout of `{spec.name}` is {lasting(time)}"
        message = f"no attempt can last longer than an invocation, {lasting(LONGEST_INVOCATION_MS)}{said}"
        yield Problem(f"/nodes/{name}/{place}", message, _LONGER)


def _add(tool: str) -> str:
    return f"add `{tool}` to `allowed_tools`, or take another tool"


def known(place: str, patterns: Iterable[str], source: Source) -> Iterator[Problem]:
    """Names of tools, without a `*` in them, that are none."""
    for index, pattern in enumerate(patterns):
        if "*" not in pattern and pattern not in source.tools:
            hint = off(pattern) or source.hint(pattern, source.tools)
            yield Problem(f"{place}/{index}", f"there is no tool `{pattern}`", hint)


def _tools_of_agent(
    source: Source, name: str, node: NodeModel, allowed: list[str] | None
) -> Iterator[Problem]:
    """An agent chooses its tools itself: all that it may call have to be allowed."""
    tools = (node.agent or {}).get("tools") or []
    names = (
        [tools]
        if isinstance(tools, str)
        else [str(tool) for tool in tools]
        if isinstance(tools, list)
        else []
    )
    place = f"/nodes/{name}/agent/tools"
    yield from known(place, names, source)
    for index, pattern in enumerate(names):
        refused = next(
            (tool for tool in source.tools if may_run(tool, [pattern]) and not may_run(tool, allowed)), ""
        )
        if refused:
            message = f"`{refused}` may not run: `guardrails.allowed_tools` does not name it"
            yield Problem(f"{place}/{index}", message, _add(refused))


def takes(source: Source, spec: ToolSpec, given: Mapping[str, Any], below: str) -> Iterator[Problem]:
    """Arguments that the tool does not take, and wrong ones among those without an expression in them."""
    properties = spec.parameters.get("properties", {})
    for key, value in given.items():
        place = f"{below}/{escape(key)}"
        if key not in properties:
            if spec.parameters.get("additionalProperties") is False:
                yield Problem(place, f"`{spec.name}` takes no `{key}`", source.hint(key, properties))
        elif not any(True for _ in expressions_in(value)):
            inner = {**properties[key], "$defs": spec.parameters.get("$defs", {})}
            if is_schema(inner):  # of a child, it may refer to what is not here
                yield from violations(inner, compile_template(value).value, place)
