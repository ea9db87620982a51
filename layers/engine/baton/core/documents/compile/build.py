"""A document without problems becomes a graph.

Each meaning is stored in one spelling. Nothing is checked here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from baton.core.conditions.model import Condition
from baton.core.documents.compile import events
from baton.core.documents.compile.analysis.flow import waits_for
from baton.core.documents.compile.analysis.handling import policies_of, rules_of
from baton.core.documents.compile.analysis.schemas import output_schema
from baton.core.documents.compile.failing import named_tools
from baton.core.documents.compile.many import mapped
from baton.core.documents.parts.compensate import PARALLEL
from baton.core.documents.parts.control import PauseModel
from baton.core.documents.parts.handler import HandlerModel
from baton.core.expressions import SPACE
from baton.core.failures.failover import Policy
from baton.core.graph.graph import Branch, Cap, Catch, Graph, Handler, Join, Loop, Node, Pause, Poll, Rule
from baton.core.graph.inner import WHOLE_INPUT, inner_name, started

if TYPE_CHECKING:
    from baton.core.documents.compile.analysis.source import Source
    from baton.core.documents.definition import LimitModel, NodeModel
    from baton.core.documents.parts.failing import CatchModel, PolicyModel
    from baton.core.effects.toolspec import ToolSpec

HOUR_MS = 3_600_000


def build(source: Source, kept: Callable[[str], dict[str, Any]]) -> Graph:
    """The graph of a document. `kept`: the fields of a node that are its kind's."""
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
        events=events.rules_of(source),
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
    if "failures" not in kept and (rules := rules_of(node.retry, node.on_failure)):
        kept = {**kept, "failures": rules}
    if node.map is not None:
        kept, schema = mapped(source, name, kept, schema), None
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
    """The fields of a node about failed attempts at its tool."""
    node = source.nodes[name]
    failures = rules_of(node.retry, node.on_failure)
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
    """None for what a node waits for anyway."""
    need, tolerated, cancels = waits_for(node.join, len(source.edges.before[name]))
    join = Join(need=need, tolerated=tolerated, rest="cancel" if cancels else "run")
    return None if join == Join() else join


def _caps(limits: dict[str, LimitModel]) -> dict[str, Cap]:
    return {name: Cap(most=limit.max, then=limit.then) for name, limit in limits.items()}
