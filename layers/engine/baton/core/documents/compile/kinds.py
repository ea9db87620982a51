"""Each kind of node checks its nodes, and gives the fields that the graph keeps of them.

What a kind may ask in return is `Compiler` in nodes/base.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from baton.core.documents.compile import build, rules, tools
from baton.core.documents.compile.analysis import schemas
from baton.core.documents.compile.analysis.source import Source, Tools, may_run
from baton.core.documents.nodes.node_model import NodeModel
from baton.core.documents.parts.compensate import NONE
from baton.core.documents.parts.replan import ReplanModel
from baton.core.effects.grants import SEARCH
from baton.core.effects.operations import choice_problems
from baton.core.effects.risk import DEFAULT_RULES, Rules
from baton.core.effects.toolspec import ToolSpec
from baton.core.graph.graph import Graph
from baton.core.graph.inner import inner_name
from baton.errors import Problem


def check(source: Source) -> Iterator[Problem]:
    """What is wrong with nodes of their kinds."""
    compiler = _Compiler(source)
    own = inner_name("", source.within.graph) if source.within.graph else compiler.workflow
    for name, node in source.nodes.items():
        yield from source.kinds[name].check(compiler, name, node)
        if source.kinds[name].starts(node) == own and node.map is None:  # a list may be empty
            yield from _without_end(source, name)

    handler = source.model.failure_handler
    if handler is None:
        return
    if handler.graph is not None:
        if inner_name("", handler.graph) not in compiler.children:
            yield from compiler.no_such_graph("/failure_handler/graph", handler.graph)
    elif handler.called.partition("@")[0] == source.model.name:
        message = "a saga that fails would start another one of its workflow"
        yield Problem("/failure_handler/workflow", message, "name another workflow")
    elif inner_name("", handler.called) in compiler.children:
        message = (
            f"`{handler.called}` is a graph of this document, and a handler that is a name is a workflow"
        )
        hint = f"write `failure_handler: {{graph: {handler.called}}}`, or give the graph another name"
        yield Problem("/failure_handler/workflow", message, hint)


def _without_end(source: Source, name: str) -> Iterator[Problem]:
    """A workflow that starts itself, whatever happens: each saga would start another one, down to the limit of the depth."""
    if source.produced is not None and source.produced.has_at_every_end(name):
        message = "every saga of this workflow would start another one, without end"
        if source.within.graph:
            message = "every saga of this graph would start another one, without end"
        hint = "let `when` or a `branch` decide whether it comes here"
        yield Problem(f"/nodes/{name}/{source.kinds[name].key}", message, hint)


def built(source: Source) -> Graph:
    """The graph of a document without problems."""
    compiler, nodes = _Compiler(source), source.nodes
    return build.build(source, lambda name: source.kinds[name].compile(compiler, name, nodes[name]))


class _Compiler:
    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def workflow(self) -> str:
        return self._source.model.name

    @property
    def tools(self) -> Tools:
        return self._source.tools

    @property
    def children(self) -> Mapping[str, Any]:
        return self._source.children

    def no_such_graph(self, place: str, graph: str) -> Iterator[Problem]:
        known = self._source.within.names
        hint = self._source.hint(graph, known) or (
            "" if known else f"write `graphs: {{{graph}: {{nodes: …}}}}`"
        )
        yield Problem(place, f"the document has no graph `{graph}`", hint)

    def takers(self, signal: str) -> Iterator[tuple[str, NodeModel]]:
        nodes, kinds = self._source.nodes, self._source.kinds
        return ((name, node) for name, node in nodes.items() if kinds[name].signal(node) == signal)

    def seen(self, name: str) -> Mapping[str, Any]:
        given: Mapping[str, Any] = self._source.within.seen.get(name, {})
        return given

    @property
    def risk_rules(self) -> Rules:
        own = self._source.model.rules
        return DEFAULT_RULES if own is None else own

    @property
    def replan(self) -> ReplanModel | None:
        return self._source.model.replan

    @property
    def undoes(self) -> bool:
        return self._source.model.compensate != NONE

    def fits(self, place: str, given: Mapping[str, Any], spec: ToolSpec) -> Iterator[Problem]:
        yield from tools.takes(self._source, spec, given, place)
        yield from choice_problems(spec, given, place)
        yield from tools.needs(spec.name, spec.parameters, given, place)

    def stand_ins(self, name: str) -> set[str]:
        fitting = (policy for _, policy, names in self._source.policies if name in names)
        return {policy.then.tool for policy in fitting if policy.then.tool}

    def exists(self, place: str, tool: str) -> Iterator[Problem]:
        return tools.exists(self._source, place, tool)

    def allows(self, place: str, patterns: Sequence[str]) -> Iterator[Problem]:
        return tools.allows(self._source, place, patterns)

    def schema(self, place: str, schema: Any) -> Iterator[Problem]:
        return schemas.problems(place, schema)

    def takes(self, name: str, spec: ToolSpec) -> Iterator[Problem]:
        given, place = self._source.nodes[name].with_, f"/nodes/{name}"
        yield from tools.takes(self._source, spec, given, f"{place}/with")
        yield from choice_problems(spec, given, f"{place}/with")
        yield from tools.needs(spec.name, spec.parameters, given, place)

    def fails_with(self, place: str, code: str) -> Iterator[Problem]:
        return rules.strange_code(place, code, (), is_tried=False)

    def matching(self, patterns: Sequence[str]) -> list[ToolSpec]:
        return [spec for name, spec in sorted(self._source.allowed.items()) if may_run(name, patterns)]

    def among(self, spec: ToolSpec, patterns: Sequence[str] | None = None) -> dict[str, Any]:
        """The argument of a search for tools that no author and no model chooses: those that may be called there."""
        rails = self._source.model.guardrails
        is_any = patterns is None and (rails is None or rails.allowed_tools is None)
        is_search = spec.name == SEARCH and "among" in spec.parameters.get("properties", {})
        if not is_search or is_any:
            return {}
        return {"among": [one.name for one in self.matching(patterns or ["*"])]}

    def remedies(self, spec: ToolSpec) -> dict[str, Any]:
        ways = self._source.ways(spec.name)
        return {"timed": bool(spec.key.window_ms), "ways": ways, "hooks": self._source.hooks(spec.name)}

    def attempts(self, name: str, spec: ToolSpec) -> dict[str, Any]:
        return build.attempts(self._source, name, spec)
