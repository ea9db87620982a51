"""A step some of whose attempts have failed: whether it is tried again now, and what the next attempt is like.

Belongs here: pauses between attempts, and answers to questions about failures. Does not belong here: what is done
about a failure (failure_handling.py, which is imported where a step has failed), and where it goes on (transitions.py).
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.decide.builder import Draft, RunStep, activation
from baton.core.decide.transitions import done, stopped
from baton.core.log import events as ev
from baton.core.log.answers import GIVE_UP, TRY_AGAIN, USE
from baton.core.log.state import ANSWER, UNKNOWN_OUTCOME, Failing, Signal, State
from baton.core.nodes.base import Activation

EXPIRED = "expired"


def next_attempt(state: State, at: Activation, arguments: Any) -> RunStep:
    """The attempt that is made now."""
    failing, since = state.failing.get(at.slot), state.first_started_at.get(at.slot, 0)
    if failing is None:
        return RunStep(at.slot, at.node, at.iteration, arguments, since=since)
    if failing.arguments:
        arguments = {**arguments, **failing.arguments}
    return RunStep(
        at.slot,
        at.node,
        at.iteration,
        arguments,
        attempt=failing.attempts + 1,
        hooks=failing.hooks,
        way=failing.way,
        failure=failing.failure,
        since=since,
        look=failing.look,
        decided=failing.decided,
        given=failing.given,
    )


def may_try_again(draft: Draft, at: Activation) -> bool:
    """Whether the step at `slot` runs now. If not, it may have been settled by an answer. Raises `LackingError`."""
    failing = draft.state.failing[at.slot]
    if failing.ask is not None:
        return _is_answered(draft, at, failing, failing.ask)
    if failing.due_at > draft.now:
        draft.due_by(failing.due_at)
        draft.again = failing.due_at if draft.again is None else min(draft.again, failing.due_at)
        return False
    return True


def unpark(draft: Draft) -> None:
    """Let a saga go on whose incidents have answers, or are not about anything any more. Raises `LackingError`."""
    from baton.core.failures.strategies.registry import of

    for slot, failing in list(draft.state.failing.items()):
        if failing.ask is not None and of(failing.strategy).parks and _answer(draft, slot, failing.ask):
            _is_answered(draft, activation(draft.program, slot), failing, failing.ask)
    if not any(of(failing.strategy).parks for failing in draft.state.failing.values()):
        draft.note(ev.Resumed(by=ANSWER, at=draft.now))


def _is_answered(draft: Draft, at: Activation, failing: Failing, ask: ev.Ask) -> bool:
    place: dict[str, Any] = {"node": at.node.name, "iteration": at.iteration, "item": at.item}
    found = _answer(draft, at.slot, ask)
    if found is not None:
        signal, said = found
        action, output = said["action"], ev.Value(v=said.get("output"))
        is_recorded = action == USE and failing.failure.code == UNKNOWN_OUTCOME
        closed = ev.QuestionClosed(
            ask=ask.id,
            action=action,
            at=draft.now,
            by=signal.key,
            arguments=said.get("arguments") or {},
            output=output if is_recorded else None,
            **place,
        )
        draft.note(closed)
        if action == GIVE_UP:
            _give_up(draft, at, failing)
        elif action == USE and not is_recorded:
            draft.note(done(draft.scope(at.slot, output)).on(ev.NodePassed(**place, output=output)))
        return action == TRY_AGAIN or is_recorded
    if draft.now < ask.expires_at:
        draft.due_by(ask.expires_at)
        return False
    from baton.core.decide.failure_handling import handle_failure

    last = replace(failing, ask=None)
    events = list(handle_failure(draft.scope(at.slot), last, draft.now, above=failing.strategy))
    draft.note(ev.QuestionClosed(ask=ask.id, action=EXPIRED, at=draft.now, **place))
    for event in events:
        draft.note(event)
    if not events:
        _give_up(draft, at, failing)
    return False


def _give_up(draft: Draft, at: Activation, failing: Failing) -> None:
    """The last failure is the step's own."""
    failed = ev.StepFailed(
        node=at.node.name,
        iteration=at.iteration,
        item=at.item,
        attempt=failing.attempts,
        failure=failing.failure,
        started_at=draft.now,
        ended_at=draft.now,
        tool=at.node.tool,
        tool_version=at.node.tool_version,
        schema_hash=at.node.schema_hash,
    )
    draft.note(stopped(draft.scope(at.slot), failing.failure).on(failed))


def _answer(draft: Draft, slot: str, ask: ev.Ask) -> tuple[Signal, dict[str, Any]] | None:
    """The first signal that answers it."""
    for signal in draft.state.signals:
        if signal.name == ANSWER:
            said = draft.scope(slot).content(signal.payload)
            if said["ask"] == ask.id:
                return signal, said
    return None
