"""How a node ends that fails without an attempt, and how the items end that a map leaves or has left running."""

from __future__ import annotations

from msgspec.structs import replace

from baton.core.decide.builder import DecisionBuilder
from baton.core.decide.late_items import doubts_of, ended
from baton.core.decide.stopped_steps import told
from baton.core.decide.transitions import stopped
from baton.core.decide.undo_links import in_doubt
from baton.core.decide.unknown_outcomes import stands
from baton.core.log import events as ev
from baton.core.nodes.base import Activation


def fail(
    builder: DecisionBuilder,
    at: Activation,
    failure: ev.Failure,
    first: ev.QuestionClosed | None = None,
    by: str = "",
) -> None:
    """A failure that no attempt has made; it is told with the last one, if there was any."""
    failing = builder.state.failing.get(at.slot)
    failed = ev.StepFailed(
        node=at.node.name,
        iteration=at.iteration,
        item=at.item,
        attempt=1 if failing is None else failing.attempts,
        failure=failure,
        started_at=builder.now,
        ended_at=builder.now,
        tool=at.node.tool,
        tool_version=at.node.tool_version,
        schema_hash=at.node.schema_hash,
        by=by,
    )
    context = builder.context(at.slot)
    settled = stopped(context, failure).on(failed)
    if failing is not None and stands(at.node, failing):
        # The last attempt may have happened, whatever the step has failed with since.
        doubtful = replace(settled, failure=replace(failure, doubt=True, tool=failing.failure.tool))
        settled = in_doubt(builder.program, builder.state, at.node, doubtful, failing.kept, failing.key)
    if at.node.each is not None and (builder.state.undo.is_left or builder.state.children):
        from baton.core.decide.failure_handling import stays  # few maps fail

        settled = replace(settled, stays=stays(context, failure))
    if first is not None:
        builder.note(first)
    if settled.emits:  # else the saga stops, and its items end by themselves
        # One that is in the list by its own failure is not told of twice.
        for event in [] if settled.prior is not None else list(told(context, builder.now, builder.running)):
            builder.note(event)
        leave(builder, at)
    builder.note(settled)


def leave(builder: DecisionBuilder, at: Activation) -> None:
    """Tell of the items of a node that are stopped with it while they act. Raises `LackingError`."""
    if builder.state.items:
        for event in doubts_of(
            builder.program, builder.state, at.slot, builder.now, builder.running, builder.found
        ):
            builder.note(event)


def is_late(builder: DecisionBuilder, at: Activation) -> bool:
    """Whether what comes after the node has begun, and its items run beside it."""
    work = builder.state.open.get(at.slot) if at.node.each is not None else None
    return work is not None and work.is_late


def stop_late(builder: DecisionBuilder, at: Activation, why: str) -> None:
    """The items that a map has left running are stopped. Nothing follows from that."""
    for event in ended(
        builder.program, builder.state, at.slot, builder.now, builder.running, builder.found, why
    ):
        builder.note(event)
