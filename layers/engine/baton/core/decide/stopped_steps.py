"""Steps and children that are stopped: people are told of what may have happened, and an undoing comes to it.

A join, the end of a round and the end of a map stop them, and the saga goes on; or the saga ends, and undoes nothing. What becomes of those of
a saga that undoes what it has done is in undoing.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from baton.core.decide.context import EvaluationContext, Found
from baton.core.decide.program import Program
from baton.core.decide.unknown_outcomes import doubt_notice, is_in_doubt, may_stand
from baton.core.expressions import ExpressionError
from baton.core.graph.graph import Graph, Node
from baton.core.graph.inner import name_of
from baton.core.log import events as ev
from baton.core.log.answers import tool_asked_about
from baton.core.log.state import Failing, State, item_of, node_of


def told(context: EvaluationContext, now: int, running: Collection[str]) -> Iterator[ev.Event]:
    """The events in front of the one that stops what is at the context's slot; none where it has done nothing. Raises `LackingError`."""
    program, state, slot = context.program, context.state, context.slot
    if is_in_doubt(program, state, slot, running):
        yield ev.NoticeDue(notice=doubt_notice(state, slot, now))
    stopped = child_link(program, state, slot) or step_link(context, running)
    if stopped is not None:
        yield stopped


def child_link(program: Program, state: State, slot: str) -> ev.StepStopped | None:
    """That the child at a slot is stopped, and an undoing of its parent comes to it: once, and unless it certainly has nothing to undo."""
    child = state.children.get(slot) if slot in state.open else None
    if child is None or child.listed or program.node_at(state, slot).stays:
        return None
    if not (child.undoable if child.status else _may_undo(program.graphs, child.workflow)):
        return None
    name, iteration = node_of(slot)
    head, item = state.undo.head, item_of(slot)
    return ev.StepStopped(node=name, iteration=iteration, item=item, tool="", child=child.saga, prior=head)


def _may_undo(graphs: Mapping[str, Graph], workflow: str, above: tuple[str, ...] = ()) -> bool:
    """Whether something may undo what a child does. Of a graph of the document it is known; what a registered workflow does is not."""
    graph = graphs.get(name_of(workflow))
    if graph is None:
        return True
    if workflow in above:
        return False
    return any(
        node.undoes or (bool(inner := node.work.workflow) and _may_undo(graphs, inner, (*above, workflow)))
        for node in graph.nodes
    )


def step_link(context: EvaluationContext, running: Collection[str]) -> ev.StepStopped | None:
    """That the step at the context's slot is stopped, if it may have done something. Raises `LackingError`."""
    program, state, slot = context.program, context.state, context.slot
    if not program.undoes or not may_stand(program, state, slot, running):
        return None
    node, failing = program.node_at(state, slot), state.failing.get(slot)
    return link(context, node.tool if failing is None else tool_asked_about(node, failing), failing)


def link(context: EvaluationContext, tool: str, failing: Failing | None, instead: str = "") -> ev.StepStopped:
    """The place in the list of what `tool` may have done at the context's slot; `instead`: the tool that goes on. Raises `LackingError`."""
    program, state, slot = context.program, context.state, context.slot
    (name, iteration), node = node_of(slot), program.node_at(state, slot)
    is_undone = tool in node.undo
    return ev.StepStopped(
        node=name,
        iteration=iteration,
        item=item_of(slot),
        tool=tool,
        prior=state.undo.head if is_undone else None,
        kept=kept_of(context, node, tool, failing) if is_undone else None,
        instead=instead,
        key="" if failing is None or not is_undone else failing.key,
    )


def kept_of(context: EvaluationContext, node: Node, tool: str, failing: Failing | None) -> ev.Value | None:
    """What undoes the step needs of its arguments, if they can be made once more. Raises `LackingError`."""
    undo, program, slot = node.undo[tool], context.program, context.slot
    if failing is not None and failing.kept is not None:
        return failing.kept
    if undo.keeps == () or ("#" in slot and not program.is_one_of_many(slot)):
        return None
    try:
        given: dict[str, Any] = context.render(program.template(slot))
    except ExpressionError:
        return None
    return ev.Value(v=undo.needed({**given, **({} if failing is None else replaced(failing))}))


def replaced(failing: Failing) -> dict[str, Any]:
    """Arguments that replace those of the step in its next call, as far as they are known."""
    return {**failing.arguments, **({} if failing.way is None else failing.way.arguments)}


def left_by(program: Program, state: State, found: Found) -> tuple[ev.StepStopped, ...]:
    """What is stopped with the end of a saga that undoes nothing then: a later rollback comes to it. Raises `LackingError`."""
    slots = state.tokens if program.undoes else state.open
    stopped = []
    for slot in slots:
        one = child_link(program, state, slot)
        if one is None and slot not in state.undo.unsure:
            one = step_link(EvaluationContext(program, state, found, slot), ())
        if one is not None:
            stopped.append(one)
    return tuple(stopped)
