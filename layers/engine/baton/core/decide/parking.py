"""Sagas that cannot go on: their parking, its notices, and the end of a saga that ends before its nodes or
fails after them.

Incidents about failures of steps are in failure_handling.py, parking for money in spending.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from baton.core.decide.context import FetchedValues
from baton.core.decide.decision import CancelChildren, Decision, DecisionBuilder, LookAtStanding, next_up
from baton.core.decide.spending import is_told
from baton.core.decide.unknown_outcomes import unknown_outcome_notices
from baton.core.expressions import ExpressionError, excess_of
from baton.core.failures.codes import advice_for
from baton.core.failures.strategies.base import ESCALATED
from baton.core.log import events as ev
from baton.core.log.records import Child
from baton.core.log.slots import Slot
from baton.core.log.state import State

SHORTEST_MS, LONGEST_MS = 60_000, 3_600_000
"""Shortest and longest pause, in milliseconds, before a saga whose child stands still checks it again."""


def parking(state: State, parked: ev.Parked, now: int) -> tuple[ev.NoticeDue, ev.Parked]:
    """Return the events that park a saga and tell on-call: the notice first, in the same entry.

    No two parkings of a saga have the same version, so each opens an incident of its own.
    """
    where = f" at `{parked.node}`" if parked.node else ""
    advice = advice_for(parked.code).advice.rstrip(".")
    notice = ev.Notice(
        key=f"{state.origin.saga}/{state.lineage.branch}.parked.{state.version + 1}",
        to="on_call",
        code=parked.code,
        message=f"saga `{state.origin.saga}` is parked{where}: {parked.message}. {advice}: `baton resume {state.origin.saga}`",
        severity="high",
        node=parked.node,
        at=now,
        incident=True,
    )
    return ev.NoticeDue(notice=notice), parked


def parked_for_deaths(state: State, max_deaths: int) -> ev.Parked | None:
    """Return the parking of a saga that kills its workers, whatever they do for it; None if it does not."""
    if state.recovery.consecutive_crashes < max_deaths:
        return None
    if state.is_stopping or state.orphaned_children:
        to_stop = len(left_behind(state)) + (len(open_children(state)) if state.is_stopping else 0)
        node, doing = "", f"no step was to run; children to cancel: {to_stop}"
    else:
        nodes = list(state.tokens)[:10]
        node, doing = next(iter(nodes), ""), f"steps that were ready: {', '.join(nodes) or 'none'}"
    text = f"{state.recovery.consecutive_crashes} invocations in a row died without any progress; {doing}"
    return ev.Parked(code="worker_killed", message=text, node=node)


def cut_off(state: State, max_deaths: int) -> ev.Parked | None:
    """Return the parking of a saga with a step for which no invocation is long enough; None if it
    has none.
    """
    for slot, count in state.recovery.interruptions.items():
        if count >= max_deaths:
            text = (
                f"`{slot}` was cut off {count} times by the end of its invocation, with no progress in between: "
                "it needs more than a full budget"
            )
            return ev.Parked(code="over_budget", message=text, node=Slot.parse(slot).node)
    return None


def left_behind(state: State) -> list[tuple[str, Child]]:
    """Return the children to cancel that a fork or a join has left behind; they are not waited for."""
    return [("", child) for child in state.orphaned_children]


def open_children(state: State) -> list[tuple[str, Child]]:
    """Return the children that have not reported their end, with their slots."""
    return [(slot, work.orphan) for slot, work in state.open.items() if work.orphan is not None]


def tell_of_doubts(builder: DecisionBuilder) -> Decision | None:
    """Return the decision that tells people of steps whose outcome is unknown; None: all are told."""
    found = unknown_outcome_notices(builder.program, builder.state, builder.now)
    told = [ev.NoticeDue(notice=one) for one in found if not is_told(builder.state, one.key)]
    return Decision(record=tuple(told)) if told else None


def stop_children(state: State, found: FetchedValues) -> Decision | None:
    """Return the decision of a saga that stops and has children: it asks them to stop, and waits for the end
    of those that are open. None: it has none any more.
    """
    if left := left_behind(state):
        return ask_to_stop(left, found, revert=state.will_revert)
    children = open_children(state)
    return Decision(commands=next_up((), children)) if children else None


CHILDREN_PER_EVENT = 200
"""Most children that one event names: their ids fit into an entry, however long they are."""


def ask_to_stop(
    children: Sequence[tuple[str, Child]],
    found: FetchedValues,
    *,
    revert: bool = False,
) -> Decision:
    """Return the decision that asks the first of these children to stop, or that records those asked.

    `revert`: they take their effects back.
    """
    asked = {child.saga: None for _, child in children if (child.saga, revert) in found.cancelled}
    if not asked:
        return Decision(commands=(CancelChildren(tuple(children[:CHILDREN_PER_EVENT]), revert=revert),))
    return Decision(record=(ev.ChildrenAbandoned(children=tuple(asked)),))


def saga_end(builder: DecisionBuilder) -> ev.SagaEnded:
    """Return the end of a saga that stops, and keeps its effects. Raises `LackingError`."""
    state = builder.state
    if state.result is not None:
        return ev.SagaEnded(status="completed", output=state.result)  # whatever came later
    if state.cancel is not None:
        failure = ev.Failure("cancelled", state.cancel.reason)
        done = _done_by_then(builder) if state.cancel.result else ev.Value()
        return ev.SagaEnded(status="cancelled", failure=failure, output=done)
    return ev.SagaEnded(status="failed", failure=state.failure)


def _done_by_then(builder: DecisionBuilder) -> ev.Value:
    """Return the saga's output from the steps done before its cancellation; null if they do not suffice.

    Raises `LackingError`.
    """
    try:
        output = builder.context("").render(builder.program.output)
    except ExpressionError:
        return ev.Value()
    return ev.Value() if excess_of(output, builder.most_bytes) else ev.Value(v=output)


def end_as_failed(failure: ev.Failure) -> Decision:
    """Fail a saga although all its nodes have ended; its effects may have to be taken back first, and its
    failure handler starts only once the failure is recorded.
    """
    return Decision(record=(ev.LimitReached(failure=failure),))


def held_up(state: State, found: FetchedValues, deadline: int, now: int) -> Decision | None:
    """Return the decision if a child's time stands still for a defect, which stops the saga's time, too; None
    if the time is over.

    The check is made when the time is over, and not before: a saga whose time never is over pays nothing.
    """
    children = dict(open_children(state))
    if not children:
        return None
    if found.standing is None or found.standing.at < deadline:
        return Decision(commands=(LookAtStanding(tuple(child.saga for child in children.values())),))
    more = found.standing.ms - state.stood
    if more <= 0:
        return None
    of = found.standing.child
    slot = next(slot for slot, child in children.items() if child.saga == of)
    # The longer the child stands still, the more seldom it is looked at.
    lasts = found.standing.lasts
    until = now + max(SHORTEST_MS, min(lasts, LONGEST_MS)) if lasts else now
    text = f"the saga `{of}` that it waits for was parked for a defect, or paused, and its time stands still as long"
    return Decision(
        record=(
            ev.Parked(code=ESCALATED, message=text, node=Slot.parse(slot).node, until=until, at=now - more),
        )
    )
