"""What is done about a child saga that has failed, or has run out of its time, by the rules of the node that has started it.

A new try is a new child. Only the node's own rules count: the child has asked its own, and those of the document are about tasks.
Loaded with the first child that fails at such a node.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from baton.core.decide.builder import DecisionBuilder
from baton.core.decide.failure_handling import handle_failure, stays
from baton.core.decide.transitions import stopped
from baton.core.failures.codes import class_of
from baton.core.log import events as ev
from baton.core.log.state import Failing
from baton.core.nodes.base import Activation


def handle(builder: DecisionBuilder, at: Activation, failure: ev.Failure) -> None:
    """Note what is done about it. Raises `LackingError`."""
    before = builder.state.failing.get(at.slot)
    attempts = 1 if before is None else before.attempts + 1
    failure = replace(failure, kind=failure.kind or class_of(failure.code), attempt=attempts, at=builder.now)
    failing = replace(
        before or Failing(attempts=0, failure=failure), attempts=attempts, failure=failure, ask=None
    )
    context = builder.context(at.slot)
    events = list(handle_failure(context, failing, builder.now))
    ran: dict[str, Any] = {
        "node": at.node.name,
        "iteration": at.iteration,
        "item": at.item,
        "attempt": attempts,
        "failure": failure,
        "started_at": builder.now,
        "ended_at": builder.now,
        "tool": "",
        "tool_version": "",
        "schema_hash": "",
    }
    if events:
        builder.note(ev.AttemptFailed(**ran))
        for event in events:
            builder.note(event)
        return
    failed = stopped(context, failure).on(ev.StepFailed(**ran))
    may_undo = builder.state.undo.is_left or len(builder.state.children) > 1
    builder.note(replace(failed, stays=True) if may_undo and stays(context, failure) else failed)
