"""Events with which a step asks a person to approve the call of its attempt.

The attempt has done nothing. runtime/steps/steps.py starts this right before the call; the effect of an
answer is in core/nodes/task.py. Loaded with the first such attempt.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from baton.core.decide.context import EvaluationContext
from baton.core.decide.program import Program
from baton.core.decide.unknown_outcomes import failed_outside
from baton.core.effects.toolspec import ApprovalRequest
from baton.core.expressions import ExpressionError, compile_template, excess_of
from baton.core.log import events as ev
from baton.core.log.questions import APPROVE, REJECT, approval_of, notice_of, question_ms, steps_of
from baton.core.log.records import Escalation
from baton.core.log.slots import Slot
from baton.core.log.state import State

MOST_ARGUMENTS = 32_768  # bytes: they are in the state until the step is done


def approval_events(context: EvaluationContext, request: ApprovalRequest, now: int) -> Iterator[ev.Event]:
    """Yield the events for a call that waits for approval; none if the saga is parked, or has asked already.

    A member of the saga's own scope asks although the saga stops. Raises `LackingError`.
    """
    state, slot = context.state, context.slot
    if state.parked is not None or slot in state.open:
        return
    if request.digest in state.approved.get(slot, ()):
        return
    place = Slot.parse(slot)
    node = context.program.node_at(state, slot)
    approval = node.approval
    said = None if place.scope or approval is None else approval.says
    try:
        says = {**request.says, **({} if said is None else context.render(compile_template(said)))}
        expires_ms = (approval.expires_ms if approval is not None else 0) or request.expires_ms
        waits = question_ms(expires_ms, context.program.limits)
        ask = approval_of(state, slot, request, says, waits, now)
        if "escalate" in says:
            ask = replace(ask, escalate=_escalation(request, says["escalate"], now))
        changed = dict(request.arguments) if request.is_changed else {}
        if excess := excess_of(changed, MOST_ARGUMENTS):
            raise ValueError(f"the arguments of `{request.tool}` are too large to be approved: {excess}")
    except (ExpressionError, ValueError) as error:
        failure = ev.failed_with("question_invalid", str(error), place.node)
        yield failed_outside(context, failure, now, request.tool)
        return
    yield ev.QuestionOpened(**place.fields, ask=ask, arguments=changed)
    yield ev.NoticeDue(notice=notice_of(state, slot, ask, now))


def unapproved_failure(program: Program, state: State, slot: str) -> ev.Failure:
    """Return the failure of a stopped saga's step whose repeated call no person has approved.

    A stopping saga asks for no approval. Without an approval no attempt has come to its call, since equal
    arguments need equal approvals. The step is in doubt if arguments may have changed, if another call was
    approved, or if only the present tool asks for one.
    """
    is_known = program.node_at(state, slot).approval is not None
    may_have_acted = not is_known or slot in state.failing or bool(state.approved.get(slot))
    text = "the saga was stopped before a person approved the call"
    return ev.Failure(
        "cancelled", text, Slot.parse(slot).node, doubt=may_have_acted, refused=not may_have_acted
    )


def _escalation(
    request: ApprovalRequest, said: Sequence[Mapping[str, Any]], now: int
) -> tuple[Escalation, ...]:
    steps = steps_of(said, now)
    # Which arguments the call has, and so how risky it is, was not known when the document was compiled.
    is_given = request.is_for_a_person and steps[-1].decide == APPROVE
    return (*steps[:-1], replace(steps[-1], decide=REJECT)) if is_given else steps
