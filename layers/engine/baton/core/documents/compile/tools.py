"""Tools that exist and may run, and arguments that a tool takes.

Checks against the list of tools, for whichever kind of node calls one.
What expressions name is in expressions.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from baton.core.conditions.schema import violations
from baton.core.conditions.schemaplan import is_schema
from baton.core.documents.compile.flow import waits_for
from baton.core.documents.compile.known import follow_path
from baton.core.documents.compile.source import may_run
from baton.core.documents.nodes.base import REPLAN
from baton.core.effects.toolspec import off
from baton.core.expressions import compile_template, escape, expressions_in, lone_path
from baton.core.graph.graph import Each, Node
from baton.core.on_demand import OnDemand
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.compile.source import Source
    from baton.core.documents.parts.node import MapModel
    from baton.core.effects.toolspec import ToolSpec
    from baton.core.pipelines import base
    from baton.core.pipelines import pipeline as pipeline_module
else:
    base = OnDemand("baton.core.pipelines.base")
    pipeline_module = OnDemand("baton.core.pipelines.pipeline")

# The tools that take a pipeline, and whether it may send requests.
_PIPELINES = {"std.pipeline": False, "std.http_pipeline": True}


def check_tools(source: Source) -> Iterator[Problem]:
    """Yield a problem for each unknown name of a tool under `guardrails`."""
    if source.model.guardrails is not None:
        yield from unknown_tools(
            "/guardrails/allowed_tools", source.model.guardrails.allowed_tools or (), source
        )


def exists(source: Source, place: str, tool: str) -> Iterator[Problem]:
    """Yield a problem for a tool that does not exist, or that may not run."""
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
    """Yield a problem for each argument that a tool, or a child, cannot do without and does not get."""
    for key in parameters.get("required", ()):
        if key not in given:
            yield Problem(place, f"`{tool}` needs `{key}`: write it under `with`")


def _add(tool: str) -> str:
    return f"add `{tool}` to `allowed_tools`, or take another tool"


def unknown_tools(place: str, patterns: Iterable[str], source: Source) -> Iterator[Problem]:
    """Yield a problem for each unknown name of a tool, without a `*` in it."""
    for index, pattern in enumerate(patterns):
        if "*" not in pattern and pattern not in source.tools:
            hint = off(pattern) or source.hint(pattern, source.tools)
            yield Problem(f"{place}/{index}", f"there is no tool `{pattern}`", hint)


def allows(source: Source, place: str, patterns: Sequence[str]) -> Iterator[Problem]:
    """Yield the problems of the tools that a node may call as it likes: each must exist and be allowed."""
    yield from unknown_tools(place, patterns, source)
    for index, pattern in enumerate(patterns):
        meant = [tool for tool in source.tools if may_run(tool, [pattern])]
        if "*" in pattern and not meant:
            hint = source.hint(pattern, source.tools)
            yield Problem(f"{place}/{index}", f"no tool has a name like `{pattern}`", hint)
        if refused := next((tool for tool in meant if tool not in source.allowed), ""):
            message = f"`{refused}` may not run: `guardrails.allowed_tools` does not name it"
            yield Problem(f"{place}/{index}", message, _add(refused))


def takes(source: Source, spec: ToolSpec, given: Mapping[str, Any], below: str) -> Iterator[Problem]:
    """Yield a problem for each argument that the tool does not take,
    and for wrong ones among those without an expression in them.
    """
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
    """Return true if the tool is the engine's own pipeline and the names of its data are known.

    An application may have a tool of the same name.
    """
    if spec.name not in _PIPELINES or not isinstance(given.get("data", {}), dict):
        return False
    items = pipeline_module.schema(requests=_PIPELINES[spec.name])["items"]
    return bool(spec.parameters["properties"]["steps"].get("items") == items)


def _pipeline(spec: ToolSpec, steps: Any, data: Mapping[str, Any], place: str) -> Iterator[Problem]:
    """Yield the problems that the pipeline's own reader finds; it says more than a JSON Schema could."""
    try:
        pipeline_module.read_pipeline(steps, data, requests=_PIPELINES[spec.name])
    except base.PipelineFailed as failed:
        for problem in failed.problems:
            yield Problem(place + problem.path, problem.message, problem.suggestion)


def check_map(source: Source) -> Iterator[Problem]:
    """Check each `map`: its list, the items that have to succeed, and fields that do not go with it."""
    for name, node in source.nodes.items():
        if node.map is None:
            continue
        place = f"/nodes/{name}/map"
        yield from _over(source, place, name, node.map)
        if node.map.goes_on:
            yield from _left_at_once(source, place, name)
        if node.cancel_on is not None:
            message = "a signal cancels one child, and with `map` there is one for each item"
            yield Problem(f"/nodes/{name}/cancel_on", message, "let the child itself wait for the signal")
        if REPLAN in node.model_fields_set:
            message = "a model puts nothing in the place of one item of a list"
            yield Problem(
                f"/nodes/{name}/{REPLAN}",
                message,
                "start a child `workflow` for each item; what it does can have it",
            )


def _left_at_once(source: Source, place: str, name: str) -> Iterator[Problem]:
    """Yield a problem if the node ends a round: the end of a round stops the items that would run on."""
    flow = source.flow
    index = flow.at.get(name)
    if index is None:
        return  # it stands on a circle, or behind one: that is told elsewhere
    spot, level = flow.spots[index], flow.level(index)
    if spot.is_tail or any(flow.going(index, way)[0] < level for way in spot.outcomes):
        message = "the node ends the round of its loop, and with it the items that are left: none can run on"
        yield Problem(
            f"{place}/rest", message, "leave `rest` out, or let a node behind this one end the round"
        )


def _over(source: Source, place: str, name: str, model: MapModel) -> Iterator[Problem]:
    over, most = model.over, source.kinds[name].most_items
    need, _, _ = waits_for(model, 0)
    if isinstance(over, list):
        if len(over) > most:
            yield Problem(place, f"the list has {len(over):,} items, and at most {most:,} are possible")
        if need > len(over):
            message = f"this waits for {need} items, and there are {len(over)}: it always fails"
            yield Problem(place, message, "wait for fewer, or for `all`")
        return
    path = lone_path(over)
    if any(isinstance(found, Exception) for _, found in expressions_in(over)):
        return  # told where all expressions are
    if path is None:
        yield Problem(place, "a text is no list", "write one expression and nothing else, or a list")
        return
    types = follow_path(source, path, name)[0].types()
    if types and "array" not in types:
        yield Problem(place, f"`{path.text}` is no list", "name a list")


def map_fields(source: Source, name: str, kept: dict[str, Any], schema: Any) -> dict[str, Any]:
    """Return the fields of the graph's node with a `map`,
    as those of one node that does the work of an item.
    """
    model = source.nodes[name].map
    assert model is not None, "the caller has looked"
    need, _, cancels = waits_for(model, 0)
    do = Node(name=name, output_schema=schema, **{**kept, REPLAN: None})
    each = Each(
        do=do,
        at_once=model.concurrency,
        most=source.kinds[name].most_items,
        need=need,
        tolerated=-1 if model.tolerated_failures is None else model.tolerated_failures,
        share=-1 if model.tolerated_share is None else model.tolerated_share,
        rest="beside" if model.goes_on else "cancel" if cancels else "run",
    )
    whole = {key: getattr(do, key) for key in ("failures", "failover", "signal", "stays", "domain")}
    return {"kind": "map", "arguments": model.over, "each": each, **whole}
