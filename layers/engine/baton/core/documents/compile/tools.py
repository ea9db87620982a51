"""Tools that exist and may run, and arguments that a tool takes.

Checks against the list of tools, for whichever kind of node calls one. What expressions name is in checks/expressions.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from baton.core.conditions.schema import violations
from baton.core.conditions.schemaplan import is_schema
from baton.core.documents.compile.analysis.source import may_run
from baton.core.effects.grants import off
from baton.core.expressions import compile_template, escape, expressions_in
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source
    from baton.core.effects.toolspec import ToolSpec

# The tools that take a pipeline, and whether it may send requests.
_PIPELINES = {"std.pipeline": False, "std.http_pipeline": True}


def check(source: Source) -> Iterator[Problem]:
    """Names of tools under `guardrails` that are none."""
    if source.model.guardrails is not None:
        yield from known("/guardrails/allowed_tools", source.model.guardrails.allowed_tools or (), source)


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


def needs(
    tool: str, parameters: Mapping[str, Any], given: Mapping[str, Any], place: str
) -> Iterator[Problem]:
    """Arguments that a tool, or a child, cannot do without."""
    for key in parameters.get("required", ()):
        if key not in given:
            yield Problem(place, f"`{tool}` needs `{key}`: write it under `with`")


def _add(tool: str) -> str:
    return f"add `{tool}` to `allowed_tools`, or take another tool"


def known(place: str, patterns: Iterable[str], source: Source) -> Iterator[Problem]:
    """Names of tools, without a `*` in them, that are none."""
    for index, pattern in enumerate(patterns):
        if "*" not in pattern and pattern not in source.tools:
            hint = off(pattern) or source.hint(pattern, source.tools)
            yield Problem(f"{place}/{index}", f"there is no tool `{pattern}`", hint)


def allows(source: Source, place: str, patterns: Sequence[str]) -> Iterator[Problem]:
    """Tools that a node may call as it likes: each must exist and be allowed."""
    yield from known(place, patterns, source)
    for index, pattern in enumerate(patterns):
        meant = [tool for tool in source.tools if may_run(tool, [pattern])]
        if "*" in pattern and not meant:
            hint = source.hint(pattern, source.tools)
            yield Problem(f"{place}/{index}", f"no tool has a name like `{pattern}`", hint)
        if refused := next((tool for tool in meant if tool not in source.allowed), ""):
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
        elif any(True for _ in expressions_in(value)):
            continue
        elif key == "steps" and _is_pipeline(spec, given):
            yield from _pipeline(spec, compile_template(value).value, given.get("data", {}), place)
        else:
            inner = {**properties[key], "$defs": spec.parameters.get("$defs", {})}
            if is_schema(inner):  # of a child, it may refer to what is not here
                yield from violations(inner, compile_template(value).value, place)


def _is_pipeline(spec: ToolSpec, given: Mapping[str, Any]) -> bool:
    """Whether it is the engine's tool, not an application's own of this name, and the names of the data are known."""
    if spec.name not in _PIPELINES or not isinstance(given.get("data", {}), dict):
        return False
    from baton.core.pipelines import pipeline  # most documents have none

    items = pipeline.schema(requests=_PIPELINES[spec.name])["items"]
    return bool(spec.parameters["properties"]["steps"].get("items") == items)


def _pipeline(spec: ToolSpec, steps: Any, data: Mapping[str, Any], place: str) -> Iterator[Problem]:
    """What is wrong with a pipeline: by its own reader, which says more than a JSON Schema could."""
    from baton.core.pipelines import pipeline
    from baton.core.pipelines.base import PipelineFailed

    try:
        pipeline.read(steps, data, requests=_PIPELINES[spec.name])
    except PipelineFailed as failed:
        for problem in failed.problems:
            yield Problem(place + problem.path, problem.message, problem.suggestion)
