"""A document without problems becomes a graph.

Each meaning is stored in one spelling. Nothing is checked here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from baton.core.conditions.model import Condition
from baton.core.documents.compile import failing, source, tools, triggers
from baton.core.documents.compile.failing import named_tools
from baton.core.documents.compile.flow import waits_for
from baton.core.documents.compile.source import (
    Source,
    Tools,
    may_run,
    output_schema,
    policies_of,
    policy_rules,
)
from baton.core.documents.compile.tools import map_fields
from baton.core.documents.models import HandlerModel, NodeModel
from baton.core.documents.parts.control import PauseModel
from baton.core.documents.parts.failing import NONE, PARALLEL
from baton.core.documents.parts.node import ReplanModel
from baton.core.effects.operations import calls_operations, choice_problems
from baton.core.effects.risk import DEFAULT_RULES, Rules
from baton.core.effects.toolspec import SEARCH, ToolSpec
from baton.core.expressions import SPACE
from baton.core.failures.failover import Policy
from baton.core.graph.graph import (
    WHOLE_INPUT,
    Branch,
    Cap,
    Catch,
    Graph,
    Handler,
    Join,
    Loop,
    Node,
    Pause,
    Poll,
    Rule,
    inner_name,
    started,
)
from baton.errors import Problem

if TYPE_CHECKING:
    from baton.core.documents.models import NodeModel
    from baton.core.documents.parts.control import LimitModel
    from baton.core.documents.parts.failing import CatchModel, PolicyModel
    from baton.core.limits import Limits

HOUR_MS = 3_600_000


def build(source: Source, kept: Callable[[str], dict[str, Any]]) -> Graph:
    """Build the graph of a document. `kept`: the fields of a node that its kind adds."""
    model = source.model
    limits = _caps(model.limits)
    if model.timeout is not None:
        limits["wall_time"] = Cap(
            most=min(model.timeout, limits.get("wall_time", Cap(most=model.timeout)).most)
        )
    return Graph(
        name=model.name,
        nodes=tuple(_node(source, name, kept(name)) for name in source.flow.names),
        output=model.output,
        input_schema=model.input,
        limits=limits,
        failures=source.failures,
        failover=_failover(source, "/failover", model.failover),
        risk=model.rules,
        undo_together=model.compensate == PARALLEL,
        handler=_handler(source, model.failure_handler),
        schedule=model.schedule.schedule() if model.schedule is not None else None,
        events=triggers.event_rules(source),
        mcp=model.description if model.mcp else None,
    )


def _handler(source: Source, handler: HandlerModel | None) -> Handler | None:
    if handler is None:
        return None
    if handler.graph is not None:
        given = WHOLE_INPUT if handler.with_ is None else handler.with_
        called = inner_name(source.model.name, handler.graph)
        whole = started(given, source.within.seen.get("", {}))
        return Handler(workflow=called, arguments=whole, on_cancel=handler.on_cancel)
    return Handler(workflow=handler.called, arguments=handler.with_, on_cancel=handler.on_cancel)


def _node(source: Source, name: str, kept: dict[str, Any]) -> Node:
    node, schema = source.nodes[name], output_schema(source, name)
    if "failures" not in kept and (rules := policy_rules(node.retry, node.on_failure)):
        kept = {**kept, "failures": rules}
    if node.map is not None:
        kept, schema = map_fields(source, name, kept, schema), None
    return Node(
        name=name,
        before=source.edges.before[name],
        after=source.edges.after[name],
        when=_condition(source, f"/nodes/{name}/when") if node.when is not None else None,
        branch=_branch(source, name, node),
        loop=_loop(source, name, node),
        join=_join(source, name, node),
        catch=tuple(_catch(source, name, index, rule) for index, rule in enumerate(node.catch)),
        loops=source.loops.around(name),
        output_schema=schema,
        limits=_caps(node.limits),
        **kept,
    )


def attempts(source: Source, name: str, spec: ToolSpec) -> dict[str, Any]:
    """Return the fields of a node about failed attempts at its tool."""
    node = source.nodes[name]
    failures = policy_rules(node.retry, node.on_failure)
    changes = (*failures.values(), *source.failures.values())
    ways, hooks = named_tools(
        source, spec.name, (*changes, source.hinted[name]) if name in source.hinted else changes
    )
    return {
        "failures": failures,
        "failover": _failover(source, f"/nodes/{name}/failover", node.failover),
        "timed": any(
            source.tools[tool].key.window_ms
            for tool in (spec.name, *(way.tool for way in ways))
            if tool in source.tools
        ),
        "ways": ways,
        "hooks": hooks,
    }


def _failover(source: Source, place: str, models: list[PolicyModel]) -> tuple[Policy, ...]:
    return policies_of(models, lambda index, _: source.condition(f"{place}/{index}/when/if"))


def _condition(source: Source, place: str) -> Condition:
    condition = source.condition(place)
    assert condition is not None
    return condition


def _branch(source: Source, name: str, node: NodeModel) -> Branch | None:
    if (branch := node.branch) is None:
        return None
    place = f"/nodes/{name}/branch/rules"
    rules = tuple(
        Rule(condition=_condition(source, f"{place}/{index}/if"), then=tuple(rule.then))
        for index, rule in enumerate(branch.rules)
    )
    return Branch(
        rules=rules,
        default=tuple(branch.default),
        choose=(branch.choose or "").strip(SPACE),
        among=tuple(branch.among),
    )


def _loop(source: Source, name: str, node: NodeModel) -> Loop | None:
    if (loop := node.loop) is None:
        return None
    return Loop(
        condition=_condition(source, f"/nodes/{name}/loop/while"),
        max_iterations=loop.max_iterations,
        back_to=loop.back_to or name,
        break_path=tuple(loop.break_path),
        timeout_path=tuple(loop.timeout_path),
        pause=_pause(loop.pause),
        initial=loop.initial,
        poll=None if node.poll is None else Poll(within_ms=node.poll.within or 0),
    )


def _pause(pause: PauseModel | None) -> Pause | None:
    if pause is None:
        return None
    if isinstance(pause.first, str):
        return Pause(of=pause.first)
    factor = pause.factor or 1.0
    return Pause(ms=pause.first, factor=factor, most_ms=pause.most or (HOUR_MS if factor > 1 else 0))


def _catch(source: Source, name: str, index: int, rule: CatchModel) -> Catch:
    place = f"/nodes/{name}/catch/{index}/if"
    condition = None if rule.if_ is None else _condition(source, place)
    return Catch(codes=tuple(rule.code), kinds=tuple(rule.class_), condition=condition, then=tuple(rule.then))


def _join(source: Source, name: str, node: NodeModel) -> Join | None:
    """Return the join of a node; None if it is the default one."""
    need, tolerated, cancels = waits_for(node.join, len(source.edges.before[name]))
    join = Join(need=need, tolerated=tolerated, rest="cancel" if cancels else "run")
    return None if join == Join() else join


def _caps(limits: dict[str, LimitModel]) -> dict[str, Cap]:
    return {name: Cap(most=limit.max, then=limit.then) for name, limit in limits.items()}


def check_kinds(source: Source) -> Iterator[Problem]:
    """Yield the problems of nodes that their kinds find."""
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
    """Yield a problem for a workflow that starts itself, whatever happens:
    each saga would start another one, down to the limit of the depth.
    """
    if source.produced is not None and source.produced.has_at_every_end(name):
        message = "every saga of this workflow would start another one, without end"
        if source.within.graph:
            message = "every saga of this graph would start another one, without end"
        hint = "let `when` or a `branch` decide whether it comes here"
        yield Problem(f"/nodes/{name}/{source.kinds[name].key}", message, hint)


def built(source: Source) -> Graph:
    """Build the graph of a document without problems."""
    compiler, nodes = _Compiler(source), source.nodes
    return build(source, lambda name: source.kinds[name].compile(compiler, name, nodes[name]))


class _Compiler:
    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def workflow(self) -> str:
        return self._source.model.name

    @property
    def graph(self) -> str:
        return self._source.within.graph

    @property
    def tools(self) -> Tools:
        return self._source.tools

    @property
    def limits(self) -> Limits:
        return self._source.limits

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

    def answer_schema(self, name: str) -> Any:
        return output_schema(self._source, name)

    def schema(self, place: str, schema: Any) -> Iterator[Problem]:
        return source.schema_problems(place, schema)

    def takes(self, name: str, spec: ToolSpec) -> Iterator[Problem]:
        given, place = self._source.nodes[name].with_, f"/nodes/{name}"
        yield from tools.takes(self._source, spec, given, f"{place}/with")
        yield from choice_problems(spec, given, f"{place}/with")
        yield from tools.needs(spec.name, spec.parameters, given, place)

    def fails_with(self, place: str, code: str) -> Iterator[Problem]:
        return failing.strange_code(place, code, (), is_tried=False)

    def matching(self, patterns: Sequence[str]) -> list[ToolSpec]:
        return [spec for name, spec in sorted(self._source.allowed.items()) if may_run(name, patterns)]

    def among(self, spec: ToolSpec, patterns: Sequence[str] | None = None) -> dict[str, Any]:
        """Return the argument that limits a search for tools to those that may be called there;
        no author and no model chooses it.
        """
        rails = self._source.model.guardrails
        is_any = patterns is None and (rails is None or rails.allowed_tools is None)
        is_search = spec.name == SEARCH and "among" in spec.parameters.get("properties", {})
        if not is_search or is_any:
            return {}
        specs = self.matching(patterns or ["*"])
        if patterns is not None:  # an agent calls each operation under a name of its own
            specs = [one for one in specs if not calls_operations(one)]
        return {"among": [one.name for one in specs]}

    def remedies(self, spec: ToolSpec) -> dict[str, Any]:
        ways = self._source.alternatives(spec.name)
        return {"timed": bool(spec.key.window_ms), "ways": ways, "hooks": self._source.hooks(spec.name)}

    def attempts(self, name: str, spec: ToolSpec) -> dict[str, Any]:
        return attempts(self._source, name, spec)
