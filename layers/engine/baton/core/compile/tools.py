"""What a node runs: tools that exist and may run, children, arguments that a tool takes.

Belongs here: everything that is held against the list of tools. Does not belong here: what expressions name
(expressions.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from baton.core.expressions import compile_template, escape, expressions_in
from baton.core.nodetypes import KINDS_TO_COME
from baton.core.schema import violations
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.compile.source import Source
    from baton.core.definition import NodeModel


def check(source: Source) -> Iterator[Problem]:
    """Kinds that cannot be run, unknown tools, tools that may not run, and arguments that cannot be right."""
    allowed = _allowed(source)
    if source.model.guardrails is not None:
        yield from _known("/guardrails/allowed_tools", source.model.guardrails.allowed_tools or (), source)
    for name, node in source.nodes.items():
        if node.tool is not None:
            yield from _tool(source, name, node.tool, allowed)
        elif node.workflow is not None and node.workflow.partition("@")[0] == source.model.name:
            yield Problem(f"/nodes/{name}/workflow", "a workflow that always starts itself never ends")
        elif (kind := next((kind for kind in KINDS_TO_COME if getattr(node, kind) is not None), "")) != "":
            message = f"nodes of kind `{kind}` cannot be run by this version"
            yield Problem(f"/nodes/{name}/{kind}", message)
            yield from _tools_of_agent(source, name, node, allowed)


def _allowed(source: Source) -> list[str] | None:
    return source.model.guardrails.allowed_tools if source.model.guardrails is not None else None


def may_run(tool: str, patterns: Iterable[str] | None) -> bool:
    """Whether a tool is one of those that may run; `*` stands for any text."""
    return patterns is None or any(
        re.fullmatch(".*".join(map(re.escape, pattern.split("*"))), tool) for pattern in patterns
    )


def _tool(source: Source, name: str, tool: str, allowed: list[str] | None) -> Iterator[Problem]:
    tools, place = source.tools, f"/nodes/{name}/tool"
    if tool not in tools:
        known = source.hint(tool, tools) or f"known tools: {', '.join(sorted(tools)[:10]) or 'none'}"
        yield Problem(place, f"there is no tool `{tool}`", known)
        return
    if not may_run(tool, allowed):
        yield Problem(place, f"`{tool}` may not run: `guardrails.allowed_tools` does not name it", _add(tool))
    yield from _arguments(source, name, source.nodes[name])


def _add(tool: str) -> str:
    return f"add `{tool}` to `allowed_tools`, or take another tool"


def _known(place: str, patterns: Iterable[str], source: Source) -> Iterator[Problem]:
    for index, pattern in enumerate(patterns):
        if "*" not in pattern and pattern not in source.tools:
            hint = source.hint(pattern, source.tools)
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
    yield from _known(place, names, source)
    for index, pattern in enumerate(names):
        refused = next(
            (tool for tool in source.tools if may_run(tool, [pattern]) and not may_run(tool, allowed)), ""
        )
        if refused:
            message = f"`{refused}` may not run: `guardrails.allowed_tools` does not name it"
            yield Problem(f"{place}/{index}", message, _add(refused))


def _arguments(source: Source, name: str, node: NodeModel) -> Iterator[Problem]:
    """Arguments that no tool of this name takes, and those without an expression in them."""
    spec = source.tools[node.tool or ""]
    properties = spec.parameters.get("properties", {})
    for key, value in node.with_.items():
        place = f"/nodes/{name}/with/{escape(key)}"
        if key not in properties:
            if spec.parameters.get("additionalProperties") is False:
                yield Problem(place, f"`{spec.name}` takes no `{key}`", source.hint(key, properties))
        elif not any(True for _ in expressions_in(value)):
            inner = {**properties[key], "$defs": spec.parameters.get("$defs", {})}
            yield from violations(inner, compile_template(value).value, place)
    for key in spec.parameters.get("required", ()):
        if key not in node.with_:
            yield Problem(f"/nodes/{name}", f"`{spec.name}` needs `{key}`: write it under `with`")
