"""The workflow that starts when a saga has failed for good: its input, and its part of the saga's end.

Loaded with the first failed saga that has one. It starts once the failure is in the log, before the end is,
under an id that its saga has only once in a branch: it starts once, even after a crash in between. Starting
is in runtime/worker/children.py.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.decide.context import EvaluationContext, FetchedValues, LackingError, started
from baton.core.decide.decision import Decision, StartHandler, missing
from baton.core.decide.program import Program
from baton.core.expressions import ExpressionError, excess_of, parse
from baton.core.failures.codes import CHILD_FAILED, class_of
from baton.core.graph.graph import HANDLER, Catch, graph_name
from baton.core.log import events as ev
from baton.core.log.records import Child
from baton.core.log.slots import Slot
from baton.core.log.state import State

_LAST_ERROR = parse("last_error")


def with_failure_handler(
    program: Program,
    state: State,
    found: FetchedValues,
    decision: Decision,
    end: ev.SagaEnded,
    most_bytes: int,
) -> Decision:
    """Return the decision, in whose place the handler starts if the end has one that has not started."""
    handler = program.graph.handler
    assert handler is not None, "the caller has looked"
    is_cancelled = state.cancel is not None
    if (
        state.was_made_cancelled
        or end.status == "completed"
        or (is_cancelled and (state.failure is not None or not handler.on_cancel))
    ):
        return decision
    failure, given, passed = end.failure or ev.Failure("cancelled", ""), None, dict[str, ev.Value]()
    context = EvaluationContext(program, state, found, failure=failure)
    try:
        if program.handler is None:
            given = _report(context, end)
        elif graph_name(handler.workflow):
            given, passed = started(context, program.handler)
        else:
            given = context.render(program.handler)
        why = excess_of(given, most_bytes)
    except LackingError as error:
        return Decision(commands=missing(error.needs, error.questions))
    except ExpressionError as error:
        why = str(error)
    if why:
        unhandled = ev.failed_with("input_unbound", f"failure_handler: {why}")
        return _with(decision, end, replace(end, unhandled=unhandled))
    child = Child(
        saga=f"{state.origin.saga}.{state.lineage.branch}.{HANDLER}",
        workflow=handler.workflow,
        input=ev.Value(v=given),
        passed=passed,
    )
    if child.saga not in found.handlers:
        return Decision(commands=(StartHandler(child),))
    if (unstarted := found.handlers[child.saga]) is not None:
        return _with(decision, end, replace(end, unhandled=unstarted))
    return _with(decision, end, replace(end, handler=child.saga))


def _with(decision: Decision, end: ev.SagaEnded, other: ev.SagaEnded) -> Decision:
    return replace(decision, record=tuple(other if event is end else event for event in decision.record))


def _report(context: EvaluationContext, end: ev.SagaEnded) -> dict[str, Any]:
    """Return the input of a handler without one in the document. Raises `ExpressionError`, `LackingError`."""
    origin = context.state.origin
    return {
        "saga": origin.saga,
        "workflow": origin.workflow,
        "user": origin.user,
        "status": end.status,
        "error": context.read(_LAST_ERROR),
        "input": context.content(origin.input),
        "steps": context.state.counts.steps,
        **end.report,
    }


def takes_failure(program: Program, state: State, slot: str) -> bool:
    """Return true if this saga, or one above it, goes on from any failure of the child at `slot`.

    A node with its own rules for its child's failures goes on, too. A child that was left behind has no slot:
    it is started only to be cancelled.
    """
    name = Slot.parse(slot).node
    node = program.nodes[name] if slot else None
    rules = node.catch if node is not None else ()
    if node is not None and node.work.failures:
        return True
    if node is not None and node.each is not None and node.each.tells_all:
        return True
    return state.origin.handled or name in program.index.can_fail or any(map(_fits, rules))


def _fits(rule: Catch) -> bool:
    """Return true if a rule takes every child's failure; its condition is known only after the failure, so
    such a rule does not count.
    """
    return rule.fits(CHILD_FAILED, class_of(CHILD_FAILED)) and rule.condition is None
