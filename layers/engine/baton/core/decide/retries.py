"""The retry of a step with failed attempts: its time, and its next attempt.

Pauses between attempts and answers to questions about failures are here. The reaction to a failure is in
failure_handling.py, which is imported after a step has failed; the way on of the saga is in transitions.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from baton.core.decide.decision import DecisionBuilder, activation
from baton.core.decide.spending import renewed_budget
from baton.core.decide.transitions import done, settle_failed
from baton.core.decide.unknown_outcomes import (
    child_link,
    doubts_of,
    failed_outside,
    failed_with_unknown_outcome,
    step_link,
    stop_map_items,
    stopped_notices,
)
from baton.core.failures.strategies.base import ESCALATED
from baton.core.log import events as ev
from baton.core.log.folding.failure_folds import may_be_mended
from baton.core.log.questions import (
    CANCEL,
    EXPIRED,
    GIVE_UP,
    TRY_AGAIN,
    USE,
    WHOLE,
    about_parking,
    decided_by,
    due_step,
)
from baton.core.log.state import ANSWER, UNKNOWN_OUTCOME, Failing, Signal
from baton.core.nodes.base import Activation
from baton.core.on_demand import OnDemand

if TYPE_CHECKING:
    from baton.core.decide import failure_handling
    from baton.core.failures.strategies import registry
else:
    failure_handling = OnDemand("baton.core.decide.failure_handling")
    registry = OnDemand("baton.core.failures.strategies.registry")

DEPLOY = "deploy"
"""Value of `by` in a `Resumed` that follows the deployment of other code."""


def may_try_again(builder: DecisionBuilder, at: Activation) -> bool:
    """Return true if the step at `slot` runs now.

    Otherwise an answer may have settled it. Raises `LackingError`.
    """
    failing = builder.state.failing[at.slot]
    if failing.ask is not None:
        return _is_answered(builder, at, failing, failing.ask)
    if failing.due_at > builder.now:
        builder.again_at(failing.due_at)
        return False
    return True


def has_paused(builder: DecisionBuilder, slot: str) -> bool:
    """Return true if this round of its loop has no pause before it, or its pause is over."""
    paused = builder.state.pauses.get(slot)
    if paused is None or builder.now >= paused.until:
        return True
    builder.due_by(paused.until)
    return False


def unpark(builder: DecisionBuilder) -> None:
    """Let a parked saga go on when its question or each incident has an answer, or its step is gone.

    Raises `LackingError`.
    """
    state = builder.state
    if (ask := about_parking(state)) is not None:
        if (found := _answer(builder, WHOLE, ask)) is not None:
            signal, said = found
            if said["action"] == CANCEL:
                why = said.get("comment") or "cancelled in answer to why it was parked"
                builder.note(ev.CancelRequested(reason=why, by=signal.by, at=builder.now, grace_ms=0))
            else:
                builder.note(
                    ev.Resumed(
                        by=signal.by, at=builder.now, budget=renewed_budget(state, builder.bounds.money)
                    )
                )
        return
    if state.parked is None or state.parked.code != ESCALATED or state.parked.until:
        return
    build = builder.program.build
    if any(may_be_mended(failing, build) for failing in state.failing.values()):
        builder.note(ev.Resumed(by=DEPLOY, at=builder.now, build=build))
        return
    for slot, failing in list(builder.state.failing.items()):
        if (
            failing.ask is not None
            and registry.of(failing.strategy).parks
            and _answer(builder, slot, failing.ask)
        ):
            _is_answered(builder, activation(builder.program, builder.state, slot), failing, failing.ask)
    if not any(registry.of(failing.strategy).parks for failing in builder.state.failing.values()):
        builder.note(ev.Resumed(by=ANSWER, at=builder.now))


def _is_answered(builder: DecisionBuilder, at: Activation, failing: Failing, ask: ev.Ask) -> bool:
    place: dict[str, Any] = at.place.fields
    found = _answer(builder, at.slot, ask)
    by_policy = "" if found is not None or not ask.escalate else _escalate(builder, at, ask)
    if found is not None or by_policy:
        said: Mapping[str, Any] = {"action": by_policy} if found is None else found[1]
        kind = builder.program.kinds[at.node.kind]
        action, output = said["action"], ev.Value(v=kind.instead(at.place.item, said.get("output")))
        is_recorded = action == USE and failing.failure.code == UNKNOWN_OUTCOME
        closed = ev.QuestionClosed(
            ask=ask.id,
            action=action,
            at=builder.now,
            by="" if found is None else found[0].key,
            arguments=said.get("arguments") or {},
            output=output if is_recorded else None,
            **place,
        )
        if action == TRY_AGAIN and closed.arguments:
            for event in list(
                failure_handling.with_answered_arguments(
                    builder.context(at.slot), failing, builder.now, closed.arguments
                )
            ):
                builder.note(event)
        elif action == USE and not is_recorded:
            # The output is a person's: what the attempts may have done stands all the same.
            stopped_one = step_link(builder.context(at.slot), ())
            if stopped_one is not None:
                builder.note(stopped_one)
        builder.note(closed)
        if action == GIVE_UP:
            _give_up(builder, at, failing)
        elif action == USE and not is_recorded:
            builder.note(
                done(builder.context(at.slot, output), builder.now).on(ev.NodePassed(**place, output=output))
            )
        return action == TRY_AGAIN or is_recorded
    if builder.now < ask.expires_at:
        builder.due_by(ask.due)
        return False
    go_on(builder, at, failing, ev.QuestionClosed(ask=ask.id, action=EXPIRED, at=builder.now, **place))
    return False


def go_on(builder: DecisionBuilder, at: Activation, failing: Failing, ended: ev.Event) -> None:
    """Choose the reaction after a strategy without success; its events follow `ended`, the event that ended
    the strategy.

    Raises `LackingError`.
    """
    last = replace(failing, ask=None)
    events = list(
        failure_handling.handle_failure(builder.context(at.slot), last, builder.now, above=failing.strategy)
    )
    builder.note(ended)
    for event in events:
        builder.note(event)
    if not events:
        _give_up(builder, at, failing)


def _escalate(builder: DecisionBuilder, at: Activation, ask: ev.Ask) -> str:
    """Take the step of the question's escalation that is due.

    Return the last step's answer, or an empty text.
    """
    if (answer := decided_by(ask, builder.now)) or builder.now >= ask.expires_at:
        return answer
    if builder.now >= ask.due:
        event, told = due_step(builder.state, at.slot, ask, builder.now)
        builder.note(event)
        if told is not None:
            builder.note(ev.NoticeDue(notice=told))
    return ""


def _give_up(builder: DecisionBuilder, at: Activation, failing: Failing) -> None:
    """Fail the step with its last failure."""
    failed = ev.StepFailed(
        **at.place.fields,
        attempt=failing.attempts,
        failure=failing.failure,
        started_at=builder.now,
        ended_at=builder.now,
        tool=at.node.tool,
        tool_version=at.node.tool_version,
        schema_hash=at.node.schema_hash,
    )
    context = builder.context(at.slot)
    failed = settle_failed(context, failing.failure).on(failed)
    failed = failed_with_unknown_outcome(
        builder.program, builder.state, at.node, failed, failing.kept, failing.key, acted=failing.acted
    )
    builder.note(failure_handling.final(context, failed))


def _answer(builder: DecisionBuilder, slot: str, ask: ev.Ask) -> tuple[Signal, dict[str, Any]] | None:
    """Return the first signal that answers the question, or None."""
    for signal in builder.state.signals:
        if signal.name == ANSWER:
            said = builder.context(slot).content(signal.payload)
            if said["ask"] == ask.id:
                return signal, said
    return None


def fail(
    builder: DecisionBuilder,
    at: Activation,
    failure: ev.Failure,
    first: ev.QuestionClosed | None = None,
    by: str = "",
) -> None:
    """Fail the step with a failure outside of an attempt; the event includes the last attempt, if any."""
    context = builder.context(at.slot)
    settled = failed_outside(context, failure, builder.now, by=by)
    if at.node.each is not None or at.node.function is not None:
        settled = failure_handling.final(context, settled)
    if first is not None:
        builder.note(first)
    if settled.emits:  # else the saga stops, and its items end by themselves
        # One that is in the list by its own failure is not told of twice.
        for event in (
            [] if settled.prior is not None else list(stopped_notices(context, builder.now, builder.running))
        ):
            builder.note(event)
        leave(builder, at)
    elif settled.is_result and (left := child_link(builder.program, builder.state, at.slot)) is not None:
        builder.note(left)
    builder.note(settled)


def leave(builder: DecisionBuilder, at: Activation) -> None:
    """Note events about the items of a node that are stopped with it while they act.

    Raises `LackingError`.
    """
    if builder.state.items:
        for event in doubts_of(
            builder.program, builder.state, at.slot, builder.now, builder.running, builder.found
        ):
            builder.note(event)


def is_late(builder: DecisionBuilder, at: Activation) -> bool:
    """Return true if the nodes after this one have begun, and its items run beside them."""
    work = builder.state.open.get(at.slot) if at.node.each is not None else None
    return work is not None and work.is_late


def stop_late(builder: DecisionBuilder, at: Activation, why: str) -> None:
    """Stop the items that a map has left running. Nothing follows from that."""
    for event in stop_map_items(
        builder.program, builder.state, at.slot, builder.now, builder.running, builder.found, why
    ):
        builder.note(event)
