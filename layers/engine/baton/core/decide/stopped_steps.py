"""Steps that are stopped while they act, and the saga goes on without them: people are told, and an undoing comes to them.

A join, the end of a round and the end of a map stop steps. What becomes of those of a saga that stops as a whole is in undoing.py.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from baton.core.decide.context import EvaluationContext
from baton.core.decide.unknown_outcomes import doubt_notice, is_in_doubt, may_stand
from baton.core.expressions import ExpressionError
from baton.core.graph.graph import Node
from baton.core.log import events as ev
from baton.core.log.answers import tool_asked_about
from baton.core.log.state import Failing, item_of, node_of


def told(context: EvaluationContext, now: int, running: Collection[str]) -> Iterator[ev.Event]:
    """The events in front of the one that stops the step at the context's slot; none where it has done nothing. Raises `LackingError`."""
    program, state, slot = context.program, context.state, context.slot
    if is_in_doubt(program, state, slot, running):
        yield ev.NoticeDue(notice=doubt_notice(state, slot, now))
    if not program.undoes or not may_stand(program, state, slot, running):
        return
    (name, iteration), node, failing = node_of(slot), program.node_at(state, slot), state.failing.get(slot)
    tool = node.tool if failing is None else tool_asked_about(node, failing)
    is_undone = tool in node.undo
    yield ev.StepStopped(
        node=name,
        iteration=iteration,
        item=item_of(slot),
        tool=tool,
        prior=state.undo.head if is_undone else None,
        kept=kept_of(context, node, tool, failing) if is_undone else None,
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
    return ev.Value(v=undo.needed({**given, **({} if failing is None else failing.arguments)}))
