"""Attempts at steps of a saga, with inputs and outputs that are computed from the log and the graph."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import UNSET, Meta, UnsetType

from baton.core.decide.context import FetchedValues
from baton.core.decide.decision import DecisionBuilder, RunStep, activation, next_attempt
from baton.core.decide.program import Program
from baton.core.decide.undoing import inverse_input
from baton.core.expressions import ExpressionError, iso
from baton.core.log import events as ev
from baton.core.log.questions import visible_arguments
from baton.core.log.scopes import Replanning
from baton.core.log.slots import Slot
from baton.core.log.state import State
from baton.core.money import MICRO
from baton.core.nodes.base import UnfitError
from baton.core.read.answers import (
    ALTERNATIVE,
    ITEM,
    STEP,
    UNDO,
    Amount,
    AttemptFailure,
    Count,
    LargeValue,
    Time,
    View,
)
from baton.core.read.story import (
    ASKING,
    CHILD,
    HELD,
    READY,
    RETRYING,
    RUNNING,
    WAITING,
    AttemptEnd,
    Reasons,
    Story,
)
from baton.core.read.views import of_failure
from baton.errors import CorruptLog

SUCCEEDED, GONE, TRIED, OPEN = "succeeded", "failed", "attempt_failed", "open"
MOST_INPUTS = 50  # values outside of the log that are read for the inputs of one answer


class StepRun(View):
    """One attempt at a node, or at an item of it, with its input and output. Secrets are masked, and long
    texts and lists are cut.
    """

    node: str
    iteration: list[int]
    attempt: Annotated[Count, "Number of the attempt. 0 for a node that makes no attempts."]
    outcome: Annotated[
        Annotated[str, Meta(extra_json_schema={"enum": [SUCCEEDED, GONE, TRIED, OPEN]})],
        "Result of the attempt. After `attempt_failed` the step continues; `open`: it has not ended.",
    ]
    version: Annotated[int | None, "Version of the log entry that records the result."]
    at: Time | None
    started_at: Time | None
    ended_at: Annotated[Time | None, "Time when the attempt ended. Its entry can be written later."]
    tool: Annotated[str, "Tool that was called. Empty for other nodes."]
    input: Annotated[Any, "Arguments. Null if the attempt has none, or if they are not known."]
    output: Annotated[Any, "Result. Null before, after a failure, and if it is large."]
    large_output: Annotated[LargeValue | None, "Reference to an output that is not in the log itself."]
    error: AttemptFailure | None
    cost_usd: Annotated[Amount, "Cost in US dollars that the tool reported."]
    item: Annotated[str | UnsetType, ITEM] = UNSET
    child: Annotated[str | UnsetType, "Saga that the attempt has started, if any."] = UNSET


def run_view(program: Program, run: AttemptEnd, found: FetchedValues) -> StepRun:
    """Return an attempt that has ended. Raises `LackingError` with the blobs that its input needs."""
    event = run.event
    output = event.output if isinstance(event, ev.Gives) else ev.Value()
    step = event if isinstance(event, ev.StepSucceeded | ev.StepFailed | ev.AttemptFailed) else None
    return StepRun(
        node=event.node,
        iteration=list(event.iteration),
        item=event.item or UNSET,
        attempt=0 if step is None else step.attempt,
        outcome=SUCCEEDED
        if isinstance(event, ev.Gives)
        else TRIED
        if isinstance(event, ev.AttemptFailed)
        else GONE,
        version=run.when.version,
        at=iso(run.when.at),
        started_at=iso(step.started_at) if step is not None and step.started_at else None,
        ended_at=iso(step.ended_at) if step is not None and step.ended_at else None,
        tool="" if step is None else step.tool,
        input=_input_at(program, run.before, event.slot, found),
        output=visible_arguments(output.v),
        large_output=LargeValue(ref=output.ref, size=output.size) if output.ref else None,
        error=None if isinstance(event, ev.Gives) else AttemptFailure(**of_failure(event.failure)),
        cost_usd=0.0 if step is None else step.cost / MICRO,
    )


def open_run(program: Program, state: State, slot: str, found: FetchedValues) -> StepRun:
    """Return the attempt of a slot that is at work. Raises as `run_view`."""
    at, failing = Slot.parse(slot), state.failing.get(slot)
    return StepRun(
        node=at.node,
        iteration=list(at.iteration),
        item=at.item or UNSET,
        attempt=0 if failing is None else failing.attempts,
        outcome=OPEN,
        version=None,
        at=None,
        started_at=None,
        ended_at=None,
        tool=program.node_at(state, slot).tool,
        input=_input_at(program, state, slot, found),
        output=None,
        large_output=None,
        error=None,
        cost_usd=0.0,
    )


_NOT_CALLED = (UnfitError, KeyError, AssertionError, ExpressionError, CorruptLog)
"""Errors of a call that was not to be made any more."""


def call_at(program: Program, state: State, slot: str, found: FetchedValues) -> RunStep | None:
    """Return the next attempt at a slot in this state; None if none was to be made. Raises `LackingError`."""
    builder = DecisionBuilder(program, state, 0, (), found)
    try:
        given = _given_at(builder, slot)
        return None if given is None else next_attempt(builder, activation(program, state, slot), given)
    except _NOT_CALLED:
        return None


def _given_at(builder: DecisionBuilder, slot: str) -> Any:
    if Slot.parse(slot).scope:  # an inverse gets what the undone step has left
        return inverse_input(builder, slot)
    return builder.arguments(activation(builder.program, builder.state, slot))


def _input_at(program: Program, state: State, slot: str, found: FetchedValues) -> Any:
    """Return the arguments of the next attempt at a slot in this state, as a person may see them."""
    failing = state.failing.get(slot)
    try:
        given = _given_at(DecisionBuilder(program, state, 0, (), found), slot)
    except _NOT_CALLED:
        return None
    if failing is not None and failing.arguments and isinstance(given, Mapping):
        given = {**given, **failing.arguments}
    return visible_arguments(given)


UNSETTLED = frozenset({READY, RUNNING, HELD, RETRYING, ASKING, WAITING, CHILD})


def open_slots(story: Story, name: str = "") -> list[str]:
    """Return the slots of a node, or of all nodes, that are at work."""
    reasons = Reasons(story)
    return [
        slot
        for slot, place in story.places.items()
        if place.end is None
        and name in ("", place.node)
        and story.is_open(place)
        and slot in story.state.tokens
        and reasons.state(place) in UNSETTLED
    ]


def kind_of(run: AttemptEnd) -> str:
    """Return the kind of an attempt: that of a step, of an inverse, or of a model's alternative."""
    place = Slot.parse(run.event.slot)
    if place.scope:
        return UNDO
    return ALTERNATIVE if isinstance(run.before.open.get(place.owner), Replanning) else STEP


def page_of_runs(story: Story, after: int, limit: int, kind: str = "") -> tuple[list[AttemptEnd], int | None]:
    """Return the attempts that ended above `after`, about `limit`, and the `after` of the next page.

    All attempts of an entry are on one page. `kind`: one of `ATTEMPTS`, or empty for all.
    """
    page: list[AttemptEnd] = []
    for run in story.runs:
        if run.when.version <= after or kind not in ("", kind_of(run)):
            continue
        if len(page) >= limit and run.when.version > page[-1].when.version:
            return page, page[-1].when.version
        page.append(run)
    return page, None
