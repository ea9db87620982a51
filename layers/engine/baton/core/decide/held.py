"""A step that has met an open circuit breaker: it waits without an attempt, unless its document says what is done instead."""

from __future__ import annotations

from baton.core.decide.context import EvaluationContext
from baton.core.decide.failure_handling import goes_another_way
from baton.core.failures.breakers import BREAKER_OPEN
from baton.core.log import events as ev
from baton.core.log.state import Failing, Held, item_of, node_of
from baton.core.log.undos import is_undo
from baton.core.times import iso


def waits(context: EvaluationContext, attempt: int, held: Held) -> ev.StepHeld | None:
    """The wait; None where the document goes another way at once. Raises `LackingError`.

    What undoes something has no other way. A step does where its rules or `catch` name the code `breaker_open`, or a failover policy fits that calls something else.
    """
    name, iteration = node_of(context.slot)
    if not is_undo(context.slot) and _has_another_way(context, attempt, held, name):
        return None
    return ev.StepHeld(
        node=name,
        iteration=iteration,
        item=item_of(context.slot),
        breaker=held.breaker,
        at=held.at,
        until=held.until,
        state=held.state,
    )


def failure_of(held: Held, node: str) -> ev.Failure:
    """What the step fails with in place of the wait."""
    text = f"the breaker `{held.breaker}` is {held.state.replace('_', '-')}; the next probe is at {iso(held.until)}"
    return ev.Failure(BREAKER_OPEN, text, node)


def _has_another_way(context: EvaluationContext, attempt: int, held: Held, name: str) -> bool:
    program, node = context.program, context.program.node_at(context.state, context.slot)
    if BREAKER_OPEN in node.failures or BREAKER_OPEN in program.graph.failures:
        return True
    if any(BREAKER_OPEN in rule.codes for rule in program.nodes[name].catch):
        return True
    if not program.failover.get(node.name):
        return False
    before = context.state.failing.get(context.slot)
    failure = failure_of(held, name)
    failing = Failing(
        attempts=attempt,
        failure=failure,
        policies={} if before is None else before.policies,
        arguments={} if before is None else before.arguments,
    )
    return goes_another_way(context, failing)
